package replica

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Role is what a keyspace knows of its part in a cluster. Safe for concurrent use.
type Role struct {
	Replicator
	leads  atomic.Bool
	moment atomic.Int64 // ms; see Moment

	// A period of leadership is open from Lead until Follow or EndDrained. Confirm proves something for its
	// transactions meanwhile.
	open     atomic.Bool
	followed atomic.Uint64 // see EndLed
	drained  atomic.Uint64 // see EndDrained

	mu      sync.Mutex // protects what follows
	tail    Tail       // of what memory and the journal have
	lsn     uint64     // of the commit that has it
	durable uint64     // index up to which all is known to be on disk
	next    mark       // once its LSN is on disk, its index is durable
}

// mark says which index a commit of the journal ends with.
type mark struct{ lsn, index uint64 }

// NewRole returns the role of a follower without a place in the log.
func NewRole(r Replicator) *Role { return &Role{Replicator: r} }

// Begin notes the tail that the folder has, which is on disk.
func (r *Role) Begin(t Tail) { r.tail, r.durable, r.next = t, t.Index, mark{0, t.Index} }

// Leads reports whether the node leads.
func (r *Role) Leads() bool { return r.leads.Load() }

// Refusal returns [ErrFollower] if the node follows.
func (r *Role) Refusal() error {
	if r.Leads() {
		return nil
	}
	return ErrFollower
}

// Lead makes the role that of the leader, at a moment in ms. No transaction that changes something may be
// open.
func (r *Role) Lead(moment int64) {
	r.Swept(moment)
	r.open.Store(true)
	r.leads.Store(true)
}

// Follow makes the role that of a follower. No transaction that changes something may be open. EndLed comes
// after it.
func (r *Role) Follow() {
	r.followed.Store(math.MaxUint64)
	r.leads.Store(false)
	r.open.Store(false)
}

// EndLed notes the last LSN that the journal has drawn when the node began to follow.
func (r *Role) EndLed(last uint64) { r.followed.Store(last) }

// Drain makes the role that of a follower, but leaves the period open. No transaction that changes something
// may be open. EndDrained, Follow or Lead comes after it.
func (r *Role) Drain() { r.leads.Store(false) }

// Drains reports whether the node follows, and its period is open.
func (r *Role) Drains() bool { return !r.leads.Load() && r.open.Load() }

// EndDrained ends a period at its last LSN. Confirm has succeeded since Drain: all transactions of the period
// are confirmed.
func (r *Role) EndDrained(last uint64) {
	r.drained.Store(last)
	r.open.Store(false)
}

// ConfirmLSN makes sure that the node has led since a transaction that has returned an LSN, unless that was a
// follower's, or until the end of a period that was confirmed as a whole. Transactions of a leader return an
// LSN that was drawn since it leads, or a greater one. It ends at a time as Confirm does.
func (r *Role) ConfirmLSN(lsn uint64, until time.Duration) error {
	open := r.open.Load() // first: who sees that the period has ended sees how
	switch {
	case lsn <= r.followed.Load(): // it led then, and not always since
		return ErrNoMajority
	case open:
		err := r.Confirm(until)
		if lsn <= r.followed.Load() { // the answer is that of a later session, another node has led between
			return ErrNoMajority
		}
		if err != nil && lsn > r.drained.Load() {
			return err
		}
	}
	return nil
}

// Moment returns a time in ms for batches that end after the call: every transaction with an earlier time is
// in such a batch or before it.
func (r *Role) Moment() int64 { return r.moment.Load() }

// Swept notes a moment. It was read before all partitions were locked one after the other, and unlocked
// again.
func (r *Role) Swept(moment int64) {
	for {
		last := r.moment.Load()
		if moment <= last || r.moment.CompareAndSwap(last, moment) {
			return
		}
	}
}

// Settled notes that the journal has a commit with its tail, and is on disk up to an LSN.
func (r *Role) Settled(lsn uint64, t Tail, synced uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.State == nil {
		t.State = r.tail.State
	}
	t.Moment = max(t.Moment, r.tail.Moment)
	r.tail, r.lsn = t, lsn
	r.syncedLocked(synced)
}

// Tail returns the tail of what the journal has. The state must not be changed.
func (r *Role) Tail() Tail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

// Durable returns the index up to which the journal is on disk if it is up to an LSN: at least that of the
// last call.
func (r *Role) Durable(synced uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncedLocked(synced)
	return r.durable
}

// syncedLocked notes up to which LSN the journal is on disk. Commits that follow each other fast share a
// mark.
func (r *Role) syncedLocked(synced uint64) {
	if synced >= r.next.lsn {
		r.durable = r.next.index
		r.next = mark{r.lsn, r.tail.Index}
	}
	if synced >= r.next.lsn {
		r.durable = r.next.index
	}
}

// sweepInterval is the time between two moments of a leader.
const sweepInterval = 100 * time.Millisecond

// Sweep calls sweep for each moment until stop is closed.
func Sweep(stop <-chan struct{}, sweep func()) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			sweep()
		}
	}
}
