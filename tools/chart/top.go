package chart

import (
	"fmt"
	"strconv"
	"strings"
)

// Figures are how a server is.
type Figures struct {
	Version string
	Address string
	Uptime  int64 // s
	Clients int64
	Now     int64 // ms since 1970, by the server's clock

	Rates    bool  // Commands, Deaths and Commits are known: there are two samples
	Commands int64 // a second
	Deaths   int64 // a second
	Commits  int64 // a second

	CommitLast int64  // µs
	CommitSlow int64  // µs; the 99th percentile
	OldestDead int64  // ms since the death of the oldest item that is not removed yet
	Living     int64  // items
	Used       int64  // bytes
	MaxMemory  int64  // bytes; 0: no limit
	Role       string // of a node of a cluster; else empty

	Forecast   *Forecast // nil: none yet
	Containers []Container
	More       int // containers that are not listed
}

// Container is a container in the list of top.
type Container struct {
	Name     string
	TTL      string // its default: seconds, -1 or off
	Living   int64  // items
	Expiring int64  // those of them that will die
	MeanLeft int64  // ms that these have left
	Memory   int64  // bytes
}

func clients(n int64) string {
	if n == 1 {
		return "1 client"
	}
	return Count(n) + " clients"
}

// rate returns a number a second, by a format; a dash if it is not known.
func (t *Figures) rate(n int64, format func(int64) string) string {
	if !t.Rates {
		return "-"
	}
	return format(n)
}

func (t *Figures) summary() []string {
	rate := func(n int64) string { return t.rate(n, Count) }
	memory := Bytes(t.Used)
	if t.MaxMemory > 0 {
		memory += " of " + Bytes(t.MaxMemory)
	}
	return []string{
		"commands/s " + rate(t.Commands), "deaths/s " + rate(t.Deaths), "purge lag " + Micros(t.OldestDead*1000),
		"commits/s " + rate(t.Commits), "commit " + Micros(t.CommitLast) + " (p99 " + Micros(t.CommitSlow) + ")",
		"living " + Count(t.Living), "memory " + memory,
	}
}

// Top returns a screen of at most height lines.
func Top(t *Figures, width, height int, s Style) (lines []string) {
	head := []string{"mayfly " + Printable(t.Version) + " at " + Printable(t.Address), "up " + Span(t.Uptime), clients(t.Clients)}
	if t.Role != "" {
		head = append(head, Printable(t.Role))
	}
	for _, line := range flow(head, width) {
		lines = append(lines, s.paint(bold, line))
	}
	lines = append(lines, flow(t.summary(), width)...)
	if bars := min(height-len(lines)-10, 8); t.Forecast != nil && bars >= 2 {
		lines = append(append(lines, ""), Histogram(t.Forecast, width, bars, s)...)
	}
	if room := height - len(lines) - 4; len(t.Containers) > 0 && room > 0 {
		lines = append(lines, "", s.paint(bold, cut(row("container", "default", "living", "dying", "mean left", "memory"), width)))
		shown := t.Containers[:min(len(t.Containers), room)]
		for _, c := range shown {
			left := "-"
			if c.Expiring > 0 {
				left = Span(c.MeanLeft / 1000)
			}
			lines = append(lines, cut(row(Printable(c.Name), ttl(c.TTL), Count(c.Living), Count(c.Expiring), left, Bytes(c.Memory)), width))
		}
		if more := t.More + len(t.Containers) - len(shown); more > 0 {
			lines = append(lines, cut(fmt.Sprintf("and %s more", Count(int64(more))), width))
		}
	}
	lines = append(lines, cut("q quits", width))
	return lines[:min(len(lines), height)]
}

func ttl(text string) string {
	if text == "off" || text == "-1" {
		return text
	}
	return text + " s"
}

// row returns a line of the list of containers.
func row(name string, columns ...string) string {
	if runes := []rune(name); len(runes) > 20 {
		name = string(runes[:19]) + "~"
	}
	line := fmt.Sprintf("%-20s", name)
	for _, c := range columns {
		line += fmt.Sprintf(" %11s", c)
	}
	return strings.TrimRight(line, " ")
}

// Line returns the figures as a line for programs and logs. A rate that is not known yet is a dash.
func Line(t *Figures) string {
	digits := func(n int64) string { return strconv.FormatInt(n, 10) }
	return fmt.Sprintf("%s commands %s deaths %s commits %s commit_usec %d commit_p99_usec %d oldest_dead_ms %d living %d memory %d clients %d",
		at(t.Now), t.rate(t.Commands, digits), t.rate(t.Deaths, digits), t.rate(t.Commits, digits), t.CommitLast, t.CommitSlow, t.OldestDead, t.Living, t.Used, t.Clients)
}
