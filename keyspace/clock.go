package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/record"
)

// Rule 8 says that time never runs backwards, not across a restart either. A start knows nothing of the
// run before it but what is on disk, and the wall clock may have been set back meanwhile. So the record
// of the clock is a promise: no reply reveals a later time than the one in it.
//
//  1. A transaction that begins after that time renews the promise, markInterval ahead, and hands the
//     record to the journal.
//  2. It and all that follow wait for the record before they reply, as for anything else they have seen.
//     So at most one item of the journal a markInterval is written for it, and none while nobody asks.
//  3. A checkpoint brings it to the catalogue before the journals that hold it go.
//  4. A start does not begin before the time that was promised. After a kill it may have to wait for it,
//     for a markInterval at most; if that is not enough the wall clock was set back, and ours is set to
//     that time. Close withdraws what has not been used.
//
// While writes are refused nothing can be promised, and reads go on without it.
const markInterval = time.Second

// promise is how far time may go before it is to be written down again.
type promise struct {
	until  atomic.Int64  // ms
	ticket atomic.Uint64 // covers the record that says so
	mu     sync.Mutex    // held while both are changed and the record is handed in: they change at once
}

// promised sees to it that it has been promised not to be before a moment (ms) again, and gives the
// ticket that covers the promise, 0 if it is committed. Locks of partitions may be held.
func (ks *Keyspace) promised(now int64) LSN {
	p := &ks.promise
	if now > p.until.Load() {
		ks.renewPromise(now)
	}
	t := LSN(p.ticket.Load()) // read after until: not that of an earlier promise
	if ks.Committed(t) || ks.Writable() != nil {
		return 0
	}
	return t
}

func (ks *Keyspace) renewPromise(now int64) {
	p := &ks.promise
	p.mu.Lock()
	defer p.mu.Unlock()
	if now <= p.until.Load() || ks.Writable() != nil {
		return
	}
	until := now + markInterval.Milliseconds()
	p.ticket.Store(uint64(ks.journal.append(appendSet(nil, record.ClockKey, record.View(ks.clockRecord(until))))))
	p.until.Store(until)
}

// setPromise makes a moment (ms) the promise, without handing it in: the first of a run, or the last.
func (ks *Keyspace) setPromise(until int64) {
	ks.promise.mu.Lock()
	defer ks.promise.mu.Unlock()
	ks.promise.until.Store(until)
}

// lastPromise is the promise as of a moment (ms): what has been handed to the journal by now is not beyond
// it.
func (ks *Keyspace) lastPromise() int64 {
	ks.promise.mu.Lock()
	defer ks.promise.mu.Unlock()
	return ks.promise.until.Load()
}

// clockRecord holds a moment (ms) and the epoch of versions.
func (ks *Keyspace) clockRecord(ms int64) []byte {
	return record.Append(nil, record.ClockKey, Item{Kind: record.ClockKind, TS: ms, Version: ks.epoch})
}
