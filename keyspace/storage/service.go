package storage

import (
	"context"
	"errors"
	"time"

	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/store"
	"mayfly/vfs"
)

// Service is an engine as clients see it: what they may ask it for. Its errors do not have the path of the
// data folder. Safe for concurrent use from Begin on.
type Service struct {
	engine *Engine
	role   *replica.Role // of a node of a cluster; nil: there is none
}

// Service returns the engine as clients see it.
func (e *Engine) Service() Service { return Service{e, e.Options.Role} }

// Dir is the data folder.
func (s Service) Dir() string { return s.engine.Options.Dir }

// Wait returns once the LSN is committed as the fsync policy asks, by this call together with all other
// pending work, or by another. In a cluster it also makes sure that the node has led since the transaction,
// if that was a leader's. After an error nothing is lost: the journal tries again.
func (s Service) Wait(lsn journal.LSN) error { return s.WaitUntil(lsn, 0, false) }

// CommitNow is Wait without yielding first, for a goroutine that has gathered the work of many itself.
func (s Service) CommitNow(lsn journal.LSN) error { return s.WaitUntil(lsn, 0, true) }

// WaitSynced forces everything up to an LSN, which is committed, to the disk of this node, whatever the
// policy. The error is that of the context or of the journal.
func (s Service) WaitSynced(ctx context.Context, lsn journal.LSN) error {
	return s.engine.Journal.WaitSynced(ctx, lsn)
}

// MaxWaiting is the number of uncommitted bytes above which a writer commits first.
const MaxWaiting = 32 << 20

// Throttle limits the uncommitted bytes: above the limit it commits. It is called before a transaction that
// may write. It may fail, in a cluster at a time as WaitUntil does; see also Writable.
func (s Service) Throttle(until time.Duration) error {
	if !s.Throttles() {
		return nil
	}
	return s.engine.Journal.WaitUntil(s.engine.Journal.Last(), until, false)
}

// Throttles reports whether Throttle commits now.
func (s Service) Throttles() bool {
	most := int64(MaxWaiting)
	if s.role != nil {
		most = maxReplicated
	}
	return s.engine.Journal.Waiting() > most
}

// Committed reports whether the LSN is committed.
func (s Service) Committed(lsn journal.LSN) bool { return lsn <= s.engine.Journal.Committed() }

// Halt commits everything and forces it to disk, for a process that ends while transactions still run. The
// next start replays the journal. The engine must not be used afterwards.
func (s Service) Halt() error {
	return errors.Join(s.engine.Journal.CommitAll(), s.engine.Journal.Sync())
}

// SetFsync changes the fsync policy while running. In a cluster the log makes commits durable, and the policy
// stays.
func (s Service) SetFsync(p journal.Policy) {
	if s.role == nil {
		s.engine.Journal.SetPolicy(p)
	}
}

// Save makes a checkpoint; see [Engine.Save]. It blocks until that is done; transactions continue meanwhile.
func (s Service) Save() error { return s.engine.Save() }

// SaveInBackground requests a checkpoint. It returns at once; false if an earlier request has not finished.
func (s Service) SaveInBackground() bool { return s.engine.SaveInBackground() }

// LastSave returns the time in ms of the last checkpoint, or of the start if there was none.
func (s Service) LastSave() int64 { return s.engine.LastSave() }

// SetCompaction changes when stores are compacted automatically.
func (s Service) SetCompaction(c store.Compaction) { s.engine.SetCompaction(c) }

// Compact requests a checkpoint and a compaction of all stores with waste, in the background. It returns at
// once; false if one is running already.
func (s Service) Compact() bool { return s.engine.Compact() }

// SetEraseWithin sets erase-within: what is gone is in no file of the data folder after this time. 0 promises
// nothing.
func (s Service) SetEraseWithin(d time.Duration) { s.engine.SetEraseWithin(d) }

// Backup writes a copy of the data folder, the state of one moment, to a path that does not exist, while
// reads and writes continue; see [Engine.Backup].
func (s Service) Backup(path string) error { return s.engine.Backup(context.Background(), path) }

// BackupContext is Backup, which fails when the context ends.
func (s Service) BackupContext(ctx context.Context, path string) error {
	return s.engine.Backup(ctx, path)
}

// Scrubber checks the files on disk, in the background.
func (s Service) Scrubber() *Scrubber { return s.engine.Scrub }

// Damage says which files on disk are damaged and could not be written anew yet; nil if there are none.
// Nothing is lost while the server runs, but the next start would refuse them.
func (s Service) Damage() error {
	stats := s.engine.Scrub.Stats()
	if stats.Damaged == 0 {
		return nil
	}
	return s.ForClients(errors.New(stats.Damage))
}

// Writable returns the error because of which writes are refused (MISCONF), or nil.
func (s Service) Writable() error {
	if err := s.engine.Err(); err != nil {
		return s.ForClients(err)
	}
	return s.engine.Disk.Err()
}

// DiskFull reports whether writes are refused because the disk is full.
func (s Service) DiskFull() bool { return s.engine.Disk.Full() || vfs.IsFull(s.engine.Err()) }

// Hangs reports whether the disk takes longer than some time for what replies wait for, and than a very slow
// disk does.
func (s Service) Hangs(longest time.Duration) bool { return s.engine.Journal.Hangs(longest) }

// Freeing returns the error because of which even transactions that free space are refused, or nil.
// On a full disk only these are admitted: see "A full disk" in the package comment.
func (s Service) Freeing() error {
	if err := s.engine.Err(); err != nil {
		return s.ForClients(err)
	}
	return s.engine.Disk.freeingErr()
}

// Unsaved returns why a stop now would lose writes, or nil.
func (s Service) Unsaved() error {
	if !s.engine.Journal.Begun() {
		return nil
	}
	return s.ForClients(s.engine.Err())
}

// ForClients returns an error without the path of the data folder, which is not for clients; the log has it.
func (s Service) ForClients(err error) error { return datadir.WithoutPath(err, s.engine.Options.Dir) }
