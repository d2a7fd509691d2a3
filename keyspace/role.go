package keyspace

import (
	"errors"

	"mayfly/keyspace/replica"
)

var errNoRoles = errors.New("roles are not built yet")

// Position returns the position of what memory and the local journal have in common.
func (ks *Keyspace) Position() replica.Position { return replica.Position{} }

// Durable returns the index of the log up to which the local files are forced to disk.
func (ks *Keyspace) Durable() uint64 { return 0 }

// ReplicaState returns the last state of a tail.
func (ks *Keyspace) ReplicaState() []byte { return nil }

// Found gives the keyspace a position, durably, whatever it had: that of a log that begins with its content.
func (ks *Keyspace) Found(replica.Tail) error { return errNoRoles }

// Lead makes the keyspace that of the leader. It returns once its first batch is committed; after an error it follows.
func (ks *Keyspace) Lead() error { return errNoRoles }

// Follow makes the keyspace that of a follower. It returns when no transaction can change anything any more.
func (ks *Keyspace) Follow() {}

// Leads reports whether the keyspace is that of the leader.
func (ks *Keyspace) Leads() bool { return false }

// Unsettled reports whether memory has changes that are not committed.
func (ks *Keyspace) Unsettled() bool { return false }

// Settle is Wait without the confirmation that this node leads.
func (ks *Keyspace) Settle(lsn LSN) error { return ks.Wait(lsn) }

// Abandon closes the keyspace without committing anything or a checkpoint.
func (ks *Keyspace) Abandon() error { return errNoRoles }

// ReadReplica returns the position and the state of a data folder that is not in use.
func ReadReplica(dir string) (replica.Tail, error) { return replica.Tail{}, errNoRoles }
