package liveness

import (
	"fmt"
	"strings"
	"sync"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// Filter finds the live items of a partition's store in memory: a set is live if it has written the present
// state of its item. It costs one bit per item.
//
// Items overwritten, deleted or dropped since the last checkpoint are not live. The journal has those changes. It is
// forced to disk before the new file replaces the old, so the next start knows them. Items that have died since are
// dead at the next start too: the clock is leased, so it does not go back.
//
// No checkpoint may run meanwhile: the file lacks its changes.
type Filter struct {
	opt   Options
	found map[*memtable.Table]*memtable.HandleSet // entries whose sets have been found

	list     []placedID
	prefetch memtable.Prefetcher
}

// header is the number of bytes of a key and its record that a look-up reads.
const header = 64

// placedID is an id and its table, nil if there is none.
type placedID struct {
	t  *memtable.Table
	id string
}

// Options describe a partition.
type Options struct {
	Lock    sync.Locker     // protects Shard
	Shard   *memtable.Shard // the partition in memory
	Path    string          // of its store
	Journal Journal
	// Incomplete says that the store lacks some items marked as stored, because a checkpoint has failed.
	Incomplete bool
}

// Journal is what a Filter asks of the journal.
type Journal interface {
	CommitAll() error
	Sync() error
}

// New returns a filter for one compaction of a partition's store.
func New(opt Options) *Filter {
	return &Filter{opt: opt, found: make(map[*memtable.Table]*memtable.HandleSet)}
}

// Mark marks the live sets among those of a store, in the order of the file.
func (f *Filter) Mark(sets []store.Candidate) error {
	f.opt.Lock.Lock()
	defer f.opt.Lock.Unlock()
	if err := f.placeLocked(sets); err != nil {
		return err
	}
	for i, at := range f.list {
		if at.t == nil {
			continue
		}
		h, ok, several := at.t.Matches(at.id, sets[i].Rec, f.opt.Incomplete)
		if ok { // of several the last may be the only one that has the present header: all stay
			sets[i].Live = f.first(at.t, h) || several
		}
	}
	return nil
}

// placeLocked fills the list and prefetches for the look-ups. The lock must be held.
func (f *Filter) placeLocked(sets []store.Candidate) error {
	f.list = f.list[:0]
	var t *memtable.Table
	for _, s := range sets {
		k, err := record.SplitKey(record.View(s.Key))
		if err != nil {
			return fmt.Errorf("%s: %q: %w", f.opt.Path, s.Key, err)
		}
		if t == nil || t.Container() != k.Container {
			t = f.opt.Shard.Table(k.Container)
		}
		f.list = append(f.list, placedID{t, k.ID})
		if t != nil {
			f.prefetch.Add(t, k.ID)
		}
	}
	f.prefetch.Run(header)
	f.prefetch.Reset()
	return nil
}

// first records that the set of an entry was found, and reports whether it is the first. After a crash between a
// checkpoint and the removal of its journals, the next checkpoint writes the same sets again.
func (f *Filter) first(t *memtable.Table, h memtable.Handle) bool {
	s := f.found[t]
	if s == nil {
		s = new(memtable.HandleSet)
		f.found[t] = s
	}
	return s.Add(h)
}

// Settle verifies that the file had all that it should, and forces the journal to disk.
func (f *Filter) Settle() error {
	if err := f.checkComplete(); err != nil {
		return err
	}
	if err := f.opt.Journal.CommitAll(); err != nil {
		return err
	}
	return f.opt.Journal.Sync()
}

// checkComplete verifies that the file had every item that is marked as stored.
func (f *Filter) checkComplete() error {
	if f.opt.Incomplete {
		return nil
	}
	f.opt.Lock.Lock()
	tables := f.opt.Shard.Tables()
	f.opt.Lock.Unlock()
	for _, t := range tables {
		for cursor, more := 0, true; more; {
			var missing string
			f.opt.Lock.Lock()
			if missing, cursor, more = t.FindUnseen(f.found[t], cursor); missing != "" {
				missing = strings.Clone(missing)
			}
			f.opt.Lock.Unlock()
			if missing != "" {
				return &aof.DamageError{File: f.opt.Path, Reason: fmt.Sprintf("it lacks %q, which has been stored in it", missing)}
			}
		}
	}
	return nil
}
