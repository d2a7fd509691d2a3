package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mayfly/expiry/clock"
)

// defaultPreallocate is Preallocate of the options unless they say another.
const defaultPreallocate = 1 << 20

// preallocateShare is the part of Preallocate that a commit may take. For larger commits, writing zeros costs
// more than extending the file.
const preallocateShare = 16

// preallocate writes zeros behind the last commit, which has this many bytes, if none are left. The fsync of
// the commit follows. The lead is held.
//
// On a full disk it stops until the next file: the last bytes are for commits.
func (j *Journal) preallocate(commit int64) {
	if j.diskFull || j.file.Preallocated() > 0 || commit > j.ahead/preallocateShare {
		return
	}
	if err := j.file.Preallocate(j.ahead); err != nil {
		j.diskFull = true
		j.log.Debug().Err(err).Msg("the journal continues without preallocation")
	}
}

// endFileLocked makes the newest file end with its last commit, and forces it to disk. The lead and syncMu
// are held, and nothing waits to be written.
func (j *Journal) endFileLocked() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	cut, err := j.file.Trim()
	if cut {
		// With its metadata: otherwise it may be read without its new end.
		if err := j.file.Sync(); err != nil {
			return j.breakLocked(err)
		}
	}
	return errors.Join(err, j.syncLocked(j.Committed()))
}

// Sync forces all commits to disk.
func (j *Journal) Sync() error { return j.syncTo(j.Committed()) }

// WaitSynced forces everything up to an LSN, which is committed, to disk, whatever the policy. All who wait
// share an fsync. The error is that of the context or of the journal.
func (j *Journal) WaitSynced(ctx context.Context, lsn LSN) error {
	if j.Committed() < lsn {
		return cmp.Or(j.Err(), errUnknown(lsn))
	}
	for j.Synced() < lsn {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case r := <-j.forced.DoChan("", func() (any, error) { return nil, j.Sync() }):
			if r.Err != nil {
				return r.Err
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// syncTo forces everything up to an LSN to disk, which is written already. A failed fsync is final: the
// system may have dropped what it could not write, and would report success the next time.
func (j *Journal) syncTo(lsn LSN) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	return j.syncLocked(lsn)
}

// syncLocked: syncMu must be held.
func (j *Journal) syncLocked(lsn LSN) error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.synced.Load() >= uint64(lsn) {
		return nil
	}
	end := j.end.Load()
	slow := time.AfterFunc(slowSync, func() { j.slow.Store(true) })
	err := j.file.SyncData()
	slow.Stop()
	j.fsyncs.Add(1)
	if err != nil {
		return j.breakLocked(err)
	}
	j.synced.Store(uint64(lsn))
	j.onDisk.Store(end)
	return nil
}

// breakLocked refuses all further writes because an fsync failed. syncMu must be held.
func (j *Journal) breakLocked(err error) error {
	err = fmt.Errorf("forcing the journal to disk: %w", err)
	j.broken.Store(&err)
	j.log.Error().Err(err).Msg("the disk failed: writes are refused until the server is started again")
	return err
}

// syncEachSecond forces commits to disk for the policy EverySec. Commits continue during the fsync.
func (j *Journal) syncEachSecond() {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-ticker.C:
			if j.policyNow() == EverySec {
				_ = j.Sync() // breakLocked notes and logs a failure
			}
		}
	}
}

func (j *Journal) policyNow() Policy { return Policy(j.policy.Load()) }

// SetPolicy changes the policy. If the new one is Always it forces earlier commits to disk first.
func (j *Journal) SetPolicy(p Policy) {
	j.lead() // a commit under way ends under the policy under which it began
	defer j.resign()
	j.step.Begin(clock.Monotonic(), j.end.Load()-j.onDisk.Load())
	defer j.step.End()
	j.policy.Store(int32(p))
	if p == Always {
		_ = j.Sync() // breakLocked notes and logs a failure
		return
	}
	// Only commits that are forced to disk one by one may overwrite zeros: the system may write a later one
	// to disk before an earlier one.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.file != nil && j.file.Preallocated() > 0 {
		_ = j.endFileLocked() // breakLocked notes and logs a failure
	}
}
