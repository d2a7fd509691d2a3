package cluster

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"mayfly/cluster/entry"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// store is a keyspace as the applier uses it.
type store interface {
	Apply(batch string, tail replica.Tail) error
	Settle(lsn journal.LSN) error
	Lead() error
	Follow()
	Drain()
	Unsettled() bool
}

// errReload ends an incarnation whose memory has changes that the log does not have.
var errReload = errors.New("another node leads, and this one has changes that were not committed")

// firstFullRetry and longestFullRetry are the pauses of a follower whose disk is full.
const (
	firstFullRetry   = 100 * time.Millisecond
	longestFullRetry = 2 * time.Second
)

// applier brings committed entries to the keyspace of one incarnation, in order, in a goroutine of its own.
// It also makes the keyspace lead and follow, in the order in which the loop decides that.
type applier struct {
	ks   store
	rep  *replicator
	self uint64        // the raft id of this node
	wake func()        // makes the loop look at applied; never blocks
	show func()        // shows clients who leads, before it returns
	fail func(error)   // ends the incarnation
	stop chan struct{} // closed when the incarnation ends
	log  zerolog.Logger

	applied atomic.Uint64 // the index up to which everything is in memory
	led     atomic.Uint64 // the session in which the keyspace leads; 0: none
	backlog atomic.Int64  // bytes of the batches in the queue
	full    atomic.Bool   // a batch waits for room on the disk

	mu      sync.Mutex // protects what follows
	queue   []task
	arrived chan struct{} // has room for one; something was added to the queue

	// For the applier's goroutine only.
	moment  int64
	state   []byte        // that the local journal does not have yet; nil: none
	leads   bool          // the keyspace leads, or begins to
	leading chan struct{} // closed when it has begun; nil: nothing to wait for
}

// task is a step of the applier. Exactly one of its fields is set.
type task struct {
	entries []entry.Entry
	lead    uint64 // the session of this node that has begun
	follow  bool
	drain   chan<- struct{} // to close when no transaction can write any more, although this node still leads
}

func newApplier(ks store, rep *replicator, self uint64, at replica.Position) *applier {
	a := &applier{ks: ks, rep: rep, self: self, arrived: make(chan struct{}, 1), stop: make(chan struct{}), moment: at.Moment}
	a.applied.Store(at.Index)
	return a
}

// push adds a task. It never blocks.
func (a *applier) push(t task) {
	for i := range t.entries {
		a.backlog.Add(int64(len(t.entries[i].Batch)))
	}
	a.mu.Lock()
	a.queue = append(a.queue, t)
	a.mu.Unlock()
	select {
	case a.arrived <- struct{}{}:
	default:
	}
}

// run applies tasks until the incarnation ends.
func (a *applier) run() {
	defer a.awaitLead()
	for {
		select {
		case <-a.stop:
			return
		case <-a.arrived:
		}
		a.mu.Lock()
		tasks := a.queue
		a.queue = nil
		a.mu.Unlock()
		for i := range tasks {
			if err := a.do(&tasks[i]); err != nil {
				a.fail(err)
				return
			}
		}
	}
}

// stopped reports whether the incarnation ends.
func (a *applier) stopped() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

func (a *applier) do(t *task) error {
	switch {
	case t.lead != 0:
		a.awaitLead()
		a.lead(t.lead)
	case t.follow:
		a.unlead(a.ks.Follow)
		a.leads = false
	case t.drain != nil:
		a.unlead(a.ks.Drain)
		close(t.drain)
	}
	for i := range t.entries {
		if a.stopped() {
			return nil
		}
		e := &t.entries[i]
		if err := a.apply(e); err != nil {
			return fmt.Errorf("entry %d of term %d (%s): %w", e.Index, e.Term, e.Kind, err)
		}
		a.backlog.Add(-int64(len(e.Batch)))
		a.applied.Store(e.Index)
		if e.Kind != entry.Batch {
			a.wake()
		}
	}
	if t.entries != nil {
		a.wake()
	}
	return nil
}

// unlead makes the keyspace follow, or drain. Clients learn it first: few of the commands that take this node
// for the leader see the keyspace of a follower.
func (a *applier) unlead(end func()) {
	a.awaitLead()
	a.led.Store(0)
	a.show()
	end()
}

// lead makes the keyspace lead. The applier goes on meanwhile: it brings the batches that the keyspace writes
// then.
func (a *applier) lead(session uint64) {
	done := make(chan struct{})
	a.leads, a.leading = true, done
	go func() {
		defer close(done)
		for a.rep.leads(session) {
			err := a.ks.Lead()
			switch {
			case err == nil:
				a.led.Store(session)
				a.show()
				a.log.Info().Uint64("term", session).Msg("this node leads")
				return
			case !isTemporary(err):
				a.fail(fmt.Errorf("beginning to lead: %w", err))
				return
			}
			a.log.Warn().Uint64("term", session).Err(err).Msg("this node cannot begin to lead yet")
		}
	}()
}

// isTemporary reports whether an error is for want of a majority or of the lead.
func isTemporary(err error) bool {
	return errors.Is(err, replica.ErrVoid) || errors.Is(err, replica.ErrNoMajority) || errors.Is(err, replica.ErrFollower)
}

// awaitLead waits until the keyspace has begun to lead, or has given up. The session was shut, or it goes on.
func (a *applier) awaitLead() {
	if a.leading != nil {
		<-a.leading
		a.leading = nil
	}
}

// apply brings one entry to the keyspace.
func (a *applier) apply(e *entry.Entry) error {
	if e.State != nil {
		a.state = e.State
	}
	valid := e.Kind == entry.Batch && !e.Void
	if valid {
		a.moment = max(a.moment, e.Moment)
	}
	tail := replica.Tail{Position: replica.Position{Index: e.Index, Term: e.Term, Moment: a.moment}, State: a.state}
	switch {
	case valid && a.rep.committed(e.Session, e.LSN, tail):
		a.state = nil
		err := a.ks.Settle(journal.LSN(e.LSN))
		if vfs.IsFull(err) {
			err = nil // the local journal keeps it, and tries again; this node passes the lead on
		}
		return err
	case a.leads || a.ks.Unsettled():
		if valid || e.Kind == entry.Begin && e.Member.ID != a.self {
			return errReload
		}
		return nil // its position is written with the batch in flight
	case valid:
		return a.write(unsafe.String(unsafe.SliceData(e.Batch), len(e.Batch)), tail) // the log's entries never change
	default:
		return a.write("", tail)
	}
}

// write applies a batch of another node. A full disk makes it wait.
func (a *applier) write(batch string, tail replica.Tail) error {
	defer a.full.Store(false)
	for pause := firstFullRetry; ; pause = min(2*pause, longestFullRetry) {
		err := a.ks.Apply(batch, tail)
		switch {
		case err == nil:
			a.state = nil
			return nil
		case !vfs.IsFull(err):
			return err
		}
		a.full.Store(true)
		if pause == firstFullRetry {
			a.log.Error().Err(err).Msg("cannot apply the leader's changes: tries again")
		}
		select {
		case <-a.stop:
			return nil
		case <-time.After(pause):
		}
	}
}
