package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry"
)

// statistics count what the engine does. The zero value is ready. Safe for concurrent use.
type statistics struct {
	// Every command counts. Sessions count in different shards, so that processors do not contend for
	// one cache line. Readers sum the shards.
	shards [statShards]struct {
		countCall atomic.Int64 // commands
		failed    atomic.Int64 // error replies
		hits      atomic.Int64 // reads of existing items
		misses    atomic.Int64 // reads of missing items
		_         [96]byte     // two cache lines: processors fetch them in pairs
	}
	commands [statShards]callStatsShard
	errors   [statShards]errorCounts
	Rates    rates
	latency  latencyTracking

	mu         sync.Mutex // protects what follows
	base       counters   // as they were at the last CONFIG RESETSTAT
	peakMemory uint64     // the largest memory use that INFO has seen, bytes
}

const statShards = 64

// shardOf returns the number of a session's shard.
func shardOf(s *Session) int { return int(s.ID % statShards) }

// counters are the figures that only grow and that CONFIG RESETSTAT resets.
type counters struct {
	Commands    int64 // run
	Errors      int64 // error replies
	Hits        int64 // reads of existing items
	Misses      int64 // reads of missing items
	Connections int64 // accepted
	Rejected    int64 // connections refused
	NetInput    int64 // bytes
	NetOutput   int64 // bytes
	Expiry      expiry.Stats
	Elements    int64 // that have died and were removed
	Evicted     int64 // items
	Denied      int64 // wrong passwords
	Queries     QueryCounts
}

// countCall counts a command that has run.
func (st *statistics) countCall(s *Session, r *Row, took time.Duration, failed bool) {
	shard := shardOf(s)
	st.shards[shard].countCall.Add(1)
	f := st.commands[shard].stats(r)
	if st.latency.off.Load() {
		f.untracked.Add(1)
	} else {
		f.durations.Observe(took)
	}
	f.time.Add(int64(took))
	if failed {
		f.failed.Add(1)
	}
}

// countRejected counts a rejected command.
func (st *statistics) countRejected(s *Session, r *Row) {
	st.commands[shardOf(s)].stats(r).rejected.Add(1)
}

// countReply counts a reply if it is an error.
func (st *statistics) countReply(s *Session, r *Reply) {
	if r.Kind == KindError {
		st.shards[shardOf(s)].failed.Add(1)
		st.errors[shardOf(s)].increment(r.Str)
	}
}

// CountRead counts a read of an item.
func (st *statistics) countRead(s *Session, found bool) {
	if found {
		st.shards[shardOf(s)].hits.Add(1)
	} else {
		st.shards[shardOf(s)].misses.Add(1)
	}
}

// SinceStart returns the counters since the start of the server.
func (e *Engine) SinceStart() counters {
	host, data := e.Host.Info(), e.KeyspaceStats()
	c := counters{
		Connections: host.TotalConnections,
		Rejected:    host.Rejected,
		NetInput:    host.NetInput,
		NetOutput:   host.NetOutput,
		Expiry:      data.Expiry,
		Elements:    data.ExpiredElements,
		Evicted:     e.Memory.Evicted.Load(),
		Denied:      e.Auth.Denied.Load(),
		Queries:     e.Queries.read(),
	}
	for i := range e.Stats.shards {
		c.Commands += e.Stats.shards[i].countCall.Load()
		c.Errors += e.Stats.shards[i].failed.Load()
		c.Hits += e.Stats.shards[i].hits.Load()
		c.Misses += e.Stats.shards[i].misses.Load()
	}
	return c
}

// SinceReset returns the counters since the last CONFIG RESETSTAT. Figures that are no sums (shares, the
// longest cycle) count since the start.
func (e *Engine) SinceReset() counters {
	c := e.SinceStart()
	e.Stats.mu.Lock()
	base := e.Stats.base
	e.Stats.mu.Unlock()
	c.Commands -= base.Commands
	c.Errors -= base.Errors
	c.Hits -= base.Hits
	c.Misses -= base.Misses
	c.Connections -= base.Connections
	c.Rejected -= base.Rejected
	c.NetInput -= base.NetInput
	c.NetOutput -= base.NetOutput
	c.Evicted -= base.Evicted
	c.Denied -= base.Denied
	c.Queries = c.Queries.plus(base.Queries, -1)
	c.Elements -= base.Elements
	c.Expiry.RemovedLazily -= base.Expiry.RemovedLazily
	c.Expiry.RemovedActively -= base.Expiry.RemovedActively
	c.Expiry.Sampled -= base.Expiry.Sampled
	c.Expiry.Cycles -= base.Expiry.Cycles
	c.Expiry.TimeSpent -= base.Expiry.TimeSpent
	c.Expiry.CapReached -= base.Expiry.CapReached
	return c
}

// ResetStatistics restarts all counters at zero. The counters themselves continue, so that writers need
// no lock.
func (e *Engine) ResetStatistics() {
	c := e.SinceStart()
	e.Stats.resetCommandStats()
	e.Host.Users().Log.ResetDenied()
	e.Stats.Rates.reset()
	e.Stats.mu.Lock()
	defer e.Stats.mu.Unlock()
	e.Stats.base, e.Stats.peakMemory = c, 0
}

// NotePeak notes the current memory use and returns the largest, in bytes.
func (st *statistics) NotePeak(used uint64) uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.peakMemory = max(st.peakMemory, used)
	return st.peakMemory
}

// SampleInterval is the interval between calls of [Engine.Sample].
const SampleInterval = 100 * time.Millisecond

// rates are the recent growth of some counters: over 16 samples, as in Redis. The zero value is ready.
// Safe for concurrent use.
type rates struct {
	mu   sync.Mutex // protects what follows
	ring [16]rateSample
	next int // the index of the next sample, between the newest and the oldest
	held int
}

// rateSample is the counters at a time of the monotonic clock.
type rateSample struct {
	at                            time.Duration
	commands, netInput, netOutput int64
}

// perSecond is the growth of the counters in a second.
type perSecond struct{ Commands, NetInput, NetOutput float64 }

// Sample samples the counters at a time of the monotonic clock, for the instantaneous figures of INFO.
// It also logs wrong passwords that no line has counted.
func (e *Engine) Sample(now time.Duration) {
	e.LogWrongPasswords()
	e.reportScriptLog(now)
	host := e.Host.Info()
	s := rateSample{at: now, netInput: host.NetInput, netOutput: host.NetOutput}
	for i := range e.Stats.shards {
		s.commands += e.Stats.shards[i].countCall.Load()
	}
	r := &e.Stats.Rates
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = s
	r.next = (r.next + 1) % len(r.ring)
	r.held = min(r.held+1, len(r.ring))
}

// Now returns the rates; zero before the second sample.
func (r *rates) Now() perSecond {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.ring)
	newest, oldest := &r.ring[(r.next+n-1)%n], &r.ring[(r.next+n-r.held)%n]
	seconds := (newest.at - oldest.at).Seconds()
	if r.held < 2 || seconds <= 0 {
		return perSecond{}
	}
	return perSecond{
		Commands:  float64(newest.commands-oldest.commands) / seconds,
		NetInput:  float64(newest.netInput-oldest.netInput) / seconds,
		NetOutput: float64(newest.netOutput-oldest.netOutput) / seconds,
	}
}

// reset drops the samples.
func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = 0
}

// QueryCounts count queries and what they have read, for INFO.
type QueryCounts struct{ Queries, Scans, Examined, Dead, Slices, OverBudget int64 }

// plus returns the counts with others added a number of times; -1 subtracts them.
func (c QueryCounts) plus(other QueryCounts, times int64) QueryCounts {
	c.Queries += times * other.Queries
	c.Scans += times * other.Scans
	c.Examined += times * other.Examined
	c.Dead += times * other.Dead
	c.Slices += times * other.Slices
	c.OverBudget += times * other.OverBudget
	return c
}

// queryStats are the counts since the start. Safe for concurrent use.
type queryStats struct {
	mu     sync.Mutex // protects counts
	counts QueryCounts
}

// Add adds counts.
func (s *queryStats) Add(c QueryCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = s.counts.plus(c, 1)
}

func (s *queryStats) read() QueryCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}
