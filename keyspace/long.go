package keyspace

import "mayfly/keyspace/memtable"

// MarkLong notes that the transaction, which has begun, may take long: TryBeginKeys does not wait for it. If that is not
// certain, it waits about a ms, and a second call follows. Close ends that.
func (tx *Tx) MarkLong(certain bool) { tx.held.MarkLong(certain) }

// Covers reports whether the transaction has locked the partition of an id.
func (tx *Tx) Covers(id string) bool { return tx.held.Has(tx.ks.partitionOf(id).Number) }

// Reserve makes room for a number of changes, before Begin: so the transaction need not grow while it holds locks.
func (tx *Tx) Reserve(changes int) { tx.changes.Grow(changes) }

// TryBeginKeys is BeginKeys, but returns false instead of waiting for a transaction that is marked as long. What was
// prepared is dropped then.
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
