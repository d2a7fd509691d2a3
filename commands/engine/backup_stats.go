package engine

import "sync/atomic"

// backupStats are the figures of BACKUP since the start. Safe for concurrent use.
type backupStats struct {
	Made   atomic.Int64
	Last   atomic.Int64 // when the last one that is complete began, ms since 1970; 0: there is none
	failed atomic.Pointer[string]
}

// Note notes a backup that began at the given time in ms and has ended with err.
func (b *backupStats) Note(began int64, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	} else {
		b.Made.Add(1)
		b.Last.Store(began)
	}
	b.failed.Store(&failure)
}

// LastError returns why the last backup failed; empty if it did not.
func (b *backupStats) LastError() string {
	if failure := b.failed.Load(); failure != nil {
		return *failure
	}
	return ""
}
