package keyspace

import "mayfly/keyspace/lease"

const leaseTime = lease.Time

// leased extends the lease to cover a time (ms) if need be, and returns the LSN that covers the lease, 0 if
// it is committed. In a cluster a leader returns that of its lease, and a follower 0. Locks of partitions may
// be held.
func (ks *Keyspace) leased(now int64) LSN {
	if ks.role != nil {
		return ks.leasedByRole(now)
	}
	if !ks.lease.Covers(now) {
		ks.lease.Extend(now, ks.Writable, ks.appendClock)
	}
	lsn := LSN(ks.lease.LSN())
	if ks.Committed(lsn) || ks.Writable() != nil {
		return 0
	}
	return lsn
}

// leasedByRole is leased in a cluster.
func (ks *Keyspace) leasedByRole(now int64) LSN {
	if ks.follows() {
		return 0
	}
	if !ks.lease.Covers(now) {
		ks.lease.Extend(now, ks.role.Refusal, ks.appendClock)
	}
	return LSN(ks.lease.LSN())
}

// appendClock appends the record of the clock to the journal.
func (ks *Keyspace) appendClock(until int64) (lsn uint64) {
	return uint64(ks.journal.Append(ks.clockRecord(until)))
}

// clockRecord returns the record of the clock at a time in ms.
func (ks *Keyspace) clockRecord(ms int64) lease.Record { return lease.NewRecord(ms, ks.epoch.Load()) }
