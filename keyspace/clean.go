package keyspace

import (
	"math"
	"runtime"
)

// Garbage estimates the bytes of memory that former keys and values take: what [Keyspace.Clean] can free.
func (ks *Keyspace) Garbage() (n int64) {
	for _, p := range ks.partitions {
		n += p.Shard.Garbage()
	}
	return n
}

// Clean frees the memory of former keys and values beyond what is worth while during writes. It takes about a
// second for some million items but holds others up for moments only. Safe for concurrent use.
func (ks *Keyspace) Clean() {
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		for done, more := 0, true; more; {
			done, more = t.CleanStep(done)
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
