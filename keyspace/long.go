package keyspace

import "mayfly/keyspace/memtable"

// MarkLong notes that the transaction, which has begun, may keep its locks for long. TryBeginKeys does not wait for
// it. Close ends that.
func (tx *Tx) MarkLong() { tx.held.MarkLong() }

// Reserve makes room for a number of changes, so that the transaction need not grow while it holds locks. It
// comes before Begin.
func (tx *Tx) Reserve(changes int) { tx.changes.Grow(changes) }

// TryBeginKeys is BeginKeys, but returns false instead of waiting for a transaction that is marked as long. What was
// prepared is dropped then.
func (ks *Keyspace) TryBeginKeys(tx *Tx, ids []string) bool {
	if len(ids) == 1 {
		p := ks.partitionOf(ids[0])
		if !p.Mu.LockUnlessLong() {
			tx.bodies = memtable.Bodies{}
			return false
		}
		tx.beginLocked(ks, p, ids[0])
		return true
	}
	for _, id := range ids {
		tx.held.Choose(ks.partitionOf(id).Number)
	}
	if !tx.held.TryLock(&ks.locks) {
		tx.bodies = memtable.Bodies{}
		return false
	}
	ks.BeginNone(tx)
	return true
}
