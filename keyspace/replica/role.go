package replica

import (
	"sync"
	"sync/atomic"
)

// Role is what a keyspace knows of its part in a cluster. Safe for concurrent use.
type Role struct {
	Replicator
	leads atomic.Bool

	mu      sync.Mutex // protects what follows
	tail    Tail       // of what memory and the journal have
	lsn     uint64     // of the commit that has it
	durable uint64     // index up to which all is known to be on disk
	next    mark       // once its LSN is on disk, its index is durable
}

// mark says which index a commit of the journal ends with.
type mark struct{ lsn, index uint64 }

// NewRole returns the role of a follower with the tail of its folder, which is on disk.
func NewRole(r Replicator, t Tail) *Role {
	return &Role{Replicator: r, tail: t, durable: t.Index, next: mark{0, t.Index}}
}

// Leads reports whether the node leads.
func (r *Role) Leads() bool { return r.leads.Load() }

// SetLeads changes whether the node leads.
func (r *Role) SetLeads(leads bool) { r.leads.Store(leads) }

// Committed notes that the journal has a commit with its tail.
func (r *Role) Committed(lsn uint64, t Tail, synced uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.State == nil {
		t.State = r.tail.State
	}
	r.tail, r.lsn = t, lsn
	r.syncedLocked(synced)
}

// Tail returns the tail of what the journal has. The state must not be changed.
func (r *Role) Tail() Tail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

// Durable returns the index up to which the journal is on disk if it is up to an LSN: at least that of the last call.
func (r *Role) Durable(synced uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncedLocked(synced)
	return r.durable
}

// syncedLocked notes up to which LSN the journal is on disk. Commits that follow each other fast share a mark.
func (r *Role) syncedLocked(synced uint64) {
	if synced >= r.next.lsn {
		r.durable = r.next.index
		r.next = mark{r.lsn, r.tail.Index}
	}
	if synced >= r.next.lsn {
		r.durable = r.next.index
	}
}
