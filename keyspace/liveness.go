package keyspace

import (
	"fmt"
	"strings"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// livenessFilter finds the live items of a partition's store in memory: a set is live if it has written the present
// state of its item. It costs one bit per item.
//
// Items overwritten, deleted or dropped since the last checkpoint are not live. The journal has those changes. It is
// forced to disk before the new file replaces the old, so the next start knows them. Items that have died since are
// dead at the next start too: the clock is leased, so it does not go back.
//
// No checkpoint may run meanwhile: the file lacks its changes.
type livenessFilter struct {
	ks    *Keyspace
	p     *partition
	found map[*memtable.Table]*memtable.HandleSet // entries whose sets have been found
	// incomplete says that the store lacks some items marked as stored, because a checkpoint has failed.
	incomplete bool

	list     []placedID
	prefetch memtable.Prefetcher
}

// placedID is an id and its table, nil if there is none.
type placedID struct {
	t  *memtable.Table
	id string
}

func newLivenessFilter(ks *Keyspace, p *partition) *livenessFilter {
	return &livenessFilter{
		ks: ks, p: p, found: make(map[*memtable.Table]*memtable.HandleSet), incomplete: ks.checkpoint.captured != nil,
	}
}

func (f *livenessFilter) Mark(sets []store.Candidate) error {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if err := f.placeLocked(sets); err != nil {
		return err
	}
	for i, at := range f.list {
		if at.t == nil {
			continue
		}
		h, ok := at.t.Matches(at.id, sets[i].Rec)
		sets[i].Live = ok && f.first(at.t, h)
	}
	return nil
}

// placeLocked fills the list and prefetches for the look-ups. p.mu must be held.
func (f *livenessFilter) placeLocked(sets []store.Candidate) error {
	f.list = f.list[:0]
	var t *memtable.Table
	for _, s := range sets {
		number, id, err := record.SplitKey(record.View(s.Key))
		if err != nil {
			return fmt.Errorf("%s: %q: %w", f.p.store.Path(), s.Key, err)
		}
		if t == nil || t.Container() != number {
			t = f.p.shard.Table(number)
		}
		f.list = append(f.list, placedID{t, id})
		if t != nil {
			f.prefetch.Add(t, id)
		}
	}
	f.prefetch.Run(prefetchHeader)
	f.prefetch.Reset()
	return nil
}

// first records that the set of an entry was found, and reports whether it is the first. After a crash between a
// checkpoint and the removal of its journals, the next checkpoint writes the same sets again.
func (f *livenessFilter) first(t *memtable.Table, h memtable.Handle) bool {
	s := f.found[t]
	if s == nil {
		s = new(memtable.HandleSet)
		f.found[t] = s
	}
	return s.Add(h)
}

func (f *livenessFilter) Settle() error {
	if err := f.checkComplete(); err != nil {
		return err
	}
	if err := f.ks.journal.CommitAll(); err != nil {
		return err
	}
	return f.ks.journal.Sync()
}

// checkComplete verifies that the file had every item that is marked as stored.
func (f *livenessFilter) checkComplete() error {
	if f.incomplete {
		return nil
	}
	f.p.mu.Lock()
	tables := f.p.shard.Tables()
	f.p.mu.Unlock()
	for _, t := range tables {
		for cursor, more := 0, true; more; {
			var missing string
			f.p.mu.Lock()
			if missing, cursor, more = t.FindUnseen(f.found[t], cursor); missing != "" {
				missing = strings.Clone(missing)
			}
			f.p.mu.Unlock()
			if missing != "" {
				return fmt.Errorf("%s lacks %q, which has been stored in it", f.p.store.Path(), missing)
			}
		}
	}
	return nil
}
