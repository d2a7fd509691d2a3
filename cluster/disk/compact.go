package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Retain keeps the entries after index, with which a node that is being sent stores goes on, unless the log
// has more bytes than most. An index of 0 ends that.
func (l *Log) Retain(index uint64, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retain, l.most = index, most
}

// Behind returns the size of the entries in memory after an index.
func (l *Log) Behind(index uint64) (bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, size := range l.sizes[min(max(index, l.base)-l.base, uint64(len(l.sizes))):] {
		bytes += size
	}
	return bytes
}

// Compact forgets entries up to durable at most, the index up to which the local files are on disk. It keeps
// Options.Keep bytes, and does nothing unless an eighth of that can go. conf is the configuration as of
// durable or later.
func (l *Log) Compact(durable uint64, conf *raftpb.ConfState) error {
	if l.err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, l.err)
	}
	index, freed := l.target(durable)
	if freed <= l.options.Keep/8 {
		return nil
	}
	term, err := l.memory.Term(index)
	if err != nil {
		return l.fail(err)
	}
	m := &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: conf}
	if err := l.wal.SaveSnapshot(marker(m)); err != nil {
		return l.fail(err)
	}
	if err := l.memory.Compact(index); err != nil {
		return l.fail(err)
	}
	l.mu.Lock()
	l.sizes = slices.Clone(l.sizes[index-l.base:])
	l.base = index
	l.bytes.Add(-freed)
	l.mu.Unlock()
	if err := l.wal.ReleaseLockTo(index); err != nil {
		return l.fail(err)
	}
	if err := l.removeBefore(index); err != nil {
		return err
	}
	l.countFiles()
	return nil
}

// target returns up to where the log may be forgotten, and how many bytes that frees.
func (l *Log) target(durable uint64) (index uint64, freed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes := l.bytes.Load()
	for i, size := range l.sizes {
		next := l.base + 1 + uint64(i)
		left := bytes - freed
		retained := l.retain != 0 && next > l.retain && left <= l.most
		if next > durable || left <= l.options.Keep || retained {
			break
		}
		index = next
		freed += size
	}
	return index, freed
}

// removeBefore deletes the segments before the one with the entry after index, the oldest first. Those that
// cannot be deleted go next time.
func (l *Log) removeBefore(index uint64) error {
	segments, err := listSegments(l.options.Dir)
	if err != nil {
		return err
	}
	keep := len(segments) - 1
	for keep > 0 && segments[keep].index > index {
		keep--
	}
	for _, s := range segments[:max(keep, 0)] {
		if err := os.Remove(s.path); err != nil {
			if l.options.Log != nil {
				l.options.Log.Warn("cannot delete an old segment of the raft log", zap.Error(err))
			}
			return nil // without a gap
		}
	}
	return nil
}

// countFiles adds up the sizes of all files, those allocated ahead too.
func (l *Log) countFiles() {
	files, err := os.ReadDir(l.options.Dir)
	if err != nil {
		return
	}
	total := int64(0)
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			total += info.Size()
		}
	}
	l.files.Store(total)
}

// segment is a file of the log: its number, and the index of its first entry or a later one.
type segment struct {
	path            string
	sequence, index uint64
}

// listSegments returns the files of the log in order. A gap between them is damage.
func listSegments(dir string) (segments []segment, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("raft log: %w", err)
	}
	for _, f := range files {
		s := segment{path: filepath.Join(dir, f.Name())}
		if !strings.HasSuffix(f.Name(), ".wal") {
			continue
		}
		if _, err := fmt.Sscanf(f.Name(), "%016x-%016x.wal", &s.sequence, &s.index); err != nil {
			return nil, &DamageError{s.path, -1, fmt.Errorf("the name of a segment is damaged: %w", err)}
		}
		if n := len(segments); n > 0 && segments[n-1].sequence+1 != s.sequence {
			return nil, &DamageError{s.path, -1, fmt.Errorf("segment %d follows segment %d", s.sequence, segments[n-1].sequence)}
		}
		segments = append(segments, s)
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("raft log: %w: %s has no segments", os.ErrNotExist, dir)
	}
	return segments, nil
}
