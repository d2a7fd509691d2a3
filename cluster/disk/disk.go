package disk

import (
	"errors"
	"fmt"

	_ "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Options says where a log is and to whom it belongs.
type Options struct {
	Dir         string // of the log alone, DIR/cluster/wal
	Cluster, ID uint64 // written into the log, compared when it is opened
	// Applied and Term are the position of the local files. The log must have it, or begin right after it.
	Applied, Term uint64
	// Installed says that the local files came from a peer: the log begins anew after Applied if it does not have it.
	Installed *raftpb.ConfState
	// Keep is how many bytes of entries stay in memory and on disk behind the local files' position (repl-log-size); default 64 MB.
	Keep int64
	Log  *zap.Logger // nil: discarded
}

// DamageError says that the log on disk is not what was written. The node sets its folder aside and joins with a new id.
type DamageError struct {
	File   string
	Offset int64 // -1: not one place in the file
	Cause  error
}

func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("raft log %s: %v", e.File, e.Cause)
	}
	return fmt.Sprintf("raft log %s at offset %d: %v", e.File, e.Offset, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// ErrFailed is wrapped by every error of Save after the first one: what is on disk is not known any more.
var ErrFailed = errors.New("raft log: failed before")

// Log is the raft log of one node. One goroutine at a time uses it; Memory is safe for others to read.
type Log struct{ memory *raft.MemoryStorage }

// Exists reports whether dir has a log.
func Exists(dir string) bool { return false }

// Create makes the log of a new id. A founder passes the snapshot {index 1, term 1, voters} with which all begin; nil: an empty log.
func Create(o Options, first *raftpb.SnapshotMetadata) error { return nil }

// Open opens the log and reads it into memory.
func Open(o Options) (*Log, error) { return &Log{memory: raft.NewMemoryStorage()}, nil }

// Memory returns the entries as raft reads them.
func (l *Log) Memory() *raft.MemoryStorage { return l.memory }

// Save writes what a Ready asks for, first to disk, then to memory. It is on disk when Save returns, except for a HardState whose commit alone is another.
func (l *Log) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	return nil
}

// Compact forgets entries up to durable, the index up to which the local files are on disk, but keeps Options.Keep bytes.
func (l *Log) Compact(durable uint64, conf *raftpb.ConfState) error { return nil }

// Size returns the bytes of entries in memory and of the files.
func (l *Log) Size() (memory, files int64) { return 0, 0 }

// Close closes the log. Nothing is saved that was not saved before.
func (l *Log) Close() error { return nil }
