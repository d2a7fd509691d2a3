package commands

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry"
)

// statistics count what the engine does. The zero value is ready; safe for concurrent use.
type statistics struct {
	// Every command counts. So that sessions on different processors do not fight for one cache
	// line, they count in different places, which are summed when somebody asks.
	shards [statShards]struct {
		countCall atomic.Int64 // commands
		failed    atomic.Int64 // error replies
		hits      atomic.Int64 // items that somebody asked for and got
		misses    atomic.Int64 // items that were not there
		_         [96]byte     // two cache lines: processors fetch them in pairs
	}
	commands [statShards]callStatsShard
	errors   [statShards]errorCounts
	rates    rates

	mu         sync.Mutex // protects what follows
	base       counters   // as they were at the last CONFIG RESETSTAT
	peakMemory uint64     // the most memory that INFO has found in use, in bytes
}

const statShards = 64

// shardOf is the number of the shard in which a session counts.
func shardOf(s *Session) int { return int(s.ID % statShards) }

// counters are all figures that only grow and that CONFIG RESETSTAT sets back.
type counters struct {
	commands    int64 // run
	errors      int64 // error replies
	hits        int64 // items that somebody asked for and got
	misses      int64 // items that were not there
	connections int64 // accepted
	rejected    int64 // connections refused
	netInput    int64 // bytes
	netOutput   int64 // bytes
	expiry      expiry.Stats
	evicted     int64 // items
}

// ran counts a command that has run.
func (st *statistics) countCall(s *Session, r *row, took time.Duration, failed bool) {
	shard := shardOf(s)
	st.shards[shard].countCall.Add(1)
	f := st.commands[shard].stats(r)
	f.durations.observe(took)
	f.time.Add(int64(took))
	if failed {
		f.failed.Add(1)
	}
}

// rejected counts a command that was not let in.
func (st *statistics) countRejected(s *Session, r *row) {
	st.commands[shardOf(s)].stats(r).rejected.Add(1)
}

// answered counts a reply if it is an error.
func (st *statistics) countReply(s *Session, r *Reply) {
	if r.Kind == KindError {
		st.shards[shardOf(s)].failed.Add(1)
		st.errors[shardOf(s)].increment(r.Str)
	}
}

// asked counts an item that a client has asked for.
func (st *statistics) countRead(s *Session, found bool) {
	if found {
		st.shards[shardOf(s)].hits.Add(1)
	} else {
		st.shards[shardOf(s)].misses.Add(1)
	}
}

// sinceStart gives the counters since the start of the server.
func (e *Engine) sinceStart() counters {
	host := e.Host.Info()
	c := counters{
		connections: host.TotalConnections,
		rejected:    host.Rejected,
		netInput:    host.NetInput,
		netOutput:   host.NetOutput,
		expiry:      e.Keyspace.Stats().Expiry,
		evicted:     e.memory.evicted.Load(),
	}
	for i := range e.stats.shards {
		c.commands += e.stats.shards[i].countCall.Load()
		c.errors += e.stats.shards[i].failed.Load()
		c.hits += e.stats.shards[i].hits.Load()
		c.misses += e.stats.shards[i].misses.Load()
	}
	return c
}

// sinceReset gives the counters since the last CONFIG RESETSTAT. What is not a sum (shares, the
// longest cycle) is since the start.
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
	c.expiry.RemovedLazily -= base.expiry.RemovedLazily
	c.expiry.RemovedActively -= base.expiry.RemovedActively
	c.expiry.Sampled -= base.expiry.Sampled
	c.expiry.Cycles -= base.expiry.Cycles
	c.expiry.TimeSpent -= base.expiry.TimeSpent
	c.expiry.CapReached -= base.expiry.CapReached
	return c
}

// resetStatistics lets all counters begin at zero. The counters themselves go on, so that nobody
// who counts has to look out for it.
func (e *Engine) resetStatistics() {
	c := e.sinceStart()
	e.stats.resetCommandStats()
	e.stats.rates.reset()
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	e.stats.base, e.stats.peakMemory = c, 0
}

// peak notes how much memory is in use and returns the most there has been, in bytes.
func (st *statistics) notePeak(used uint64) uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.peakMemory = max(st.peakMemory, used)
	return st.peakMemory
}

// SampleInterval is how often [Engine.Sample] should be called.
const SampleInterval = 100 * time.Millisecond

// rates are how fast some counters have grown of late: over 16 samples, as in Redis. The zero value is
// ready; safe for concurrent use.
type rates struct {
	mu   sync.Mutex // protects what follows
	ring [16]rateSample
	next int // where the next sample goes; before it is the newest, after it the oldest
	held int
}

// rateSample is what the counters were at a moment of the monotonic clock.
type rateSample struct {
	at                            time.Duration
	commands, netInput, netOutput int64
}

// perSecond is what the counters grow by in a second.
type perSecond struct{ commands, netInput, netOutput float64 }

// Sample notes how far the counters are at a moment of the monotonic clock, for the instantaneous
// figures of INFO.
func (e *Engine) Sample(now time.Duration) {
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

// now gives the rates; zero before there are two samples.
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

// reset forgets the samples.
func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = 0
}
