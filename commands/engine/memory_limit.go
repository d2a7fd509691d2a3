package engine

import (
	"slices"
	"sync/atomic"

	"mayfly/commands/events"
	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/redisfmt"
)

// memoryLimit limits the memory of the items and containers, as [keyspace.Keyspace.Used] counts it. The zero
// value is no limit. Safe for concurrent use.
type memoryLimit struct {
	Bytes   atomic.Int64 // maxmemory; 0: no limit
	Evicted atomic.Int64 // items since the start
}

// SetMaxMemory changes the limit on the memory of the items and containers (bytes, 0 for none). After the
// limit is lowered, CONFIG SET and writes evict the excess step by step. The policy is that of
// [keyspace.Keyspace.SetEviction].
func (e *Engine) SetMaxMemory(bytes int64) { e.Memory.Bytes.Store(bytes) }

// checkMemory returns an error for a command that may grow memory, if the items are over the limit and
// none can be evicted. As in Redis, these commands are:
//
//  1. those with the flag DenyOOM, and those with MayGrow, which look themselves;
//  2. every command that MULTI queues, since the queue takes memory;
//  3. EXEC, if a queued command has the flag DenyOOM.
//
// Scripts run, but learn of the lack: see scriptRun.admitCall.
//
// Reads and deletes always run. Without a limit the check costs one atomic load.
func (e *Engine) checkMemory(s *Session, r *Row, args []string, out *Outcome) error {
	limit := e.Memory.Bytes.Load()
	if limit == 0 || e.Cluster != nil && s.Service != serveLeads {
		return nil
	}
	flags, size := r.Flags, 0
	switch queues := s.Multi.Open && r.Flags&Immediate == 0; {
	case r.Scope == ScopeQueue:
		flags, size = s.Multi.flags, s.Multi.Size
	case queues:
		flags |= DenyOOM
	}
	s.script.oom = false
	if flags&(DenyOOM|MayGrow|MayWrite) == 0 || e.Keyspace().Used() <= limit || e.paused() {
		return nil
	}
	for _, arg := range args {
		size += len(arg)
	}
	if !e.evict(s, limit, size, out) {
		if flags&DenyOOM == 0 {
			s.script.oom = flags&MayWrite != 0
			return nil
		}
		return ErrOOM
	}
	return nil
}

// OverMemory reports whether the items take more memory than the limit.
func (e *Engine) OverMemory() bool {
	limit := e.Memory.Bytes.Load()
	return limit > 0 && e.Keyspace().Used() > limit
}

// The amount that one command evicts, in bytes.
const (
	// CONFIG SET of maxmemory evicts this much at most; writes evict the rest.
	evictAtOnce = 16 << 20
	// With much to evict, a command evicts this much and twice its own size. So a lowered maxmemory is
	// reached over many commands, and none waits long.
	EvictAtMost = 256 << 10
	// With little to evict, a command evicts this much more. The next commands then evict nothing, which
	// saves sampling, the larger cost. Under a small limit it is a small share.
	evictAhead      = 16 << 10
	evictAheadShare = 64
	// What clients that cache have read goes first while its notes take more than this share: else a client
	// that reads many keys would drive out all data, whose place its notes take.
	notesShare = 8
)

// evict ends the windows of CONTAINER.UNDO and then evicts items until the limit is kept, or enough for a
// command of size bytes to run. It returns false if it cannot. The outcome learns what to wait for.
func (e *Engine) evict(s *Session, limit int64, size int, out *Outcome) bool {
	if e.Keyspace().Writable() != nil {
		return false
	}
	target := max(limit-min(evictAhead, limit/evictAheadShare), e.Keyspace().Used()-EvictAtMost-2*int64(size))
	if e.Keyspace().FreeNotes(target, limit/notesShare) || e.endWindows(target, out) {
		return true
	}
	if e.Keyspace().Eviction().Policy == eviction.None {
		return e.Keyspace().Used() <= limit
	}
	x := Context{Session: s, Engine: e}
	lsn, ok := e.Keyspace().Evict(target, func(c *keyspace.Container, id string) {
		e.Memory.Evicted.Add(1)
		x.Notify(events.Evicted, c, id)
	})
	out.LSN = max(out.LSN, lsn)
	s.Revealed = max(s.Revealed, lsn)
	if x.Batch != nil {
		e.Broker.flush(s, x.Batch, lsn)
	}
	if s.Tracking.On { // the client is told before the reply
		e.Broker.Drain()
	}
	return ok || e.Keyspace().Used() <= limit
}

// EvictExcess evicts as CONFIG SET of maxmemory does, without a write. In a transaction it does nothing: that
// holds locks.
func (x *Context) EvictExcess(pairs [][2]string) {
	e, s := x.Engine, x.Session
	lowered := slices.ContainsFunc(pairs, func(p [2]string) bool { return redisfmt.EqualFold(p[0], "maxmemory") })
	if !lowered || s.Multi.Open || e.Cluster != nil && !e.Cluster.View().Leads() {
		return
	}
	var out Outcome // the reply of CONFIG SET tells nothing of items and need not wait
	for range evictAtOnce / EvictAtMost {
		if !e.OverMemory() || e.paused() || !e.evict(s, e.Memory.Bytes.Load(), 0, &out) {
			return
		}
	}
}

// endWindows ends all windows of CONTAINER.UNDO if memory is over its limit, and frees what they have kept
// down to a target in bytes. It reports whether that is enough. The outcome learns what to wait for.
func (e *Engine) endWindows(target int64, out *Outcome) bool {
	lsn, open := e.Keyspace().EndAllWindows()
	out.LSN = max(out.LSN, lsn)
	if open {
		e.Log.Warn().Int64("maxmemory", e.Memory.Bytes.Load()).
			Msg("memory is full: CONTAINER.UNDO cannot take earlier changes back any more")
	}
	return e.Keyspace().Reclaim(target)
}
