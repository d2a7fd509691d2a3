package keyspace

import (
	"math"
	"runtime"
)

// cleanLocked does one step of cleaning if a table needs it. p.mu must be held, and no transaction may have
// changes in the partition that it can roll back.
func (p *partition) cleanLocked() {
	if p.shard.Unclean() {
		p.cleanStepLocked()
	}
}

// cleanStepLocked does one step of cleaning. A failure inside leaves items that nothing finds, and the partition
// may stay locked: the process ends. p.mu must be held.
func (p *partition) cleanStepLocked() {
	defer endProcessOnPanic()
	p.shard.Clean()
}

// Garbage estimates the bytes of memory that former keys and values take: what [Keyspace.Clean] can free.
func (ks *Keyspace) Garbage() (n int64) {
	for _, p := range ks.partitions {
		n += p.shard.Garbage()
	}
	return n
}

// Clean frees the memory of former keys and values beyond what is worth while during writes. It takes about a
// second for some million items but holds others up for moments only. Safe for concurrent use.
func (ks *Keyspace) Clean() {
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		for done, more := 0, true; more; {
			done, more = t.cleanFurther(done)
			runtime.Gosched() // those that wait for the lock come first
		}
	}
}

// Clean is [Keyspace.Clean] if the transaction has locked nothing. Otherwise it does nothing: to wait for one
// partition while holding another could deadlock.
func (tx *Tx) Clean() {
	if tx.held.None() {
		tx.ks.Clean()
	}
}

// cleanFurther does one step of a thorough cleaning; see [memtable.Table.CleanFurther].
func (t *table) cleanFurther(done int) (now int, more bool) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	defer endProcessOnPanic()
	return t.CleanFurther(done)
}
