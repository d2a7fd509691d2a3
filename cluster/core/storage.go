package core

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// storage is the log as raft sees it: the configuration is that of the local files, not of the last cut of
// the log.
type storage struct {
	raft.Storage
	core *Core
}

func (s *storage) confState() *raftpb.ConfState {
	return &raftpb.ConfState{Voters: s.core.state.Voters, Learners: s.core.state.Learners}
}

// InitialState returns the hard state of the log and the configuration of the local files.
func (s *storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hs, _, err := s.Storage.InitialState()
	return hs, s.confState(), err
}

// Snapshot returns the position of the local files. The driver puts that of the backup in its place when it
// sends the stores.
func (s *storage) Snapshot() (*raftpb.Snapshot, error) {
	index := s.core.applied
	term, err := s.Term(index)
	if err != nil || index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: s.confState()}}, nil
}

// backlog counts the bytes of the entries in the log that were not applied.
type backlog struct {
	first uint64 // index of sizes[0]
	sizes []uint64
	bytes uint64
}

// load counts the entries of a log that were not applied before the start.
func (b *backlog) load(log raft.Storage, applied uint64) error {
	b.first = applied + 1
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	switch {
	case err != nil:
		return err
	case first > applied+1:
		return fmt.Errorf("the log begins at %d, the local files end at %d", first, applied)
	case last < applied:
		return fmt.Errorf("the log ends at %d, the local files at %d", last, applied)
	case last == applied:
		return nil
	}
	entries, err := log.Entries(applied+1, last+1, 1<<62)
	b.append(entries)
	return err
}

func (b *backlog) append(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	for index := entries[0].GetIndex(); len(b.sizes) > 0 && b.first+uint64(len(b.sizes)) > index; {
		last := len(b.sizes) - 1
		b.bytes -= b.sizes[last]
		b.sizes = b.sizes[:last]
	}
	if len(b.sizes) == 0 {
		b.first = entries[0].GetIndex()
	}
	for _, e := range entries {
		size := uint64(len(e.GetData())) + entryOverhead
		b.sizes = append(b.sizes, size)
		b.bytes += size
	}
}

// entryOverhead is about what an entry takes in memory besides its data.
const entryOverhead = 160

func (b *backlog) drop(applied uint64) {
	n := 0
	for n < len(b.sizes) && b.first+uint64(n) <= applied {
		b.bytes -= b.sizes[n]
		n++
	}
	b.first += uint64(n)
	b.sizes = b.sizes[n:]
}
