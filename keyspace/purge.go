package keyspace

import (
	"math"
	"runtime"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// locked is a partition whose lock is held.
type locked struct {
	ks *Keyspace
	*partition
}

// expire reports the death of an item that was removed because it is dead at a moment in ms. The caller
// releases the entry. This is the one place that reports deaths, once each, but for those that a transaction
// is not certain of: see Tx.expire.
func (p locked) expire(t *table, e *memtable.Entry, now int64) {
	p.alertDeath(t, e)
	if p.ks.opt.OnDeath != nil && !p.ks.follows() {
		p.ks.opt.OnDeath(t.C, t.ID(e), max(LSN(e.LSN()), p.ks.catalogue.lsn, p.ks.leased(now)))
	}
}

// pools returns up to n of the purge's pools from a position on that wraps around.
func (ks *Keyspace) pools(from, n int) []expiry.Pool {
	ks.ListenersChanged()
	some := ks.tables.Some(nil, from, n)
	list := make([]expiry.Pool, len(some))
	for i, t := range some {
		list[i] = t
	}
	return list
}

// PurgeOnce runs one slow cycle of the active purge to its end. Tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() {
	ks.tellDue(ks.Now() + 1)
	ks.purge.Whole()
}

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
