package engine

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/latency"
	"mayfly/expiry/clock"
)

// Every command is timed. Reading the clock costs about as much as a look-up. So in a pipeline the end of
// a command is the start of the next. Reading and rendering count with the following command. The wait
// for the commit does not count.

// callStats are the statistics of one command in one shard.
type callStats struct {
	durations latency.Counter
	untracked atomic.Int64 // calls that are not in durations: see SetLatencyTracking
	time      atomic.Int64 // ns, of all calls
	failed    atomic.Int64 // calls with an error as reply
	rejected  atomic.Int64 // calls that did not run
}

// maxCommands bounds the number of commands and subcommands.
const maxCommands = 512

// callStatsShard holds statistics by the numbers of rows; nil for commands never called.
type callStatsShard [maxCommands]atomic.Pointer[callStats]

// stats returns the statistics of a row.
func (s *callStatsShard) stats(r *Row) *callStats {
	place := &s[r.Number]
	if f := place.Load(); f != nil {
		return f
	}
	place.CompareAndSwap(nil, new(callStats))
	return place.Load()
}

// reset restarts the statistics. It may lose calls that end at the same time.
func (s *callStatsShard) reset() {
	for i := range s {
		if s[i].Load() != nil {
			s[i].Store(new(callStats))
		}
	}
}

// CommandStats are the statistics of a command since the start or the last CONFIG RESETSTAT.
type CommandStats struct {
	Name      string // full, "config|get"
	Calls     int64
	Time      time.Duration     // of all calls
	Failed    int64             // calls with an error as reply
	Rejected  int64             // calls that did not run: too few arguments, no password, no memory …
	Durations latency.Histogram // of the calls while latency-tracking was on
}

// CommandStats returns the statistics of all commands that were called, sorted by name.
func (e *Engine) CommandStats() []CommandStats {
	var list []CommandStats
	for _, r := range AllRows {
		if s := e.StatsOf(r); s.Calls > 0 || s.Rejected > 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b CommandStats) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (e *Engine) StatsOf(r *Row) CommandStats {
	total := CommandStats{Name: r.FullName}
	for i := range e.Stats.commands {
		f := e.Stats.commands[i][r.Number].Load()
		if f == nil {
			continue
		}
		total.Durations.Merge(&f.durations)
		total.Calls += f.untracked.Load()
		total.Time += time.Duration(f.time.Load())
		total.Failed += f.failed.Load()
		total.Rejected += f.rejected.Load()
	}
	total.Calls += total.Durations.Count
	return total
}

// errorCounts count errors by code.
type errorCounts struct {
	mu     sync.Mutex // protects byCode
	byCode map[string]int64
}

// maxErrorCodes bounds the number of codes. All codes are ours, but a mistake of ours must not cost
// unbounded memory.
const maxErrorCodes = 128

// increment counts an error by its code, the first word.
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

// ErrorStats returns the number of errors by code since the start or the last CONFIG RESETSTAT.
func (e *Engine) ErrorStats() map[string]int64 {
	sum := make(map[string]int64)
	for i := range e.Stats.errors {
		c := &e.Stats.errors[i]
		c.mu.Lock()
		for code, n := range c.byCode {
			sum[code] += n
		}
		c.mu.Unlock()
	}
	return sum
}

// resetCommandStats restarts the statistics of commands and the counts of error codes.
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

// ResetTimer notes that the session waits for its client or the disk. So the next command does not start
// at the end of the last one.
func (s *Session) ResetTimer() { s.lastEnd = 0 }

// LastEnd returns when the session's last command ended, as clock.Monotonic says. It returns 0 if that is
// not known.
func (s *Session) LastEnd() time.Duration { return s.lastEnd }

// StartTime returns the start of a command.
func (s *Session) StartTime() time.Duration {
	if s.lastEnd != 0 {
		return s.lastEnd
	}
	return clock.Monotonic()
}

// recordCall counts a command that has run since start, and shows it in SLOWLOG, LATENCY and MONITOR.
func (e *Engine) recordCall(s *Session, r *Row, args []string, start time.Duration, reply *Reply) {
	s.lastEnd = clock.Monotonic()
	took := s.lastEnd - start
	e.Stats.countCall(s, r, took, reply.Kind == KindError)
	if e.Slowlog.Exceeds(took) && r.Flags&SkipSlowlog == 0 {
		e.Slowlog.Record(s.Addr, s.Name, e.Now(), took, redacted(r, args))
	}
	if e.Latency.Exceeds(took) {
		event := latency.OfCommand
		if r.Flags&Fast != 0 {
			event = latency.OfFast
		}
		e.Latency.Record(event, e.Now(), took)
	}
	if e.Broker.MonitoringSessions.Load() > 0 && r.Flags&Admin == 0 && !(r.Scope == ScopeScript && s.script.shown) {
		e.Broker.showCommand(s, e.Micros(), redacted(r, args))
	}
}
