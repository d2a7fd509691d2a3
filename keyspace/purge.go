package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// expireLocked reports the death of an item that was removed because it is dead at a moment in ms. The caller
// releases the entry. This is the one place that reports deaths, once each, but for those that a transaction is
// not certain of: see Tx.expire. The lock of t's partition must be held.
func (ks *Keyspace) expireLocked(t *table, e *memtable.Entry, now int64) {
	alertDeathLocked(t, e)
	if ks.opt.OnDeath != nil && !ks.follows() {
		ks.opt.OnDeath(t.C, t.ID(e), max(LSN(e.LSN()), ks.catalogue.lsn, ks.leased(now)))
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

// PurgeOnce runs one slow cycle of the active purge. Tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() { ks.purge.Slow() }
