package journal

import (
	"errors"
	"fmt"
	"time"
)

// PreallocateBytes is how many bytes of zeros are written behind the last commit at a time, with the policy
// [Always]; 0: none. Tests change it before anything is opened.
var PreallocateBytes = int64(1 << 20)

// preallocateShare is the part of PreallocateBytes that a commit may take: for larger ones it is more work to
// write the zeros than to make the file longer.
const preallocateShare = 16

// preallocate writes zeros behind the last commit, of this many bytes, if there are none left. The fsync that
// the commit needs anyway is to follow. The lead is held.
//
// A full disk ends it until the file is another one: the last bytes belong to what has to be written.
func (j *Journal) preallocate(commit int64) {
	if j.cramped || j.file.Preallocated() > 0 || commit > PreallocateBytes/preallocateShare {
		return
	}
	if err := j.file.Preallocate(PreallocateBytes); err != nil {
		j.cramped = true
		j.log.Debug().Err(err).Msg("the journal goes on without preallocation")
	}
}

// endFileLocked makes the newest file end with its last commit, and forces it to disk. The lead and syncMu are
// held, and all that has been handed in is written.
func (j *Journal) endFileLocked() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	cut, err := j.file.Trim()
	if cut {
		// All of it, not only its content: it may be read without its new end otherwise.
		if err := j.file.Sync(); err != nil {
			return j.breakLocked(err)
		}
	}
	return errors.Join(err, j.syncLocked(j.Committed()))
}

// Sync forces all that is committed to disk.
func (j *Journal) Sync() error { return j.syncTo(j.Committed()) }

// syncTo forces all up to an LSN that has been written to disk. A failed fsync is final: the system may have
// dropped what it could not write, and would report success the next time.
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

// breakLocked refuses writes for good because of an fsync that failed. syncMu must be held.
func (j *Journal) breakLocked(err error) error {
	err = fmt.Errorf("forcing the journal to disk: %w", err)
	j.broken.Store(&err)
	j.log.Error().Err(err).Msg("the disk failed: writes are refused until the server is started again")
	return err
}

// syncEachSecond does what EverySec asks for. Commits go on during the fsync.
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

// SetPolicy changes the policy. What is committed already is forced to disk first if the new one is Always.
func (j *Journal) SetPolicy(p Policy) {
	j.lead() // a commit under way ends under the policy under which it began
	defer j.resign()
	j.policy.Store(int32(p))
	if p == Always {
		_ = j.Sync() // breakLocked notes and logs a failure
		return
	}
	// Commits that are not forced to disk one by one do not go over zeros: the system may write a later one
	// to the disk before an earlier one.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.file.Preallocated() > 0 {
		_ = j.endFileLocked() // breakLocked notes and logs a failure
	}
}
