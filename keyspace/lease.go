package keyspace

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/record"
)

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

// clockRecord returns the record of the clock: a time (ms) and the epoch of versions.
func (ks *Keyspace) clockRecord(ms int64) clockRecord {
	return clockRecord(record.Append(nil, record.ClockKey, Item{Kind: record.ClockKind, TS: ms, Version: ks.epoch}))
}

// clockRecord is appended to the journal as a group of its own.
type clockRecord string

func (r clockRecord) AppendTo(dst aof.Commands) aof.Commands {
	dst.Set(record.ClockKey, string(r), "")
	return dst
}
