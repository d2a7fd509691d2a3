package storage

import (
	"math"
	"time"

	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/vfs"
)

// Refused is the LSN of a transaction that a follower has refused.
const Refused = journal.LSN(math.MaxUint64)

// maxReplicated is MaxWaiting of a node of a cluster: it bounds the batches of the log.
const maxReplicated = 4 << 20

// replication returns how the journal replicates; nil: it does not.
func (e *Engine) replication() *journal.Replication {
	r := e.Options.Role
	if r == nil {
		return nil
	}
	return &journal.Replication{
		Replicate: func(lsn uint64, moment int64, batch []byte, until time.Duration) (replica.Tail, error) {
			t, err := r.Replicate(lsn, moment, batch, until)
			t.Next = e.Options.Next()
			return t, err
		},
		Moment:  r.Moment,
		Settled: func(lsn journal.LSN, t replica.Tail, synced journal.LSN) { r.Settled(uint64(lsn), t, uint64(synced)) },
	}
}

// AppendReplicated has a batch of the log join the local journal. It comes while the partitions that the
// batch changes are locked, so a checkpoint finds the batch in the journal if it finds a change of it in
// memory.
func (e *Engine) AppendReplicated(batch string, t replica.Tail) (journal.LSN, error) {
	t.Next = e.Options.Next()
	return e.Journal.AppendReplicated(replica.Text(batch), t)
}

// WaitUntil is Wait, CommitNow if now is set. In a cluster it fails with [replica.ErrNoMajority] at a time,
// as clock.Monotonic says; 0: after 3 s for the commit, and 3 s to confirm that the node leads.
func (s Service) WaitUntil(lsn journal.LSN, until time.Duration, now bool) error {
	err := s.waitCommitted(lsn, until, now)
	if err == nil && s.role != nil && lsn != 0 {
		err = s.role.ConfirmLSN(uint64(lsn), until)
	}
	return err
}

// WaitWritten is WaitUntil for a transaction that has changed something. That the log has its changes proves
// that the node led then: no other one has led in between, and what the transaction has read is what the log
// says. So it succeeds also if another node leads by now.
func (s Service) WaitWritten(lsn journal.LSN, until time.Duration) error {
	return s.waitCommitted(lsn, until, false)
}

// waitCommitted is WaitUntil without the confirmation that the node leads.
func (s Service) waitCommitted(lsn journal.LSN, until time.Duration, now bool) error {
	switch {
	case s.role == nil:
		return s.ForClients(s.engine.Journal.WaitUntil(lsn, until, now))
	case lsn == 0:
		return nil
	case lsn == Refused:
		return replica.ErrFollower
	}
	switch err := s.engine.Journal.WaitUntil(lsn, until, now); {
	case err == nil:
	case !vfs.IsFull(err):
		return s.ForClients(err)
	case lsn > s.engine.Journal.Replicated():
		return replica.ErrFull
	} // else a majority has it, and this node's files get it when there is room
	return nil
}

// Settle is Wait without the confirmation that the node leads. If the log has the batch meanwhile, it does
// not fail because of an attempt that was too early.
func (s Service) Settle(lsn journal.LSN) error {
	err := s.engine.Journal.Wait(lsn)
	if err != nil {
		err = s.engine.Journal.Wait(lsn)
	}
	return s.ForClients(err)
}

// Position returns the position of what the local journal has.
func (s Service) Position() (p replica.Position) {
	if s.role != nil {
		p = s.role.Tail().Position
	}
	return p
}

// ReplicaState returns the last state of a tail. It must not be changed.
func (s Service) ReplicaState() []byte { return s.role.Tail().State }

// Durable returns the index of the log up to which the local files are forced to disk.
func (s Service) Durable() uint64 { return s.role.Durable(uint64(s.engine.Journal.Synced())) }

// Unsettled reports whether memory has changes of which it is not known that they are committed.
func (s Service) Unsettled() bool { return s.engine.Journal.Unsettled() }
