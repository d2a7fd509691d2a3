package commands

import (
	"sync"
	"sync/atomic"

	"mayfly/expiry"
)

// statistics count what the engine does. The zero value is ready; safe for concurrent use.
type statistics struct {
	// Every command counts. So that sessions on different processors do not fight for one cache
	// line, they count in different places, which are summed when somebody asks.
	shards [64]struct {
		commands atomic.Int64
		errors   atomic.Int64
		_        [112]byte // two cache lines: processors fetch them in pairs
	}

	mu         sync.Mutex // protects what follows
	base       counters   // as they were at the last CONFIG RESETSTAT
	peakMemory uint64     // the most memory that INFO has found in use, in bytes
}

// counters are all figures that only grow and that CONFIG RESETSTAT sets back.
type counters struct {
	commands    int64 // run
	errors      int64 // error replies
	connections int64 // accepted
	rejected    int64 // connections refused
	netInput    int64 // bytes
	netOutput   int64 // bytes
	expiry      expiry.Stats
}

// ran counts a command that is run.
func (st *statistics) ran(s *Session) { st.shards[s.ID%int64(len(st.shards))].commands.Add(1) }

// answered counts a reply if it is an error.
func (st *statistics) answered(s *Session, r *Reply) {
	if r.Kind == KindError {
		st.shards[s.ID%int64(len(st.shards))].errors.Add(1)
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
	}
	for i := range e.stats.shards {
		c.commands += e.stats.shards[i].commands.Load()
		c.errors += e.stats.shards[i].errors.Load()
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
	c.connections -= base.connections
	c.rejected -= base.rejected
	c.netInput -= base.netInput
	c.netOutput -= base.netOutput
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
