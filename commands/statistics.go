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
		ran    atomic.Int64 // commands
		failed atomic.Int64 // error replies
		hits   atomic.Int64 // items that somebody asked for and got
		misses atomic.Int64 // items that were not there
		_      [96]byte     // two cache lines: processors fetch them in pairs
	}
	commands [statShards]commandShard
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
func (st *statistics) ran(s *Session, r *row, took time.Duration, failed bool) {
	shard := shardOf(s)
	st.shards[shard].ran.Add(1)
	f := st.commands[shard].of(r)
	f.durations.count(took)
	f.time.Add(int64(took))
	if failed {
		f.failed.Add(1)
	}
}

// rejected counts a command that was not let in.
func (st *statistics) rejected(s *Session, r *row) { st.commands[shardOf(s)].of(r).rejected.Add(1) }

// answered counts a reply if it is an error.
func (st *statistics) answered(s *Session, r *Reply) {
	if r.Kind == KindError {
		st.shards[shardOf(s)].failed.Add(1)
		st.errors[shardOf(s)].count(r.Str)
	}
}

// asked counts an item that a client has asked for.
func (st *statistics) asked(s *Session, found bool) {
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
		c.commands += e.stats.shards[i].ran.Load()
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
func (st *statistics) peak(used uint64) uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.peakMemory = max(st.peakMemory, used)
	return st.peakMemory
}
