package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster/entry"
	"mayfly/keyspace/replica"
)

// patience is how long a batch or a read waits for a majority at most. Commands have less if they have waited
// before: see commands.patience.
const patience = 2800 * time.Millisecond

// lateShare is the part of the patience that an attempt waits for a batch which has used it up.
const lateShare = 20

// replicator is the [replica.Replicator] of one incarnation. It stands between the journal of the keyspace
// and the loop of raft, and blocks neither on the other.
//
// One batch is in flight at a time. It is proposed once in a session. A batch that a session has lost is void
// as soon as another session has begun, so the next session of this node proposes it again.
type replicator struct {
	propose   func(session, lsn uint64, batch *proposal) // passes a batch to the loop, which frees it
	barrier   func(number uint64)                        // makes the loop ask a majority, and call answered
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
	since     time.Duration // when the first attempt of the session began, or of all attempts before there was one
	tail      replica.Tail
}

// proposal is an encoded batch on its way to the loop.
type proposal struct{ data []byte }

// proposals keeps the memory of proposals: a batch of many clients has hundreds of kilobytes.
var proposals = sync.Pool{New: func() any { return new(proposal) }}

// mostKept is the size in bytes of the largest memory that proposals keeps.
const mostKept = 4 << 20

func newProposal(session, lsn uint64, moment int64, batch []byte) *proposal {
	p := proposals.Get().(*proposal)
	p.data = entry.AppendBatch(p.data[:0], session, lsn, moment, batch)
	return p
}

// free gives the memory back. The proposal must not be used any more.
func (p *proposal) free() {
	if cap(p.data) > mostKept {
		p.data = nil
	}
	proposals.Put(p)
}

func newReplicator(now func() time.Duration) *replicator {
	return &replicator{now: now, patience: patience, changed: make(chan struct{})}
}

// Replicate is of [replica.Replicator].
func (r *replicator) Replicate(lsn uint64, moment int64, batch []byte, until time.Duration) (replica.Tail, error) {
	began := r.now()
	var timer timer
	defer timer.stop()
	for {
		r.mu.Lock()
		if r.ended {
			r.mu.Unlock()
			return replica.Tail{}, replica.ErrVoid
		}
		f := r.flight
		if f == nil || f.lsn != lsn {
			f = &flight{lsn: lsn, since: began}
			r.flight = f
		}
		if f.committed {
			r.flight = nil
			r.mu.Unlock()
			return f.tail, nil
		}
		if r.session != 0 && f.session != r.session {
			if f.session != 0 {
				f.since = r.now()
			}
			f.session = r.session
			// The loop takes the batch later, and the keyspace reuses its memory when this call has returned.
			r.propose(r.session, lsn, newProposal(r.session, lsn, moment, batch))
		}
		changed, end := r.changed, max(f.since+r.patience, began+r.patience/lateShare)
		r.mu.Unlock()
		select {
		case <-changed:
		case <-timer.at(earlier(end, until), r.now()):
			return replica.Tail{}, replica.ErrNoMajority
		}
	}
}

// earlier returns the earlier of an end and of a time for which 0 means none.
func earlier(end, until time.Duration) time.Duration {
	if until != 0 && until < end {
		return until
	}
	return end
}

// timer is a timer of which the time may change. The zero value is ready.
type timer struct {
	timer *time.Timer
	end   time.Duration
}

// at returns the channel of the timer, which gets a value at an end.
func (t *timer) at(end, now time.Duration) <-chan time.Time {
	switch {
	case t.timer == nil:
		t.timer = time.NewTimer(end - now)
	case t.end != end:
		t.timer.Reset(end - now)
	}
	t.end = end
	return t.timer.C
}

func (t *timer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
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
func (r *replicator) Confirm(until time.Duration) error {
	if r.readIndex {
		return r.ask(until, nil)
	}
	if r.leased() {
		return nil
	}
	// A term may have no lease: after a transfer that failed, it never has one again.
	r.mu.Lock()
	r.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	return r.ask(until, r.leased)
}

// leased reports whether the lease lasts. The clock is read after the lease: a pause between the two must not
// make a later lease cover an earlier time.
func (r *replicator) leased() bool {
	until := time.Duration(r.lease.Load())
	return r.now() < until
}

// ask requests a barrier that begins after the call, and waits until a majority has answered it, or until the
// other function reports true, if it is not nil. Calls during a barrier share the next one.
func (r *replicator) ask(until time.Duration, other func() bool) error {
	r.mu.Lock()
	session, want := r.session, r.begun+1
	r.wanted = max(r.wanted, want)
	r.beginBarrierLocked()
	r.mu.Unlock()
	return r.await(session, until, func() bool { return r.passed >= want || other != nil && other() })
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

// await waits until done, which is called with r.mu held, reports true. It fails when the session has ended,
// at a time (0: none), and after the patience.
func (r *replicator) await(session uint64, until time.Duration, done func() bool) error {
	end := earlier(r.now()+r.patience, until)
	var timer timer
	defer timer.stop()
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
		case <-timer.at(end, r.now()):
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

// shut ends the session of this node, if it has one. What waits for a majority fails, and the fate of the
// batch in flight is open.
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
