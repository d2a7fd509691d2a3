package storage

import (
	"sync/atomic"
	"time"

	"mayfly/keyspace/datadir"
	"mayfly/keyspace/store"
)

// Stats are figures of the files.
type Stats struct {
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
	DiskFull       bool   // only transactions that free space are admitted
	ReserveBytes   int64  // that the reserve holds

	OldestWaste time.Duration // how long the files may have held what is overwritten or deleted
}

// Stats returns the figures.
func (e *Engine) Stats() (s Stats) {
	s.JournalBytes, s.Commits, s.Fsyncs = e.Journal.Size(), e.Journal.Commits(), e.Journal.Fsyncs()
	last, percentiles := e.Journal.CommitTimes(50, 99)
	s.LastCommit, s.MedianCommit, s.SlowCommit = last, percentiles[0], percentiles[1]
	s.Checkpoints, s.Saving, s.LastSaveError = e.checkpoint.done.Load(), e.checkpoint.asked.Load(), e.checkpoint.failed.text(e.Options.Dir)
	s.Compactions, s.Compacting, s.LastCompactErr = e.compaction.done.Load(), e.compaction.underWay(), e.compaction.failed.text(e.Options.Dir)
	s.DiskFull, s.ReserveBytes = e.Disk.Full(), e.Disk.Held()
	s.LiveBytes, s.StoreBytes = store.Sizes(e.Stores())
	s.OldestWaste = e.oldestWaste()
	return s
}

// lastError is the error of the last attempt at something. The zero value is none. Safe for concurrent use.
type lastError struct{ err atomic.Pointer[error] }

// set sets the error, nil if the attempt worked.
func (l *lastError) set(err error) {
	if err == nil {
		l.err.Store(nil)
	} else {
		l.err.Store(&err)
	}
}

// get returns the error, nil if the last attempt worked.
func (l *lastError) get() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// text returns the error in words for clients, without the path of a folder; empty if the last attempt
// worked.
func (l *lastError) text(dir string) string {
	if err := l.get(); err != nil {
		return datadir.WithoutPath(err, dir).Error()
	}
	return ""
}
