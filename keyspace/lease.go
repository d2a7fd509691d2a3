package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// Time never runs backwards, not even across a restart (rule 8). A start knows only what is on disk, and the wall
// clock may have been set back meanwhile. So the clock is leased ahead of its use: no reply reveals a later time
// than the committed record of the clock.
//
//  1. A transaction that begins after the lease extends it by leaseTime, and appends the record to the journal.
//  2. It and all that follow wait for the record before they reply, as for anything else they have seen. So there
//     is at most one record per leaseTime, and none while no command runs.
//  3. A checkpoint writes the record to the catalogue before it removes the journals with it.
//  4. A start does not begin before the leased time. After a kill it waits for that, for leaseTime at most; if
//     that is not enough the wall clock was set back, and ours is set to the leased time. Close ends the lease.
//
// While writes are refused the lease cannot be extended, and reads continue without it.
const leaseTime = time.Second

// clockLease is the time up to which replies may go without another record of the clock.
type clockLease struct {
	until atomic.Int64  // ms
	lsn   atomic.Uint64 // covers the record
	mu    sync.Mutex    // held while the record is appended and both change
}

// leased extends the lease to cover a time (ms) if need be, and returns the LSN that covers the lease, 0 if it is
// committed. Locks of partitions may be held.
func (ks *Keyspace) leased(now int64) LSN {
	l := &ks.lease
	if now > l.until.Load() {
		ks.extendLease(now)
	}
	lsn := LSN(l.lsn.Load()) // read after until: not that of an earlier lease
	if ks.Committed(lsn) || ks.Writable() != nil {
		return 0
	}
	return lsn
}

func (ks *Keyspace) extendLease(now int64) {
	l := &ks.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if now <= l.until.Load() || ks.Writable() != nil {
		return
	}
	until := now + leaseTime.Milliseconds()
	l.lsn.Store(uint64(ks.journal.Append(ks.clockRecord(until))))
	l.until.Store(until)
}

// set sets the end of the lease (ms) without a record: the first of a run, or the last.
func (l *clockLease) set(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(until)
}

// end returns the end of the lease (ms): no record in the journal has a later time.
func (l *clockLease) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Load()
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
