package commands

import "sync/atomic"

// backupStats are the figures of BACKUP since the start. Safe for concurrent use.
type backupStats struct {
	made   atomic.Int64
	last   atomic.Int64 // when the last one that is complete began, ms since 1970; 0: there is none
	failed atomic.Pointer[string]
}

// note notes a backup that began at the given time in ms and has ended with err.
func (b *backupStats) note(began int64, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	} else {
		b.made.Add(1)
		b.last.Store(began)
	}
	b.failed.Store(&failure)
}

// lastError returns why the last backup failed; empty if it did not.
func (b *backupStats) lastError() string {
	if failure := b.failed.Load(); failure != nil {
		return *failure
	}
	return ""
}
