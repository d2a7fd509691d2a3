package figures

import (
	"sync/atomic"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/datadir"
)

// Stats are figures of the whole keyspace for INFO.
type Stats struct {
	Partitions int
	Expiry     expiry.Stats

	LoadedItems    int64         // at start
	LoadTime       int64         // ms
	JournalBytes   int64         // size of the journal files
	StoreBytes     int64         // size of the partition files and the catalogue
	Commits        int64         // group commits
	Fsyncs         int64         // of the journal
	LastCommit     time.Duration // how long it took
	MedianCommit   time.Duration // of the last 1024 commits
	SlowCommit     time.Duration // their 99th percentile
	Checkpoints    int64
	Saving         bool   // SaveInBackground has not finished
	LastSaveError  string // empty: the last checkpoint worked
	Compactions    int64  // of stores
	Compacting     bool   // a compaction is running or asked for
	LiveBytes      int64  // of the stores, without what is overwritten or deleted
	LastCompactErr string // empty: the last compaction worked
	LastWriteError string // empty: the last write worked
	DiskFull       bool   // only transactions that free space are admitted
	ReserveBytes   int64  // that the reserve holds

	OldestWaste time.Duration // how long the files may have held what is overwritten or deleted
}

// LastError is the error of the last attempt at something. The zero value is none. Safe for concurrent use.
type LastError struct{ err atomic.Pointer[error] }

// Set sets the error, nil if the attempt worked.
func (l *LastError) Set(err error) {
	if err == nil {
		l.err.Store(nil)
	} else {
		l.err.Store(&err)
	}
}

// Get returns the error, nil if the last attempt worked.
func (l *LastError) Get() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Text returns the error in words for clients, without the path of a folder; empty if the last attempt worked.
func (l *LastError) Text(dir string) string {
	if err := l.Get(); err != nil {
		return datadir.WithoutPath(err, dir).Error()
	}
	return ""
}
