package commands

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

// Every command that runs is timed. A clock reading costs about as much as looking a key up, so the
// end of a command is the start of the next in a pipeline: reading and answering count with the
// command after. What a reply waits for afterwards, that the disk has what it tells, is not in it.

// commandFigures count the calls of one command by some of the sessions.
type callStats struct {
	durations durationCounter
	time      atomic.Int64 // ns, of all calls
	failed    atomic.Int64 // calls answered by an error
	rejected  atomic.Int64 // calls that were not let in
}

// mostCommands bounds the number of commands and subcommands.
const maxCommands = 512

// commandShard holds the figures of the commands by their rows' numbers; nil as long as there is
// nothing to count.
type callStatsShard [maxCommands]atomic.Pointer[callStats]

// of gives the figures of a row.
func (s *callStatsShard) stats(r *row) *callStats {
	place := &s[r.number]
	if f := place.Load(); f != nil {
		return f
	}
	place.CompareAndSwap(nil, new(callStats))
	return place.Load()
}

// reset begins anew. Calls that end at this moment may be lost.
func (s *callStatsShard) reset() {
	for i := range s {
		if s[i].Load() != nil {
			s[i].Store(new(callStats))
		}
	}
}

// CommandStats are the figures of a command since the start or the last CONFIG RESETSTAT.
type CommandStats struct {
	Name      string // full, "config|get"
	Calls     int64
	Time      time.Duration // of all calls
	Failed    int64         // calls answered by an error
	Rejected  int64         // calls that were not let in: too few arguments, no password, no room …
	Durations Histogram
}

// CommandStats gives the figures of all commands that have been called, by name.
func (e *Engine) CommandStats() []CommandStats {
	var list []CommandStats
	for _, r := range allRows {
		if s := e.commandStats(r); s.Calls > 0 || s.Rejected > 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b CommandStats) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (e *Engine) commandStats(r *row) CommandStats {
	total := CommandStats{Name: r.full}
	for i := range e.stats.commands {
		f := e.stats.commands[i][r.number].Load()
		if f == nil {
			continue
		}
		total.Durations.merge(&f.durations)
		total.Time += time.Duration(f.time.Load())
		total.Failed += f.failed.Load()
		total.Rejected += f.rejected.Load()
	}
	total.Calls = total.Durations.Count
	return total
}

// errorCounts count error replies by their codes.
type errorCounts struct {
	mu     sync.Mutex // protects byCode
	byCode map[string]int64
}

// mostErrorCodes bounds how many codes are told apart: they are ours, but a mistake of ours shall not
// cost memory without end.
const maxErrorCodes = 128

// count counts an error by its code, the word that it begins with.
func (c *errorCounts) increment(text string) {
	code, _, ok := strings.Cut(text, " ")
	if !ok || len(code) > 32 {
		code = "ERR"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.byCode[code]
	switch {
	case known:
	case c.byCode == nil:
		c.byCode = make(map[string]int64)
	case len(c.byCode) >= maxErrorCodes:
		code = "ERR"
	}
	c.byCode[code]++
}

// ErrorStats gives the number of error replies by code since the start or the last CONFIG RESETSTAT.
func (e *Engine) ErrorStats() map[string]int64 {
	sum := make(map[string]int64)
	for i := range e.stats.errors {
		c := &e.stats.errors[i]
		c.mu.Lock()
		for code, n := range c.byCode {
			sum[code] += n
		}
		c.mu.Unlock()
	}
	return sum
}

// resetCommandStats lets the figures of commands and of error codes begin at zero.
func (st *statistics) resetCommandStats() {
	for i := range st.commands {
		st.commands[i].reset()
	}
	for i := range st.errors {
		c := &st.errors[i]
		c.mu.Lock()
		clear(c.byCode)
		c.mu.Unlock()
	}
}

// Pause tells that the session has waited, or will, for its client or the disk: the next command does
// not begin where the last one ended.
func (s *Session) ResetTimer() { s.lastEnd = 0 }

// begins gives the moment at which a command begins.
func (s *Session) startTime() time.Duration {
	if s.lastEnd != 0 {
		return s.lastEnd
	}
	return clock.Monotonic()
}

// finished does what is due when a command has run since the moment start: it counts it and shows it
// to those who watch.
func (e *Engine) recordCall(s *Session, r *row, args []string, start time.Duration, reply *Reply) {
	s.lastEnd = clock.Monotonic()
	took := s.lastEnd - start
	e.stats.countCall(s, r, took, reply.Kind == KindError)
	if e.Slowlog.exceeds(took) && r.Flags&SkipSlowlog == 0 {
		e.Slowlog.record(s, e.Keyspace.Now(), took, redacted(r, args))
	}
	if e.Latency.exceeds(took) {
		event := latencyOfCommand
		if r.Flags&Fast != 0 {
			event = latencyOfFast
		}
		e.Latency.record(event, e.Keyspace.Now(), took)
	}
	if e.Broker.monitoringSessions.Load() > 0 && r.Flags&Admin == 0 {
		e.Broker.showCommand(s, e.Keyspace.Micros(), redacted(r, args))
	}
}

func (r *infoReport) commandStats() {
	for _, c := range r.x.Engine.CommandStats() {
		usec := c.Time.Microseconds()
		r.fieldf("cmdstat_"+c.Name, "calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			c.Calls, usec, float64(c.Time)/float64(time.Microsecond)/float64(max(c.Calls, 1)), c.Rejected, c.Failed)
	}
}

func (r *infoReport) latencyStats() {
	for _, c := range r.x.Engine.CommandStats() {
		if c.Calls > 0 {
			r.fieldf("latency_percentiles_usec_"+c.Name, "p50=%.3f,p99=%.3f,p99.9=%.3f",
				microseconds(c.Durations.Percentile(50)), microseconds(c.Durations.Percentile(99)), microseconds(c.Durations.Percentile(99.9)))
		}
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (r *infoReport) errorStats() {
	counts := r.x.Engine.ErrorStats()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		r.fieldf("errorstat_"+code, "count=%d", counts[code])
	}
}
