package commands

import (
	"sync/atomic"

	"mayfly/keyspace"
)

// Eviction says what happens when the items take more memory than maxmemory (maxmemory-policy).
type Eviction int32

// The policies, named as in Redis.
const (
	NoEviction  Eviction = iota // what may grow memory is refused
	VolatileTTL                 // items that have an end go, those nearest to it first; if none is left, as above
)

func (p Eviction) String() string {
	if p == VolatileTTL {
		return "volatile-ttl"
	}
	return "noeviction"
}

// memoryLimit bounds what the items take in memory. The zero value is no bound. Safe for concurrent
// use.
type memoryLimit struct {
	bytes   atomic.Int64 // maxmemory; 0: no limit
	policy  atomic.Int32
	evicted atomic.Int64 // items since the start
}

// SetMaxMemory changes the limit on what items take in memory (bytes, 0 for none), and what happens
// when it is reached. What is above a limit that is lowered goes as others write.
func (e *Engine) SetMaxMemory(bytes int64, policy Eviction) {
	e.memory.bytes.Store(bytes)
	e.memory.policy.Store(int32(policy))
}

// makeRoom refuses a command that may grow memory while the items take more than they may and none can
// be evicted. Which commands these are is as in Redis:
//
//  1. those whose row says DenyOOM;
//  2. whatever MULTI queues, since a queue takes memory, too;
//  3. EXEC, if one of those is queued.
//
// Reading and deleting always go on. Without a limit this costs one atomic load.
func (e *Engine) checkMemory(s *Session, r *row, args []string) error {
	limit := e.memory.bytes.Load()
	if limit == 0 {
		return nil
	}
	flags, size := r.Flags, 0
	switch queues := s.multi.open && r.Flags&Immediate == 0; {
	case r.Scope == ScopeQueue:
		flags, size = s.multi.flags, s.multi.size
	case queues:
		flags |= DenyOOM
	}
	if flags&DenyOOM == 0 || e.Keyspace.Used() <= limit {
		return nil
	}
	for _, arg := range args {
		size += len(arg)
	}
	if !e.evict(s, limit, size) {
		return errOOM
	}
	return nil
}

// full tells whether the items take more memory than they may.
func (e *Engine) overMemory() bool {
	limit := e.memory.bytes.Load()
	return limit > 0 && e.Keyspace.Used() > limit
}

// How much is evicted for one command, in bytes.
const (
	// If there is so much to evict, this much and twice what the command brings: what is to be done
	// after maxmemory has been lowered is spread over many commands, so that none of them waits long.
	evictAtMost = 256 << 10
	// If there is little to evict, so much more that the next few commands need evict nothing: to draw
	// samples costs more than to evict what has been drawn. Of a small limit it is a small share.
	evictAhead      = 16 << 10
	evictAheadShare = 64
)

// evict evicts items until the limit is kept, or enough for a command of size bytes to go on; false if
// it cannot.
func (e *Engine) evict(s *Session, limit int64, size int) bool {
	if Eviction(e.memory.policy.Load()) != VolatileTTL || e.Keyspace.Writable() != nil {
		return false
	}
	x := Context{Session: s, Engine: e}
	target := max(limit-min(evictAhead, limit/evictAheadShare), e.Keyspace.Used()-evictAtMost-2*int64(size))
	ticket, ok := e.Keyspace.Evict(target, func(c *keyspace.Container, id string) {
		e.memory.evicted.Add(1)
		x.notify(eventEvicted, c, id)
	})
	s.LSN = max(s.LSN, ticket)
	s.revealed = max(s.revealed, ticket)
	if x.batch != nil {
		e.Broker.flush(s, x.batch, ticket)
	}
	return ok || e.Keyspace.Used() <= limit
}
