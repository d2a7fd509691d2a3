package disk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// segmentSize is the size from which a new segment begins. Two are allocated ahead.
const segmentSize = 16 << 20

// version is that of the log's form, the first byte of its metadata.
const version = 1

func init() { wal.SegmentSizeBytes = segmentSize }

// Options says where a log is and to whom it belongs.
type Options struct {
	Dir         string // of the log alone, DIR/cluster/wal
	Cluster, ID uint64 // written into the log, compared when it is opened
	// Applied and Term are the position of the local files. The log must have it, or begin right after it.
	Applied, Term uint64
	// Installed is the configuration of stores that came from a peer, nil if the local files did not. The log
	// begins anew after Applied if it does not have it.
	Installed *raftpb.ConfState
	// Keep is how many bytes of entries stay in memory and on disk behind the local files' position
	// (repl-log-size); default 64 MB.
	Keep int64
	Log  *zap.Logger // nil: discarded
}

func (o *Options) metadata() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{version}, o.Cluster), o.ID)
}

// DamageError says that the log on disk is not what was written. The node sets its folder aside and joins
// with a new id.
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

// SyncError says that the disk has not taken what it was given. The log may be opened again.
type SyncError struct {
	Dir   string
	Cause error
}

func (e *SyncError) Error() string { return fmt.Sprintf("raft log %s: sync: %v", e.Dir, e.Cause) }
func (e *SyncError) Unwrap() error { return e.Cause }

// ErrFailed is wrapped by every error of Save and Compact after the first one: what is on disk is not known
// any more.
var ErrFailed = errors.New("raft log: failed before")

// ErrForeign is wrapped by the error of Open for the log of another node or cluster.
var ErrForeign = errors.New("raft log of another node")

// Log is the raft log of one node. One goroutine at a time uses it; Memory, Size, Retain and Behind are safe
// for others.
type Log struct {
	options Options
	wal     *wal.WAL
	memory  *raft.MemoryStorage
	err     error // of the first Save that failed

	mu     sync.Mutex // protects base, retain, most and sizes
	base   uint64     // the marker: entries up to it are forgotten
	retain uint64     // see Retain
	most   int64
	sizes  []int64 // of the entries in memory, from base+1 on
	bytes  atomic.Int64
	files  atomic.Int64
}

// Exists reports whether dir has a log.
func Exists(dir string) bool { return wal.Exist(dir) }

// Create makes the log of a new id. A founder passes the snapshot {index 1, term 1, voters} with which all
// begin; nil: an empty log. After an error or a crash there is no log.
func Create(o Options, first *raftpb.SnapshotMetadata) error {
	staging := o.Dir + ".new"
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o700); err != nil {
		return err
	}
	w, err := wal.Create(o.Log, staging, o.metadata())
	if err != nil {
		return fmt.Errorf("raft log %s: %w", o.Dir, err)
	}
	if first != nil {
		err = w.SaveSnapshot(marker(first))
		if err == nil {
			err = w.Save(&raftpb.HardState{Term: first.Term, Vote: new(uint64), Commit: first.Index}, nil)
		}
	}
	if err = errors.Join(err, closeWAL(w)); err == nil {
		err = os.Rename(staging, o.Dir)
	}
	if err != nil {
		_ = os.RemoveAll(staging) // the next attempt does
		return fmt.Errorf("raft log %s: %w", o.Dir, err)
	}
	return syncDir(filepath.Dir(o.Dir))
}

// syncDir forces the names in a folder to disk.
func syncDir(path string) error {
	dir, err := fileutil.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(fileutil.Fsync(dir), dir.Close())
}

func marker(m *raftpb.SnapshotMetadata) *walpb.Snapshot {
	conf := m.GetConfState()
	if conf == nil {
		conf = &raftpb.ConfState{}
	}
	return &walpb.Snapshot{Index: new(m.GetIndex()), Term: new(m.GetTerm()), ConfState: conf}
}

// Open opens the log and reads it into memory.
func Open(o Options) (*Log, error) {
	o.Keep = cmp.Or(o.Keep, 64<<20)
	c, err := scan(&o)
	if err != nil {
		return nil, err
	}
	anew, err := c.position(&o)
	if err != nil {
		return nil, err
	}
	if err := c.cut(&o); err != nil {
		return nil, err
	}
	if err := removeLeftovers(o.Dir); err != nil {
		return nil, err
	}
	w, err := wal.Open(o.Log, o.Dir, &walpb.Snapshot{Index: new(c.base.index), Term: new(c.base.term)})
	if err != nil {
		return nil, fmt.Errorf("raft log %s: %w", o.Dir, err)
	}
	l := &Log{options: o, wal: w, memory: raft.NewMemoryStorage()}
	if _, _, _, err := w.ReadAll(); err != nil {
		// It writes too: it allocates the rest of the segment again.
		if number := syscall.Errno(0); errors.As(err, &number) {
			err = l.failure(err)
		} else {
			err = &DamageError{c.tail, -1, err}
		}
		return nil, errors.Join(err, closeWAL(w))
	}
	if err := l.begin(c, anew); err != nil {
		return nil, errors.Join(err, closeWAL(w))
	}
	l.countFiles()
	return l, nil
}

// begin puts what was read into memory and onto the disk for certain.
func (l *Log) begin(c *content, anew bool) error {
	if err := c.rewrite(); err != nil {
		return l.failure(err)
	}
	if err := syncDir(l.options.Dir); err != nil {
		return l.failure(err)
	}
	if anew {
		c.install(&l.options)
		m := &raftpb.SnapshotMetadata{Index: &c.base.index, Term: &c.base.term, ConfState: l.options.Installed}
		if err := l.wal.SaveSnapshot(marker(m)); err != nil {
			return l.failure(err)
		}
	}
	// The library repeats the hard state at the head of each segment only once it was saved through it.
	if err := l.wal.Save(c.hard, nil); err != nil {
		return l.failure(err)
	}
	if err := l.wal.Sync(); err != nil {
		return l.failure(err)
	}
	l.base = c.base.index
	if l.base > 0 {
		snap := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &c.base.index, Term: &c.base.term}}
		if err := l.memory.ApplySnapshot(snap); err != nil {
			return err
		}
	}
	if !raft.IsEmptyHardState(c.hard) {
		if err := l.memory.SetHardState(c.hard); err != nil {
			return err
		}
	}
	l.count(c.entries)
	return l.memory.Append(c.entries)
}

// Memory returns the entries as raft reads them.
func (l *Log) Memory() *raft.MemoryStorage { return l.memory }

// Save writes what a Ready asks for, first to disk, then to memory. It is on disk when Save returns, except
// for a HardState whose commit alone is another.
func (l *Log) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	if l.err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, l.err)
	}
	if !raft.IsEmptySnap(snap) {
		if err := l.wal.SaveSnapshot(marker(snap.GetMetadata())); err != nil {
			return l.fail(err)
		}
	}
	if err := l.wal.Save(hs, entries); err != nil {
		return l.fail(err)
	}
	if !raft.IsEmptySnap(snap) {
		if err := l.memory.ApplySnapshot(snap); err != nil {
			return l.fail(err)
		}
		l.mu.Lock()
		l.base = snap.GetMetadata().GetIndex()
		l.sizes = nil
		l.bytes.Store(0)
		l.mu.Unlock()
	}
	if !raft.IsEmptyHardState(hs) {
		if err := l.memory.SetHardState(hs); err != nil {
			return l.fail(err)
		}
	}
	l.count(entries)
	if err := l.memory.Append(entries); err != nil {
		return l.fail(err)
	}
	return nil
}

func (l *Log) fail(err error) error {
	l.err = l.failure(err)
	return l.err
}

// failure gives an error of the library its place. Syncs fail with a bare error number; so does an allocation
// on a full disk.
func (l *Log) failure(err error) error {
	if number, ok := err.(syscall.Errno); ok && number != syscall.ENOSPC && number != syscall.EDQUOT {
		return &SyncError{l.options.Dir, err}
	}
	return fmt.Errorf("raft log %s: %w", l.options.Dir, err)
}

// entryOverhead is about what an entry takes in memory besides its data.
const entryOverhead = 160

// count adds the sizes of entries, which replace those of the same index and all after them.
func (l *Log) count(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes := l.bytes.Load()
	if first := entries[0].GetIndex(); first <= l.base {
		entries = entries[min(uint64(len(entries)), l.base+1-first):]
	} else {
		for keep := first - l.base - 1; uint64(len(l.sizes)) > keep; {
			last := len(l.sizes) - 1
			bytes -= l.sizes[last]
			l.sizes = l.sizes[:last]
		}
	}
	for _, e := range entries {
		size := int64(len(e.GetData())) + entryOverhead
		l.sizes = append(l.sizes, size)
		bytes += size
	}
	l.bytes.Store(bytes)
}

// Size returns the bytes of the entries in memory, and of the files as of the last Compact.
func (l *Log) Size() (memory, files int64) { return l.bytes.Load(), l.files.Load() }

// Close closes the log, after an error too.
func (l *Log) Close() error { return closeWAL(l.wal) }

// closeWAL closes a log of the library, which keeps its files locked if it cannot sync the last one.
func closeWAL(w *wal.WAL) error {
	err := w.Close()
	if err != nil {
		w.SetUnsafeNoFsync()
		err = errors.Join(err, w.Close())
	}
	return err
}
