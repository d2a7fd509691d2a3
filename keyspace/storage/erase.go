package storage

import (
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// wasteState is what is known of the age of waste on disk.
type wasteState struct {
	within  atomic.Int64 // erase-within, a time.Duration
	journal atomic.Int64 // ms; since when the journal holds changes, 0 if it holds none

	// What a start finds.
	moments     wasteMoments // what the catalogue says
	inCatalogue bool         // its store has waste
	inItems     []bool       // the partition's store has deletes
	inJournal   bool         // a journal has text
	clock       int64        // ms; the clock of the catalogue's store, then the first one in a journal
	replayed    bool         // clock is of a journal

	// Run owns these.
	overdue bool  // that waste is overdue was logged
	aside   int64 // ms; the last look at what is kept aside
}

// SetEraseWithin sets erase-within: what is gone is in no file of the data folder after this time. 0 promises
// nothing.
func (e *Engine) SetEraseWithin(d time.Duration) { e.waste.within.Store(int64(d)) }

// wasteRule returns how long waste may stay in files.
func (e *Engine) wasteRule() wasteRule {
	return wasteRule{within: time.Duration(e.waste.within.Load()), never: e.compaction.when.Load().Percentage == 0}
}

// age returns the age of what became known at a time in ms, 0 if there is nothing.
func age(since, now int64) time.Duration {
	if since == 0 {
		return 0
	}
	return time.Duration(max(now-since, 0)) * time.Millisecond
}

// oldestWaste returns the age of the oldest waste in the files. Everything in a journal counts as waste.
func (e *Engine) oldestWaste() (oldest time.Duration) {
	now := e.Options.Now()
	oldest = age(e.waste.journal.Load(), now)
	for _, s := range e.Stores() {
		oldest = max(oldest, age(s.WasteSince(), now))
	}
	return oldest
}

// oldWaste returns the one of some stores that has the oldest waste, if that is old enough for a compaction,
// else nil.
func (e *Engine) oldWaste(some []*store.Store) *store.Store {
	_, bytes := store.Sizes(e.Stores())
	age, ok := e.wasteRule().age(bytes)
	if !ok {
		return nil
	}
	return store.WithOldestWaste(some, e.Options.Now()-age.Milliseconds())
}

// asideInterval is the time in ms between two looks at what is kept aside.
const asideInterval = 60_000

// watchWaste notes since when the journal holds changes, removes what was kept aside long enough, and logs
// when waste is older than erase-within allows. Run calls it each second.
func (e *Engine) watchWaste() {
	w, rule, now := &e.waste, e.wasteRule(), e.Options.Now()
	if !e.Journal.Idle() {
		w.journal.CompareAndSwap(0, now)
	}
	if now-w.aside >= asideInterval {
		w.aside = now
		repairs := int64(0) // files of a repair stay: an operator is to read them
		if rule.within > 0 {
			repairs = now - rule.within.Milliseconds()
		}
		if err := datadir.RemoveAside(e.Options.FS, e.Options.Dir, now-rule.endAge().Milliseconds(), repairs, e.Options.Log); err != nil {
			e.Options.Log.Error().Err(err).Msg("cannot remove files that were kept aside")
		}
	}
	err := rule.overdue(e.oldestWaste())
	switch {
	case err != nil && !w.overdue:
		e.Options.Log.Error().Err(err).AnErr("write", e.Err()).AnErr("disk", e.Disk.Err()).
			AnErr("checkpoint", e.checkpoint.failed.get()).AnErr("compaction", e.compaction.failed.get()).
			Msg("overwritten and deleted data is not erased in time; it will be tried again")
	case err == nil && w.overdue:
		e.Options.Log.Info().Msg("overwritten and deleted data is erased in time again")
	}
	w.overdue = err != nil
}

// deletes reports whether the stores have items that were removed since the last checkpoint.
func (e *Engine) deletes() bool {
	return slices.ContainsFunc(e.partitions, func(p Partition) bool {
		p.Lock.Lock()
		defer p.Lock.Unlock()
		return p.Shard.Deletes()
	})
}

// noteJournal notes after a checkpoint which began at a time in ms since when the journal may hold changes.
func (w *wasteState) noteJournal(j *journal.Journal, began int64) {
	if j.Idle() {
		began = 0
	}
	w.journal.Store(began)
}

// captureWaste notes which stores get waste by what is captured, at a time in ms, and captures the moments
// for the catalogue if they have changed. records are those captured of the catalogue. The lock must be held.
func (e *Engine) captureWaste(records []aof.Op, now int64) {
	f := &e.checkpoint
	if f.waste == nil {
		f.waste = make([]int64, len(e.partitions))
	}
	for i, p := range e.partitions {
		p.Lock.Lock()
		some := p.Shard.Overwrites()
		p.Lock.Unlock()
		if f.waste[i] == 0 && (some || slices.ContainsFunc(f.captured[i], func(o aof.Op) bool { return o.Del })) {
			f.waste[i] = now
		}
	}
	for _, o := range records {
		if f.catalogueWaste == 0 && record.ContainsText(o.Key) && f.records[o.Key] > 0 {
			f.catalogueWaste = now
		}
	}
	moments := make(wasteMoments)
	add := func(s *store.Store, captured int64) {
		since := s.WasteSince()
		if since == 0 {
			since = captured
		}
		if since > 0 {
			moments[filepath.Base(s.Path())] = since
		}
	}
	add(e.catalogue, f.catalogueWaste)
	for i, s := range e.items {
		add(s, f.waste[i])
	}
	if !maps.Equal(moments, f.moments) {
		f.moments = moments
		f.catalogue = append(f.catalogue, wasteOp(moments, now))
	}
}

// wasteOp returns the record of the moments.
func wasteOp(moments wasteMoments, now int64) aof.Op {
	return aof.Op{Key: record.WasteKey, Rec: string(moments.append(nil, now))}
}

// noteWaste notes the waste that a store has got with what was captured.
func noteWaste(s *store.Store, captured *int64) {
	if *captured > 0 {
		s.NoteWaste(*captured)
		*captured = 0
	}
}

// load takes the record of the moments, of the catalogue's store.
func (w *wasteState) load(rec string) error {
	it, _, err := record.Decode(record.WasteKey, rec)
	if err == nil {
		w.moments, err = readWaste(it.Body)
	}
	return err
}

// noteClock notes a record of the catalogue if it is of the clock: that of the store, then the first one of
// the journals. While something is written, so is the clock, once a second. So the oldest change of the
// journals is about as old.
func (w *wasteState) noteClock(o aof.Op, journaled bool) {
	if o.Key != record.ClockKey || w.replayed {
		return
	}
	if it, _, err := record.Decode(o.Key, o.Rec); err == nil { // the loader reports what is wrong
		w.clock, w.replayed = it.TS, journaled
	}
}

// noteLoadedWaste notes since when the stores and the journals have waste, as a start finds them. What the
// catalogue says of a store that has none is out of date. If it does not say it of one that has some, that
// counts from now.
func (e *Engine) noteLoadedWaste() {
	w, now := &e.waste, e.Options.Now()
	note := func(s *store.Store, some bool) {
		since, known := w.moments[filepath.Base(s.Path())]
		if !known {
			since = now
		}
		if some {
			s.NoteWaste(max(since, 1))
		}
	}
	note(e.catalogue, w.inCatalogue)
	for i, s := range e.items {
		note(s, w.inItems[i] || e.partitions[i].Shard.Overwrites())
	}
	if w.inJournal {
		w.journal.Store(max(min(w.clock, now), 1))
	}
	e.checkpoint.moments = w.moments
	w.moments, w.inItems = nil, nil
}
