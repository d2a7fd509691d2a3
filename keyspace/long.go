package keyspace

import (
	"slices"
)

// This file has what keeps a goroutine that serves many clients from waiting for a transaction that locks
// partitions for long.

// MarkLong notes that the transaction, which has begun, may keep its locks for longer than it takes to wait for
// another processor. TryBeginKey and TryBeginKeys do not wait for it. Close ends that.
func (tx *Tx) MarkLong() {
	tx.long = true
	tx.eachLocked(func(p *partition) { p.long.Store(true) })
}

// Reserve makes room for a number of changes, so that the transaction need not grow while it holds locks. It
// comes before Begin.
func (tx *Tx) Reserve(changes int) {
	tx.changes = slices.Grow(tx.changes, changes)
	tx.undos = slices.Grow(tx.undos, changes)
	tx.was = slices.Grow(tx.was, changes)
}

// TryBeginKey is BeginKey, but returns false instead of waiting for a transaction that takes long.
func (ks *Keyspace) TryBeginKey(tx *Tx, id string) bool {
	p := ks.partitionOf(id)
	if !p.tryLock() {
		return false
	}
	tx.one[0] = p.number
	tx.locked = tx.one[:]
	tx.single, tx.singleID = p, id
	ks.BeginNone(tx)
	return true
}

// TryBeginKeys is BeginKeys, but returns false instead of waiting for a transaction that takes long.
func (ks *Keyspace) TryBeginKeys(tx *Tx, ids []string) bool {
	if len(ids) == 1 {
		return ks.TryBeginKey(tx, ids[0])
	}
	tx.noteKeys(ks, ids)
	for i, n := range tx.locked {
		if !ks.partitions[n].tryLock() {
			for _, n := range tx.locked[:i] {
				ks.partitions[n].mu.Unlock()
			}
			tx.many, tx.locked = tx.many[:0], nil
			return false
		}
	}
	ks.BeginNone(tx)
	return true
}

// tryLock locks the partition. It returns false instead of waiting for a transaction that takes long.
func (p *partition) tryLock() bool {
	if p.mu.TryLock() {
		return true
	}
	if p.long.Load() {
		return false
	}
	p.mu.Lock()
	return true
}
