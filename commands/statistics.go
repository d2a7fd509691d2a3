package commands

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
	rates    rates
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
	commands    int64 // run
	errors      int64 // error replies
	hits        int64 // reads of existing items
	misses      int64 // reads of missing items
	connections int64 // accepted
	rejected    int64 // connections refused
	netInput    int64 // bytes
	netOutput   int64 // bytes
	expiry      expiry.Stats
	evicted     int64 // items
	denied      int64 // wrong passwords
	queries     queryCounts
}

// countCall counts a command that has run.
func (st *statistics) countCall(s *Session, r *row, took time.Duration, failed bool) {
	shard := shardOf(s)
	st.shards[shard].countCall.Add(1)
	f := st.commands[shard].stats(r)
	if st.latency.off.Load() {
		f.untracked.Add(1)
	} else {
		f.durations.observe(took)
	}
	f.time.Add(int64(took))
	if failed {
		f.failed.Add(1)
	}
}

// countRejected counts a rejected command.
func (st *statistics) countRejected(s *Session, r *row) {
	st.commands[shardOf(s)].stats(r).rejected.Add(1)
}

// countReply counts a reply if it is an error.
func (st *statistics) countReply(s *Session, r *Reply) {
	if r.Kind == KindError {
		st.shards[shardOf(s)].failed.Add(1)
		st.errors[shardOf(s)].increment(r.Str)
	}
}

// countRead counts a read of an item.
func (st *statistics) countRead(s *Session, found bool) {
	if found {
		st.shards[shardOf(s)].hits.Add(1)
	} else {
		st.shards[shardOf(s)].misses.Add(1)
	}
}

// sinceStart returns the counters since the start of the server.
func (e *Engine) sinceStart() counters {
	host := e.Host.Info()
	c := counters{
		connections: host.TotalConnections,
		rejected:    host.Rejected,
		netInput:    host.NetInput,
		netOutput:   host.NetOutput,
		expiry:      e.keyspaceStats().Expiry,
		evicted:     e.memory.evicted.Load(),
		denied:      e.auth.denied.Load(),
		queries:     e.queries.read(),
	}
	for i := range e.stats.shards {
		c.commands += e.stats.shards[i].countCall.Load()
		c.errors += e.stats.shards[i].failed.Load()
		c.hits += e.stats.shards[i].hits.Load()
		c.misses += e.stats.shards[i].misses.Load()
	}
	return c
}

// sinceReset returns the counters since the last CONFIG RESETSTAT. Figures that are no sums (shares, the
// longest cycle) count since the start.
func (e *Engine) sinceReset() counters {
	c := e.sinceStart()
	e.stats.mu.Lock()
	base := e.stats.base
	e.stats.mu.Unlock()
	c.commands -= base.commands
	c.errors -= base.errors
	c.hits -= base.hits
	c.misses -= base.misses
	c.connections -= base.connections
	c.rejected -= base.rejected
	c.netInput -= base.netInput
	c.netOutput -= base.netOutput
	c.evicted -= base.evicted
	c.denied -= base.denied
	c.queries = c.queries.plus(base.queries, -1)
	c.expiry.RemovedLazily -= base.expiry.RemovedLazily
	c.expiry.RemovedActively -= base.expiry.RemovedActively
	c.expiry.Sampled -= base.expiry.Sampled
	c.expiry.Cycles -= base.expiry.Cycles
	c.expiry.TimeSpent -= base.expiry.TimeSpent
	c.expiry.CapReached -= base.expiry.CapReached
	return c
}

// resetStatistics restarts all counters at zero. The counters themselves continue, so that writers need
// no lock.
func (e *Engine) resetStatistics() {
	c := e.sinceStart()
	e.stats.resetCommandStats()
	e.stats.rates.reset()
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	e.stats.base, e.stats.peakMemory = c, 0
}

// notePeak notes the current memory use and returns the largest, in bytes.
func (st *statistics) notePeak(used uint64) uint64 {
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
type perSecond struct{ commands, netInput, netOutput float64 }

// Sample samples the counters at a time of the monotonic clock, for the instantaneous figures of INFO.
// It also logs wrong passwords that no line has counted.
func (e *Engine) Sample(now time.Duration) {
	e.logWrongPasswords()
	e.reportScriptLog(now)
	host := e.Host.Info()
	s := rateSample{at: now, netInput: host.NetInput, netOutput: host.NetOutput}
	for i := range e.stats.shards {
		s.commands += e.stats.shards[i].countCall.Load()
	}
	r := &e.stats.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = s
	r.next = (r.next + 1) % len(r.ring)
	r.held = min(r.held+1, len(r.ring))
}

// now returns the rates; zero before the second sample.
func (r *rates) now() perSecond {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.ring)
	newest, oldest := &r.ring[(r.next+n-1)%n], &r.ring[(r.next+n-r.held)%n]
	seconds := (newest.at - oldest.at).Seconds()
	if r.held < 2 || seconds <= 0 {
		return perSecond{}
	}
	return perSecond{
		commands:  float64(newest.commands-oldest.commands) / seconds,
		netInput:  float64(newest.netInput-oldest.netInput) / seconds,
		netOutput: float64(newest.netOutput-oldest.netOutput) / seconds,
	}
}

// reset drops the samples.
func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = 0
}
