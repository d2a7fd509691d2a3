package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// Rule 8 says that time never runs backwards, not across a restart either. A start knows nothing of the run
// before it but what is on disk, and the wall clock may have been set back meanwhile. So the clock is leased
// ahead of its use: no reply reveals a later time than the record of the clock, unless a later record is committed.
//
//  1. A transaction that begins after the lease extends it by leaseTime, and hands the record to the journal.
//  2. It and all that follow wait for the record before they reply, as for anything else they have seen. So at
//     most one change per leaseTime is written for it, and none while no command runs.
//  3. A checkpoint brings the record to the catalogue before the journals that hold it go.
//  4. A start does not begin before the leased time. After a kill it may have to wait for it, for leaseTime at
//     most; if that is not enough the wall clock was set back, and ours is set to that time. Close returns what
//     has not been used.
//
// While writes are refused the lease cannot be extended, and reads go on without it.
const leaseTime = time.Second

// clockLease is how far time may go before the record of the clock is to be written again.
type clockLease struct {
	until atomic.Int64  // ms
	lsn   atomic.Uint64 // covers the record that says so
	mu    sync.Mutex    // held while both are changed and the record is handed in: they change at once
}

// leased makes sure that the lease covers a time (ms), and returns the LSN that covers the lease, 0 if it is
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

// set makes a time (ms) the end of the lease without handing it in: the first of a run, or the last.
func (l *clockLease) set(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(until)
}

// end is the end of the lease (ms): no time that has been handed to the journal by now is beyond it.
func (l *clockLease) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Load()
}

// clockRecord is the record of the clock: a time (ms) and the epoch of versions.
func (ks *Keyspace) clockRecord(ms int64) clockRecord {
	return clockRecord(record.Append(nil, record.ClockKey, Item{Kind: record.ClockKind, TS: ms, Version: ks.epoch}))
}

// clockRecord is handed to the journal as a group of its own.
type clockRecord string

func (r clockRecord) AppendTo(dst []byte) []byte {
	return aof.AppendSet(dst, record.ClockKey, string(r))
}
