package keyspace

import "mayfly/keyspace/lease"

const leaseTime = lease.Time

// leased extends the lease to cover a time (ms) if need be, and returns the LSN that covers the lease, 0 if it is
// committed. Locks of partitions may be held.
func (ks *Keyspace) leased(now int64) LSN {
	if !ks.lease.Covers(now) {
		ks.lease.Extend(now, ks.Writable, func(until int64) uint64 { return uint64(ks.journal.Append(ks.clockRecord(until))) })
	}
	lsn := LSN(ks.lease.LSN())
	if ks.Committed(lsn) || ks.Writable() != nil {
		return 0
	}
	return lsn
}

// clockRecord returns the record of the clock at a time in ms.
func (ks *Keyspace) clockRecord(ms int64) lease.Record { return lease.NewRecord(ms, ks.epoch) }
