package keyspace

import "mayfly/keyspace/memtable"

// MarkLong notes that the transaction, which has begun, may keep its locks for long. TryBeginKeys does not wait for
// it. Close ends that.
func (tx *Tx) MarkLong() {
	tx.long = true
	tx.eachLocked(func(p *partition) { p.long.Store(true) })
}

// Reserve makes room for a number of changes, so that the transaction need not grow while it holds locks. It
// comes before Begin.
func (tx *Tx) Reserve(changes int) {
	tx.changes.Grow(changes)
}

// TryBeginKeys is BeginKeys, but returns false instead of waiting for a transaction that is marked as long. What was
// prepared is dropped then.
func (ks *Keyspace) TryBeginKeys(tx *Tx, ids []string) bool {
	if len(ids) == 1 {
		p := ks.partitionOf(ids[0])
		if !p.tryLock() {
			tx.bodies = memtable.Bodies{}
			return false
		}
		tx.beginLocked(ks, p, ids[0])
		return true
	}
	tx.noteKeys(ks, ids)
	for i, n := range tx.locked {
		if !ks.partitions[n].tryLock() {
			for _, n := range tx.locked[:i] {
				ks.partitions[n].mu.Unlock()
			}
			tx.many, tx.locked, tx.bodies = tx.many[:0], nil, memtable.Bodies{}
			return false
		}
	}
	ks.BeginNone(tx)
	return true
}

// tryLock locks the partition. It returns false instead of waiting for a transaction that is marked as long.
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
