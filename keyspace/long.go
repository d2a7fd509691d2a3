package keyspace

import (
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
)

// MarkLong notes that the transaction, which has begun, takes long, or may turn out to: TryBeginKeys waits
// about a ms then.
func (tx *Tx) MarkLong(certain bool) { tx.held.MarkLong(certain) }

// Covers reports whether the transaction has locked the partition of an id.
func (tx *Tx) Covers(id string) bool { return tx.held.Has(tx.ks.partitionOf(id).Number) }

// Reserve makes room for a number of changes, before Begin: so the transaction need not grow while it holds
// locks.
func (tx *Tx) Reserve(changes int) { tx.changes.Grow(changes) }

// TryBeginKeys is BeginKeys, but waits for no transaction that takes long: it returns false, and drops what
// was prepared.
func (ks *Keyspace) TryBeginKeys(tx *Tx, ids []string) bool {
	if len(ids) == 1 {
		if p := ks.partitionOf(ids[0]); p.Mu.LockUnlessLong() {
			tx.beginLocked(ks, p, ids[0])
			return true
		}
		return ks.tried(tx, false)
	}
	for _, id := range ids {
		tx.held.Choose(ks.partitionOf(id).Number)
	}
	return ks.tried(tx, tx.held.TryLock(&ks.locks))
}

// TryBeginAll is BeginAll as TryBeginKeys is BeginKeys.
func (ks *Keyspace) TryBeginAll(tx *Tx) bool { return ks.tried(tx, tx.held.TryLockAll(&ks.locks)) }

// tried begins a transaction, unless its locks were not to be had.
func (ks *Keyspace) tried(tx *Tx, locked bool) bool {
	if locked {
		ks.BeginNone(tx)
	} else {
		tx.bodies = memtable.Bodies{}
	}
	return locked
}

// WaitForLocks begins to wait for what TryBeginKeys or TryBeginAll could not lock.
func (ks *Keyspace) WaitForLocks() *locks.Waiter { return ks.locks.Wait() }

// GiveWay lets those who wait have the locks before the caller begins its next transaction.
func (ks *Keyspace) GiveWay() { ks.locks.GiveWay() }
