package lease

import (
	"sync"
	"sync/atomic"
	"time"
)

// Time is how far the clock is leased ahead.
const Time = time.Second

// Lease is the time up to which replies may go without another record of the clock. Safe for concurrent use.
type Lease struct {
	until atomic.Int64  // ms
	lsn   atomic.Uint64 // covers the record
	mu    sync.Mutex    // held while the record is appended and both change
}

// Covers reports whether a time (ms) is leased.
func (l *Lease) Covers(now int64) bool { return now <= l.until.Load() }

// LSN returns the LSN of the record. It is that of the lease, or of a later one, that Covers has seen before.
func (l *Lease) LSN() uint64 { return l.lsn.Load() }

// Extend extends the lease to cover a time (ms), unless it does or writes are refused. record appends the
// record of the clock to the journal, with the end of the lease in ms, and returns its LSN.
func (l *Lease) Extend(now int64, refused func() error, record func(until int64) uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Covers(now) || refused() != nil {
		return
	}
	until := now + Time.Milliseconds()
	l.lsn.Store(record(until))
	l.until.Store(until)
}

// Renew is Extend, whatever the lease covers.
func (l *Lease) Renew(now int64, record func(until int64) uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := now + Time.Milliseconds()
	l.lsn.Store(record(until))
	l.until.Store(until)
}

// Close ends the lease at the time (ms) that now returns, with a record of it, and returns that time. Nothing
// extends the lease any more. A time that Covers accepts before or after is not later: while now reads the
// clock the lease covers nothing, and End waits.
func (l *Lease) Close(now func() int64, record func(until int64) uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(0)
	until := now()
	l.lsn.Store(record(until))
	l.until.Store(until)
	return until
}

// Set sets the end of the lease (ms) without a record: the first of a run, or the last.
func (l *Lease) Set(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(until)
}

// End returns the end of the lease (ms): no record in the journal has a later time.
func (l *Lease) End() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Load()
}
