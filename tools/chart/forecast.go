package chart

import (
	"fmt"
	"strings"
	"time"
)

// Amount is a number of items.
type Amount struct{ Items, Bytes int64 } // bytes of ids and bodies

// Bucket is what dies in one step of time.
type Bucket struct {
	From int64 // ms since 1970
	Amount
	Own Amount // part of it: by an end of its own
}

// Forecast is what dies when.
type Forecast struct {
	Name    string // of the container; empty for all
	Now     int64  // ms since 1970
	Every   int64  // s; the width of a bucket
	Buckets []Bucket
	Overdue Amount // dies when a hold ends
	Later   Amount // behind the last bucket
	Never   Amount
}

// Style says how a terminal shows marks.
type Style struct {
	Color bool // escape sequences for colours
	ASCII bool // no other characters
}

// The marks of a histogram, and the colours that they have beside their form.
const (
	byDefault = 0
	byOwn     = 1
	cyan      = "\x1b[36m"
	yellow    = "\x1b[33m"
	bold      = "\x1b[1m"
	plain     = "\x1b[0m"
)

func (s Style) mark(of, n int) string {
	marks, colors := [2]string{"█", "▒"}, [2]string{cyan, yellow}
	if s.ASCII {
		marks = [2]string{"#", "o"}
	}
	return s.paint(colors[of], strings.Repeat(marks[of], n))
}

func (s Style) paint(color, text string) string {
	if !s.Color {
		return text
	}
	return color + text + plain
}

// labels is the width of the numbers beside a histogram.
const labels = 7

// Columns returns the histogram of a forecast, at most width wide, with bars of up to height lines. Buckets
// that do not fit share a bar.
func Columns(f *Forecast, width, height int, s Style) (lines []string) {
	plot := max(width-labels-1, 1)
	share := max((len(f.Buckets)+plot-1)/plot, 1)
	bars := make([]Bucket, 0, len(f.Buckets)/share+1)
	for i, b := range f.Buckets {
		if i%share == 0 {
			bars = append(bars, b)
			continue
		}
		last := &bars[len(bars)-1]
		last.Items += b.Items
		last.Own.Items += b.Own.Items
	}
	step := min(max(plot/max(len(bars), 1), 1), 4)
	bar, gap := step, ""
	if step > 1 {
		bar, gap = step-1, " "
	}
	most := int64(0)
	for _, b := range bars {
		most = max(most, b.Items)
	}
	axis, corner, line := "┤", "└", "─"
	if s.ASCII {
		axis, corner, line = "|", "+", "-"
	}
	for row := height; row > 0; row-- {
		label := ""
		switch row {
		case height:
			label = Short(most)
		case (height + 1) / 2:
			if most > 1 {
				label = Short(most / 2)
			}
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%*s%s", labels, label, axis)
		blank := 0
		for _, b := range bars {
			own, all := cells(b, most, height)
			if row > all {
				blank += step
				continue
			}
			text.WriteString(strings.Repeat(" ", blank))
			blank = len(gap)
			kind := byDefault
			if row <= own {
				kind = byOwn
			}
			text.WriteString(s.mark(kind, bar))
		}
		lines = append(lines, text.String())
	}
	used := step*len(bars) - len(gap)
	lines = append(lines, strings.Repeat(" ", labels)+corner+strings.Repeat(line, max(used, 0)))
	return append(lines, strings.Repeat(" ", labels+1)+times(f, used))
}

// cells returns the height of a bar in lines, and of its lower part that dies by ends of their own. What is
// not nothing is one line at least.
func cells(b Bucket, most int64, height int) (own, all int) {
	if b.Items == 0 {
		return 0, 0
	}
	scaled := func(n int64) int { return int((n*int64(height) + most/2) / most) }
	all, own = max(scaled(b.Items), 1), scaled(b.Own.Items)
	if b.Own.Items > 0 && own == 0 {
		own = 1
	}
	switch {
	case b.Own.Items == b.Items:
		own = all
	case own >= all && all > 1:
		own = all - 1
	case own >= all && 2*b.Own.Items < b.Items:
		own = 0
	}
	return own, all
}

// times returns the line below a histogram: how far from now its parts are.
func times(f *Forecast, width int) string {
	steps := max(len(f.Buckets)-1, 1) // the first bucket has begun
	whole := int64(steps) * f.Every
	line := []byte(strings.Repeat(" ", max(width, 0)))
	free := 0
	for quarter := range int64(4) {
		begin, label := int(quarter)*width*steps/(4*max(len(f.Buckets), 1)), "now"
		if quarter > 0 {
			label = "+" + Span(whole*quarter/4)
		}
		if begin >= free && begin+len(label) <= len(line) {
			copy(line[begin:], label)
			free = begin + len(label) + 1
		}
	}
	return strings.TrimRight(string(line), " ")
}

// Legend returns what the marks of a forecast mean and the amounts that no bar shows, in lines of at most
// width.
func Legend(f *Forecast, width int, s Style) []string {
	var own, all int64
	for _, b := range f.Buckets {
		own += b.Own.Items
		all += b.Items
	}
	parts := []string{
		s.mark(byDefault, 1) + " by the default: " + Count(all-own), s.mark(byOwn, 1) + " by an end of its own: " + Count(own),
		"later: " + Count(f.Later.Items), "never: " + Count(f.Never.Items),
	}
	if f.Overdue.Items > 0 {
		parts = append(parts, "when the hold ends: "+Count(f.Overdue.Items))
	}
	return flow(parts, width)
}

// flow puts parts into lines of at most width, three spaces between them.
func flow(parts []string, width int) (lines []string) {
	for _, part := range parts {
		if last := len(lines) - 1; last >= 0 && wide(lines[last])+3+wide(part) <= width {
			lines[last] += "   " + part
		} else {
			lines = append(lines, part)
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(cut(lines[i], width), " ")
	}
	return lines
}

// Histogram returns a forecast as a terminal shows it: title, histogram, legend.
func Histogram(f *Forecast, width, height int, s Style) []string {
	title := "all containers"
	if f.Name != "" {
		title = Printable(f.Name)
	}
	lines := []string{s.paint(bold, cut(title+": what dies in the next "+Span(f.Every*int64(len(f.Buckets)-1)), width))}
	for _, line := range Columns(f, width, height, s) {
		lines = append(lines, cut(line, width))
	}
	return append(lines, Legend(f, width, s)...)
}

// List returns a forecast as lines for programs and logs: one for each bucket, then the others.
func List(f *Forecast) (lines []string) {
	for _, b := range f.Buckets {
		lines = append(lines, fmt.Sprintf("%s items %d bytes %d own %d ownbytes %d",
			at(b.From), b.Items, b.Bytes, b.Own.Items, b.Own.Bytes))
	}
	for _, rest := range []struct {
		name string
		Amount
	}{{"later", f.Later}, {"never", f.Never}, {"overdue", f.Overdue}} {
		lines = append(lines, fmt.Sprintf("%s items %d bytes %d", rest.name, rest.Items, rest.Bytes))
	}
	return lines
}

// at returns a moment in ms since 1970.
func at(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z") }
