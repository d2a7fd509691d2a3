package cluster

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/replica"
)

// patience is how long a commit or a read waits for a majority before it fails. A command may wait for one attempt that
// fails and then for the next one: clients have their reply within 3 s all the same.
const patience = 2800 * time.Millisecond

// lateShare is the part of the patience that another attempt waits which follows one in vain.
const lateShare = 20

// replicator is the [replica.Replicator] of one incarnation. It stands between the journal of the keyspace and the
// loop of raft, and blocks neither on the other.
//
// One batch is in flight at a time. It is proposed once in a session. A batch that a session has lost is void as
// soon as another session has begun, so the next session of this node proposes it again.
type replicator struct {
	propose   func(session, lsn uint64, moment int64, batch []byte) // passes a proposal to the loop; batch is the loop's from then on
	barrier   func(number uint64)                                   // makes the loop ask a majority, and call answered
	now       func() time.Duration
	readIndex bool // ask a majority for each read
	patience  time.Duration

	lease atomic.Int64 // ns since the start of the process; before this time no other node leads

	mu      sync.Mutex
	session uint64        // that is open on this node; 0: it does not lead
	flight  *flight       // the batch in flight; nil: none
	ended   bool          // the incarnation ends
	changed chan struct{} // closed and replaced at each change of what Replicate and Confirm wait for
	waiting int           // calls of Confirm that wait for a lease
	wanted  uint64        // the number of the last barrier that a call of Confirm waits for
	begun   uint64        // the number of the last barrier that was passed to the loop
	passed  uint64        // the number of the last barrier that a majority has answered, or that the end of a session has made void
}

// flight is a batch from its first proposal until it is in the local journal.
type flight struct {
	lsn       uint64
	session   uint64 // that has proposed it last; 0: none yet
	committed bool
	late      bool // an attempt has waited for it in vain, and no session has begun since
	tail      replica.Tail
}

func newReplicator(now func() time.Duration) *replicator {
	return &replicator{now: now, patience: patience, changed: make(chan struct{})}
}

// Replicate is of [replica.Replicator].
func (r *replicator) Replicate(lsn uint64, moment int64, batch []byte) (replica.Tail, error) {
	timer := time.NewTimer(r.patienceFor(lsn))
	defer timer.Stop()
	for {
		r.mu.Lock()
		if r.ended {
			r.mu.Unlock()
			return replica.Tail{}, replica.ErrVoid
		}
		f := r.flight
		if f == nil || f.lsn != lsn {
			f = &flight{lsn: lsn}
			r.flight = f
		}
		if f.committed {
			r.flight = nil
			r.mu.Unlock()
			return f.tail, nil
		}
		if r.session != 0 && f.session != r.session {
			f.session, f.late = r.session, false
			// The loop encodes the batch later, and the keyspace reuses its memory when this call has returned.
			r.propose(r.session, lsn, moment, bytes.Clone(batch))
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			r.mu.Lock()
			f.late = true
			r.mu.Unlock()
			return replica.Tail{}, replica.ErrNoMajority
		}
	}
}

// patienceFor returns how long an attempt to commit a batch waits: the batch may have been waited for already.
func (r *replicator) patienceFor(lsn uint64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flight; f != nil && f.lsn == lsn && f.late && (r.session == 0 || r.session == f.session) {
		return r.patience / lateShare
	}
	return r.patience
}

// retract notes that raft did not take the proposal of a session, so that it is proposed again.
func (r *replicator) retract(session, lsn uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flight; f != nil && f.lsn == lsn && f.session == session && !f.committed {
		f.session = 0
		r.notifyLocked()
	}
}

// committed reports whether a committed batch is the one in flight, which Replicate returns then.
func (r *replicator) committed(session, lsn uint64, tail replica.Tail) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flight
	if f == nil || f.lsn != lsn || f.session != session || f.committed {
		return false
	}
	f.committed, f.tail = true, tail
	r.notifyLocked()
	return true
}

// Confirm is of [replica.Replicator].
func (r *replicator) Confirm() error {
	if r.readIndex {
		return r.ask()
	}
	if r.leased() {
		return nil
	}
	r.mu.Lock()
	r.waiting++
	session := r.session
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	return r.await(session, r.leased)
}

// leased reports whether the lease lasts. The clock is read after the lease: a pause between the two must not make a
// later lease cover an earlier time.
func (r *replicator) leased() bool {
	until := time.Duration(r.lease.Load())
	return r.now() < until
}

// ask requests a barrier that begins after the call, and waits until a majority has answered it. Calls during a
// barrier share the next one.
func (r *replicator) ask() error {
	r.mu.Lock()
	session, want := r.session, r.begun+1
	r.wanted = max(r.wanted, want)
	r.beginBarrierLocked()
	r.mu.Unlock()
	return r.await(session, func() bool { return r.passed >= want })
}

// beginBarrierLocked begins the next barrier if one is wanted and none is under way. r.mu must be held.
func (r *replicator) beginBarrierLocked() {
	if r.session != 0 && r.wanted > r.begun && r.begun == r.passed {
		r.begun++
		r.barrier(r.begun)
	}
}

// answered notes that a majority has answered a barrier.
func (r *replicator) answered(barrier uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if barrier > r.passed && barrier <= r.begun {
		r.passed = barrier
		r.beginBarrierLocked()
		r.notifyLocked()
	}
}

// await waits until done, which is called with r.mu held, reports true. It fails when the session has ended, and after
// the patience.
func (r *replicator) await(session uint64, done func() bool) error {
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		finished, leads, changed := done(), session != 0 && r.session == session, r.changed
		r.mu.Unlock()
		switch {
		case !leads:
			return replica.ErrNoMajority
		case finished:
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return replica.ErrNoMajority
		}
	}
}

// extend sets the end of the lease. Zero ends it.
func (r *replicator) extend(until time.Duration) {
	if r.lease.Swap(int64(until)) == int64(until) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > 0 {
		r.notifyLocked()
	}
}

// open begins a session of this node. Batches are proposed from now on.
func (r *replicator) open(session uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = session
	r.notifyLocked()
}

// leads reports whether a session of this node is open.
func (r *replicator) leads(session uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ended && r.session == session
}

// shut ends the session of this node, if it has one. What waits for a majority fails, and the fate of the batch in
// flight is open.
func (r *replicator) shut() {
	r.extend(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = 0
	r.passed, r.wanted = r.begun, r.begun // a barrier under way gets no answer: await fails for want of the session
	r.notifyLocked()
}

// end makes Replicate and Confirm fail for good.
func (r *replicator) end() {
	r.shut()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.notifyLocked()
}

// notifyLocked wakes everything that waits. r.mu must be held.
func (r *replicator) notifyLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}
