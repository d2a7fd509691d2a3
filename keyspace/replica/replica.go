package replica

import (
	"errors"
	"time"
)

// Position is a place in the log that a majority has committed.
type Position struct {
	Index, Term uint64 // of the entry; 0: none
	Moment      int64  // ms; the time of followers: every transaction with an earlier time is in this entry or before it
}

// Tail is what a group of a journal ends with.
type Tail struct {
	Position
	State []byte // of the cluster as of Index, opaque here: members and session; nil: unchanged
	Next  uint32 // all containers up to Index have lesser numbers; the keyspace sets it
}

// Replicator commits batches of a leader's journal. Confirm is safe for concurrent use.
type Replicator interface {
	// Replicate returns once a batch is committed by a majority, with what its group in the local journal
	// ends with. lsn numbers the batches of a run in ascending order, moment becomes that of the position,
	// and batch is the text of its commands, valid during the call. One goroutine at a time calls it.
	//
	// After an error other than ErrVoid it is called again with the same batch, which must not be proposed
	// twice. It returns ErrNoMajority at a time, as clock.Monotonic says, or after 3 s if that is 0 or later.
	Replicate(lsn uint64, moment int64, batch []byte, until time.Duration) (Tail, error)

	// Confirm returns nil if this node was the leader when it was called. It ends as Replicate does.
	Confirm(until time.Duration) error
}

// Errors of a [Replicator] and of a keyspace with one.
var (
	// ErrNoMajority is temporary: the batch may be committed later.
	ErrNoMajority = errors.New("no majority of nodes is reachable")
	// ErrVoid is final: the batch will never be committed, and what memory has of it is to be dropped.
	ErrVoid = errors.New("another node leads, and the batch will not be committed")
	// ErrFull is temporary: the leader's disk is full, and the change may be committed later or never.
	ErrFull = errors.New("the disk of the leader is full; the fate of its last writes is not known yet")
	// ErrFollower is the error of a transaction that would change something on a node that does not lead.
	ErrFollower = errors.New("this node does not lead")
)
