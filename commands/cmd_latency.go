package commands

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
)

// latencyCommand reports how long commands take, and when something took too long.
var latencyCommand = Command{
	Name: "latency", Since: "2.8.13", Summary: "A container for latency diagnostics commands",
	Sub: []Command{
		latencyRow(Command{
			Name: "doctor", Summary: "Return a human readable latency analysis report.",
			Differs: "Gives other advice",
			Parse:   noParse(func(x *Context) Reply { return Verbatim(x.Engine.Latency.doctor()) }),
		}),
		latencyRow(Command{
			Name: "graph", Syntax: "event", Summary: "Return a latency graph for the event.",
			Parse: noParse(runLatencyGraph),
		}),
		with(helpRow("latency", "2.8.13"), func(c *Command) { c.Summary += "." }),
		latencyRow(Command{
			Name: "histogram", Syntax: "[command [command ...]]", Since: "7.0.0",
			Summary: "Return the cumulative distribution of latencies of a subset of commands or all.",
			Parse:   parseLatencyHistogram,
		}),
		latencyRow(Command{
			Name: "history", Syntax: "event", Summary: "Return timestamp-latency samples for the event.",
			Parse: noParse(runLatencyHistory),
		}),
		latencyRow(Command{
			Name: "latest", Summary: "Return the latest latency samples for all events.",
			Differs: "The events are `command`, `fast-command` and `aof-write`, the wait for the commit",
			Parse:   noParse(runLatencyLatest),
		}),
		latencyRow(Command{
			Name: "reset", Syntax: "[event [event ...]]", Summary: "Reset latency data for one or more events.",
			Tips:  "request_policy:all_nodes response_policy:all_succeeded",
			Parse: noParse(runLatencyReset),
		}),
	},
}

// latencyRow fills in what the subcommands of LATENCY have in common.
func latencyRow(c Command) Command {
	c.Flags = Admin | NoScript | Loading | Stale | OnNode
	c.Tips = cmp.Or(c.Tips, "nondeterministic_output request_policy:all_nodes response_policy:special")
	return c
}

// The events of the latency monitor, with the names of Redis.
const (
	latencyOfCommand = "command"      // commands without the flag Fast
	latencyOfFast    = "fast-command" // commands of constant or logarithmic time
	latencyOfCommit  = "aof-write"    // waits of replies for their commit
)

// LatencyMonitor keeps samples of events that took at least latency-monitor-threshold. The zero value is
// off. Safe for concurrent use.
type LatencyMonitor struct {
	threshold

	mu     sync.Mutex // protects events
	events map[string]*latencySeries
}

// latencySeries are the newest samples of an event, at most one a second, the longest.
type latencySeries struct {
	samples []latencySample // the oldest first
	worst   int64           // of all since the last reset, ms
}

type latencySample struct {
	second int64 // since 1970
	took   int64 // ms
}

const maxLatencySamples = 160 // as in Redis

// SetThreshold sets the shortest duration that is recorded; 0 records nothing.
func (m *LatencyMonitor) SetThreshold(limit time.Duration) { m.shortest.Store(int64(limit)) }

// record adds a sample; now is in ms.
func (m *LatencyMonitor) record(event string, now int64, duration time.Duration) {
	second, took := now/1000, duration.Milliseconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.events[event]
	if s == nil {
		s = new(latencySeries)
		if m.events == nil {
			m.events = make(map[string]*latencySeries)
		}
		m.events[event] = s
	}
	s.worst = max(s.worst, took)
	if n := len(s.samples); n > 0 && s.samples[n-1].second == second {
		s.samples[n-1].took = max(s.samples[n-1].took, took)
		return
	}
	if len(s.samples) == maxLatencySamples {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	s.samples = append(s.samples, latencySample{second, took})
}

// reset drops the samples of the events, of all if none is named. It returns the number of events that
// had samples.
func (m *LatencyMonitor) reset(events []string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := len(m.events)
	if len(events) == 0 {
		clear(m.events)
	}
	for _, event := range events {
		delete(m.events, event)
	}
	return had - len(m.events)
}

// eachLocked visits the events with samples, sorted by name.
func (m *LatencyMonitor) eachLocked(visit func(event string, s *latencySeries)) {
	for _, event := range slices.Sorted(maps.Keys(m.events)) {
		visit(event, m.events[event])
	}
}

// doctor is the report of LATENCY DOCTOR.
func (m *LatencyMonitor) doctor() string {
	if m.shortest.Load() == 0 {
		return "Latency monitoring is off. Switch it on with CONFIG SET latency-monitor-threshold <milliseconds>.\n"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) == 0 {
		return "Nothing has taken longer than latency-monitor-threshold.\n"
	}
	var out strings.Builder
	m.eachLocked(func(event string, s *latencySeries) {
		average, deviation, period := s.summarize()
		fmt.Fprintf(&out, "%s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). Worst all time event %dms.\n",
			event, len(s.samples), average, deviation, period, s.worst)
	})
	if m.events[latencyOfCommit] != nil {
		out.WriteString("The disk is slow: check appendfsync and other writers.\n")
	}
	if m.events[latencyOfCommand] != nil || m.events[latencyOfFast] != nil {
		out.WriteString("Some commands are slow: SLOWLOG GET lists them, LATENCY HISTOGRAM shows how often.\n")
	}
	return out.String()
}

// summarize returns the mean of the samples and their mean deviation from it, in ms. period is the mean
// time between two samples in seconds.
func (s *latencySeries) summarize() (average, deviation int64, period float64) {
	n := int64(len(s.samples))
	for _, sample := range s.samples {
		average += sample.took
	}
	average /= n
	for _, sample := range s.samples {
		deviation += max(sample.took-average, average-sample.took)
	}
	span := s.samples[n-1].second - s.samples[0].second
	return average, deviation / n, float64(span) / float64(max(n-1, 1))
}

// Wait waits until an LSN is committed; see [keyspace.Keyspace.WaitUntil]. until is of [Engine.Deadline].
func (e *Engine) Wait(lsn keyspace.LSN, until time.Duration) error {
	return e.commit(lsn, until, false)
}

// WaitWritten is Wait for a command that has changed something; see [keyspace.Keyspace.WaitWritten].
func (e *Engine) WaitWritten(lsn keyspace.LSN, until time.Duration) error {
	ks := e.Keyspace()
	if ks == nil {
		return withoutKeyspace(lsn)
	}
	return ks.WaitWritten(lsn, until)
}

// CommitNow is Wait for a caller that serves many clients; see [keyspace.Keyspace.CommitNow]. In a cluster it fails with
// [ErrCommitting] if the commit takes long.
func (e *Engine) CommitNow(lsn keyspace.LSN, until time.Duration) error {
	if until == 0 {
		return e.commit(lsn, 0, true)
	}
	return e.commitBriefly(lsn, until)
}

// commit waits for a commit, and records a long wait.
func (e *Engine) commit(lsn keyspace.LSN, until time.Duration, now bool) error {
	ks := e.Keyspace()
	if ks == nil {
		return withoutKeyspace(lsn)
	}
	if e.Latency.shortest.Load() == 0 {
		return ks.WaitUntil(lsn, until, now)
	}
	start := clock.Monotonic()
	err := ks.WaitUntil(lsn, until, now)
	if took := clock.Monotonic() - start; e.Latency.exceeds(took) {
		e.Latency.record(latencyOfCommit, e.Now(), took)
	}
	return err
}

// withoutKeyspace ends a wait while there is no keyspace: a reply without an LSN has read nothing.
func withoutKeyspace(lsn keyspace.LSN) error {
	if lsn == 0 {
		return nil
	}
	return replica.ErrVoid
}

func runLatencyLatest(x *Context) Reply {
	m := &x.Engine.Latency
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Reply{}
	m.eachLocked(func(event string, s *latencySeries) {
		last := s.samples[len(s.samples)-1]
		list = append(list, Array(Bulk(event), Integer(last.second), Integer(last.took), Integer(s.worst)))
	})
	return Array(list...)
}

func runLatencyHistory(x *Context) Reply {
	m := &x.Engine.Latency
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Reply{}
	if s := m.events[x.Input.Args[2]]; s != nil {
		for _, sample := range s.samples {
			list = append(list, Array(Integer(sample.second), Integer(sample.took)))
		}
	}
	return Array(list...)
}

func runLatencyReset(x *Context) Reply { return Count(x.Engine.Latency.reset(x.Input.Args[2:])) }

// parseLatencyHistogram parses LATENCY HISTOGRAM. As in Redis a command stands for all its subcommands,
// and unknown names are ignored.
func parseLatencyHistogram(in *Input) (Run, error) {
	var rows []*row
	for _, name := range in.Args[2:] {
		if r := findByFullName(name); r != nil {
			rows = append(rows, r)
			rows = append(rows, r.sorted...)
		}
	}
	if len(in.Args) == 2 {
		rows = slices.Clone(allRows)
		slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.full, b.full) })
	}
	return func(x *Context) Reply {
		var list []Reply
		for _, r := range rows {
			if s := x.Engine.statsOf(r); s.Durations.Count > 0 {
				list = append(list, Bulk(r.full), distribution(&s.Durations))
			}
		}
		return Map(list...)
	}, nil
}

// distribution is the histogram of calls in µs, in the form of Redis. The bounds are powers of two, and
// empty buckets are left out.
func distribution(h *Histogram) Reply {
	var list []Reply
	before := int64(0)
	for end, shorter := range h.octaves {
		if shorter > before {
			// Redis shows the longest duration that its histogram cannot distinguish from the bound.
			bound := (end + end/128).Microseconds()
			list = append(list, Integer(bound), Integer(shorter))
		}
		before = shorter
	}
	return Map(Bulk("calls"), Integer(h.Count), Bulk("histogram_usec"), Map(list...))
}

func runLatencyGraph(x *Context) Reply {
	event := x.Input.Args[2]
	m := &x.Engine.Latency
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.events[event]
	if s == nil {
		return Fail(errorf(errNoSamples, strings.ToValidUTF8(shown(event), "?")))
	}
	return Verbatim(s.graph(event, x.Now()/1000))
}

// The size of a graph in characters. A character shows one of three heights.
const (
	graphColumns = 80
	graphRows    = 4
	graphLevels  = graphRows * len(graphMarks)
	graphMarks   = "_o#"
)

// graph draws the samples as columns, as Redis does, the oldest at the left. Below each column stands its
// age at the time now (seconds), top to bottom.
func (s *latencySeries) graph(event string, now int64) string {
	low, high := s.samples[0].took, s.samples[0].took
	for _, sample := range s.samples {
		low, high = min(low, sample.took), max(high, sample.took)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s - high %d ms, low %d ms (all time high %d ms)\n", event, high, low, s.worst)
	out.WriteString(strings.Repeat("-", graphColumns) + "\n")
	first := true
	for samples := range slices.Chunk(s.samples, graphColumns) {
		if !first {
			out.WriteByte('\n')
		}
		first = false
		heights, ages := make([]int, len(samples)), make([]string, len(samples))
		longest := 0
		for i, sample := range samples {
			height := (sample.took - low) * int64(graphLevels) / max(high-low, 1)
			heights[i] = int(min(height, int64(graphLevels-1)))
			ages[i] = briefly(now - sample.second)
			longest = max(longest, len(ages[i]))
		}
		for row := range graphRows {
			for _, height := range heights {
				out.WriteByte(graphMark(height - (graphRows-1-row)*len(graphMarks)))
			}
			out.WriteByte('\n')
		}
		out.WriteString(strings.Repeat(" ", len(samples)) + "\n")
		for row := range longest {
			for _, age := range ages {
				out.WriteByte((age + strings.Repeat(" ", longest))[row])
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// graphMark returns the character of a column in a row; height counts from the bottom of the row.
func graphMark(height int) byte {
	switch {
	case height < 0:
		return ' '
	case height < len(graphMarks):
		return graphMarks[height]
	}
	return '|'
}

// briefly formats seconds in the largest unit that fits.
func briefly(seconds int64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case seconds < minute:
		return fmt.Sprintf("%ds", seconds)
	case seconds < hour:
		return fmt.Sprintf("%dm", seconds/minute)
	case seconds < day:
		return fmt.Sprintf("%dh", seconds/hour)
	}
	return fmt.Sprintf("%dd", seconds/day)
}
