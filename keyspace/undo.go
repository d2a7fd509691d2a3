package keyspace

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/dbnum"
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/record"
)

// Taking changes back
//
// A change of a rule, Flush and Drop can be taken back by Undo until the end of a window, the newest of a name first.
//
//  1. The windows of rules are in the history of their container: see [expiry.Windows]. The former policies are its
//     retention, so what they would let live stays in memory: see kept.go.
//  2. Flush and Drop set the container aside: a container with the tables, the number, the policy and the history, that
//     nothing lists. No item is touched, in memory or on disk. The purge and eviction leave it alone.
//  3. A window ends no later than those of newer changes: what cannot be taken back keeps older changes from being so.
//  4. Who is to write a change limits the windows before it: see openWindow.

// MaxUndoWindow is the longest undo-window in seconds: 7 days.
const MaxUndoWindow = 604800

// undoState is the state of windows. Safe for concurrent use.
type undoState struct {
	window  atomic.Int64 // seconds in which a change can be taken back; 0: it cannot
	until   atomic.Int64 // ms; no window is open after it
	reclaim atomic.Bool  // windows were ended for memory: the dead that they kept are purgeable, and not yet removed
}

// SetUndoWindow sets the time in seconds in which changes to come can be taken back; 0: they cannot. The first time, it
// raises the version of the data folder, and fails if it cannot write that.
func (ks *Keyspace) SetUndoWindow(seconds int64) error {
	if seconds > 0 {
		if err := ks.storage.AllowUndo(); err != nil {
			return ks.ForClients(err)
		}
	}
	ks.undo.window.Store(seconds)
	return nil
}

// UndoWindow returns what SetUndoWindow has set.
func (ks *Keyspace) UndoWindow() int64 { return ks.undo.window.Load() }

// window is a change that can be taken back.
type window struct {
	c *Container // set aside, or listed for a rule
	expiry.Window
	rule bool // else c was flushed or dropped
}

// windows returns the open windows of a name, oldest first. The locks of all partitions must be held.
func (tx *Tx) windows(name string) (list []window) {
	add := func(c *Container, history []expiry.HistoryEntry) {
		for _, w := range expiry.Windows(history, tx.now) {
			list = append(list, window{c, w, true})
		}
	}
	cat := &tx.ks.catalogue
	for _, a := range cat.asides[name] {
		if a.aside.Until <= tx.now {
			list = nil
			continue
		}
		entries := a.history.Load().Entries
		last := len(entries) - 1 // why it was set aside
		add(a, entries[:last])
		list = append(list, window{a, expiry.Window{Entry: last, Until: a.aside.Until}, false})
	}
	if c := cat.byName[name]; c != nil {
		add(c, c.history.Load().Entries)
	}
	return list
}

// openWindow makes room for the window of a change of a container that follows, and returns its end in ms; 0: the change
// cannot be taken back. The caller has noted the container and records it.
func (tx *Tx) openWindow(c *Container) (until int64) {
	seconds := tx.ks.undo.window.Load()
	if seconds > 0 {
		until = tx.now + 1000*seconds
	}
	tx.limitWindows(c.name, until)
	if until == 0 {
		return 0
	}
	if list := tx.windows(c.name); len(list) >= expiry.MostWindows {
		for _, w := range list[:len(list)-expiry.MostWindows+1] {
			tx.closeWindow(w)
		}
	}
	if until > tx.ks.undo.until.Load() {
		tx.ks.undo.until.Store(until)
	}
	return until
}

// limitWindows ends the windows of a name no later than a moment in ms; 0: now. The caller has noted the listed container
// and records it.
func (tx *Tx) limitWindows(name string, until int64) {
	cat := &tx.ks.catalogue
	for _, a := range slices.Clone(cat.asides[name]) {
		switch {
		case until == 0:
			tx.discardAside(a)
		case a.aside.Until > until:
			tx.noteAside(a)
			a.aside = &record.Aside{What: a.aside.What, Until: until, Order: a.aside.Order}
			tx.limitHistory(a, until)
			tx.recordContainer(a)
		}
	}
	if c := cat.byName[name]; c != nil {
		tx.limitHistory(c, until)
	}
}

// limitHistory ends the windows in the history of a container, and reports whether one was open.
func (tx *Tx) limitHistory(c *Container, until int64) (changed bool) {
	h := c.history.Load()
	entries := expiry.LimitWindows(h.Entries, until)
	if changed = len(entries) > 0 && &entries[0] != &h.Entries[0]; changed {
		tx.ks.catalogue.setHistory(c, record.NewHistory(h.Etag, entries))
	}
	return changed
}

// endWindows ends all windows of a container's name, and records the container.
func (tx *Tx) endWindows(c *Container) {
	tx.writeCatalogue()
	if len(tx.windows(c.name)) > 0 {
		tx.noteContainer(c)
		tx.limitWindows(c.name, 0)
		tx.recordContainer(c)
	}
}

// closeWindow ends the oldest window of a name.
func (tx *Tx) closeWindow(w window) {
	if !w.rule {
		if c := tx.ks.catalogue.byName[w.c.name]; c != nil {
			tx.closeEntry(c, w.c.isFlush)
		}
		tx.discardAside(w.c)
		return
	}
	h := w.c.history.Load()
	etag := h.Entries[w.Entry].Etag
	if w.c.aside != nil {
		tx.noteAside(w.c)
	}
	tx.ks.catalogue.setHistory(w.c, record.NewHistory(h.Etag, expiry.CloseWindow(h.Entries, w.Entry)))
	if w.c.aside == nil {
		return
	}
	tx.recordContainer(w.c)
	if c := tx.ks.catalogue.byName[w.c.name]; c != nil { // its history counts once it has the items again
		tx.closeEntry(c, func(e *expiry.HistoryEntry) bool { return e.What == expiry.Set && e.Etag == etag })
	}
}

// closeEntry ends the window of the first entry in the history of a container that is the one.
func (tx *Tx) closeEntry(c *Container, is func(e *expiry.HistoryEntry) bool) {
	h := c.history.Load()
	for i := range h.Entries {
		if is(&h.Entries[i]) {
			tx.ks.catalogue.setHistory(c, record.NewHistory(h.Etag, expiry.CloseWindow(h.Entries, i)))
			return
		}
	}
}

// isFlush reports whether an entry in the history of the container that was flushed is that of a. Several flushes may be of
// one ms.
func (a *Container) isFlush(e *expiry.HistoryEntry) bool {
	why := a.history.Load().Entries[len(a.history.Load().Entries)-1]
	return e.What == expiry.Flushed && why.What == expiry.Flushed && e.At == why.At && !e.Undone
}

// flushOf returns the position in the history of a container of its newest flush, which has set a aside; -1 if it is not
// there any more.
func (c *Container) flushOf(a *Container) int {
	for i, e := range slices.Backward(c.history.Load().Entries) {
		if a.isFlush(&e) {
			return i
		}
	}
	return -1
}

// onlyPurgeable reports whether windows are in use and no item of a container lives or can live again. So a Flush opens a
// window, and limits others, however far the purge is.
func (tx *Tx) onlyPurgeable(c *Container) bool {
	u := &tx.ks.undo
	return (u.window.Load() > 0 || u.until.Load() > tx.now) && !c.exceeds(c.retention.Purgeable(c.Policy(), tx.now))
}

// setAside sets the items of a container aside, with its number, policy and history. The caller gives the container, if it
// stays, another number.
func (tx *Tx) setAside(c *Container, what expiry.Action, until int64) {
	why := &record.Aside{What: what, Until: until, Order: tx.ks.partitions[0].nextVersionLocked()}
	a := &Container{
		name: c.name, created: c.created, number: c.number, db: c.db, tables: c.tables, aside: why, revived: expiry.NoLimits,
	}
	a.policy.Store(c.Policy())
	a.indexes.Store(c.indexes.Load())
	a.history.Store(c.history.Load())
	c.tables = make([]*table, len(a.tables))
	for _, t := range a.tables {
		if t != nil {
			t.c = a
			t.hideLocked()
		}
	}
	cat := &tx.ks.catalogue
	cat.addAside(a)
	tx.undos = append(tx.undos, undo{f: func() {
		cat.removeAside(a)
		tables := a.tables
		a.tables = nil
		c.tables = tables
		for _, t := range tables {
			if t != nil {
				t.c = c
				t.showLocked()
			}
		}
	}})
	tx.recordContainer(a)
	tx.replaced = true
}

// addAside lists a container as set aside.
func (cat *catalogue) addAside(a *Container) {
	if cat.asides == nil {
		cat.asides = make(map[string][]*Container)
	}
	list := append(slices.Clone(cat.asides[a.name]), a)
	slices.SortFunc(list, func(a, b *Container) int { return cmp.Compare(a.aside.Order, b.aside.Order) })
	cat.asides[a.name] = list
	cat.memory.Add(a.memory())
}

// removeAside ends addAside.
func (cat *catalogue) removeAside(a *Container) {
	list := slices.DeleteFunc(slices.Clone(cat.asides[a.name]), func(c *Container) bool { return c == a })
	if cat.asides[a.name] = list; len(list) == 0 {
		delete(cat.asides, a.name)
	}
	cat.memory.Add(-a.memory())
}

// noteAside records a container that is set aside before it changes.
func (tx *Tx) noteAside(a *Container) {
	cat := &tx.ks.catalogue
	aside, history, name, number, db := a.aside, a.history.Load(), a.name, a.number, a.db
	created, policy, indexes, tables, dropped := a.created, a.policy.Load(), a.indexes.Load(), a.tables, len(cat.dropped)
	tx.undos = append(tx.undos, undo{f: func() {
		if slices.Contains(cat.asides[a.name], a) {
			cat.removeAside(a)
		}
		a.aside, a.name, a.number, a.db, a.created, a.tables = aside, name, number, db, created, tables
		a.policy.Store(policy)
		a.indexes.Store(indexes)
		a.history.Store(history)
		cat.addAside(a)
		cat.dirty[number] = a
		cat.dropped = cat.dropped[:dropped]
	}})
}

// discardAside removes a container that is set aside, with its items.
func (tx *Tx) discardAside(a *Container) {
	cat := tx.writeCatalogue()
	tx.noteAside(a)
	tables := a.tables
	cat.removeAside(a)
	cat.drop(a)
	cat.dirty[a.number] = nil
	for _, t := range tables {
		if t != nil {
			t.Detach()
		}
	}
	tx.undos = append(tx.undos, undo{f: func() {
		for _, t := range tables {
			if t != nil {
				t.Attach()
			}
		}
	}})
	tx.group = aof.AppendDel(tx.group, record.ContainerKey(a.number))
	tx.ks.storage.Wake()
}

// Undone is a change that Undo has taken back.
type Undone struct {
	What expiry.Action // set, flushed or dropped
	At   int64         // ms; when the change was made
	By   string        // see [expiry.HistoryEntry]
}

// The errors of Undo. Nothing has changed.
var (
	ErrNotEmpty   = errors.New("the container holds items, or its name is taken")
	ErrNameTaken  = errors.New("the new name is taken")
	ErrRuleAs     = errors.New("a changed rule has no other name")
	ErrFullOfName = errors.New("no more containers may be made")
)

// Undo takes back the newest change of a name, in constant time: a rule, a Flush or a Drop. Items that were flushed or
// dropped become a container of another name if as is not "". It returns nil if there is nothing to take back, or a hold vetoes it. The error
// is one of those above, or says why the container cannot have a number: see package dbnum. It needs BeginAll.
func (tx *Tx) Undo(name, as string) (*Undone, error) {
	cat := tx.writeCatalogue()
	tx.saw(cat.lsn)
	live := cat.byName[name]
	if live != nil && tx.vetoes(live, nil) {
		return nil, nil
	}
	list := tx.windows(name)
	if len(list) == 0 {
		return nil, nil
	}
	w := list[len(list)-1]
	entry := w.c.history.Load().Entries[w.Entry]
	done := &Undone{entry.What, entry.At, entry.By}
	if w.rule {
		if as != "" {
			return nil, ErrRuleAs
		}
		tx.undoRule(w)
		return done, nil
	}
	if as == "" && live != nil && w.c.aside.What == expiry.Flushed {
		if live.livesLocked(tx.now) {
			return nil, ErrNotEmpty
		}
		tx.undoFlush(live, w.c)
		return done, nil
	}
	if as == "" {
		as = name
		if live != nil {
			return nil, ErrNotEmpty
		}
	} else if cat.byName[as] != nil {
		return nil, ErrNameTaken
	}
	return done, tx.promote(w, as)
}

// undoRule lets the policy before a change rule again.
func (tx *Tx) undoRule(w window) {
	c := w.c
	tx.noteContainer(c)
	l := c.Policy().DeadLimits(tx.now)
	c.revived.ByDefault, c.revived.ByOwnTTL = max(c.revived.ByDefault, l.ByDefault), max(c.revived.ByOwnTTL, l.ByOwnTTL)
	c.undone++
	former := w.Former
	former.Deadline, former.Hold = c.Policy().Deadline, c.Policy().Hold // no rules, and not in the history
	c.policy.Store(&former)
	tx.takeBack(c, w.Entry)
}

// takeBack notes in the history of a container that an entry was taken back, and records the container.
func (tx *Tx) takeBack(c *Container, entry int) {
	h := c.history.Load()
	tx.ks.catalogue.setHistory(c, record.NewHistory(h.Etag, expiry.TakeBack(h.Entries, entry)))
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Undone, Kills: -1})
	tx.recordContainer(c)
}

// livesLocked reports whether an item of the container lives. The locks of all partitions must be held.
func (c *Container) livesLocked(now int64) bool { return c.exceeds(c.Policy().DeadLimits(now)) }

// exceeds reports whether an item of the container is beyond limits. The locks of all partitions must be held.
func (c *Container) exceeds(l expiry.Limits) bool {
	for _, t := range c.tables {
		if t != nil && t.Len() > t.DeadStats(l).Items {
			return true
		}
	}
	return false
}

// undoFlush gives a container without living items those back that were set aside.
func (tx *Tx) undoFlush(c, a *Container) {
	tx.noteContainer(c)
	tx.discard(c)
	tx.bringBack(a)
	tables := a.tables
	tx.undos = append(tx.undos, undo{f: func() {
		c.tables = make([]*table, len(tables))
		for _, t := range tables {
			if t != nil {
				t.c = a
			}
		}
	}})
	c.tables, c.number = tables, a.number
	for _, t := range tables {
		if t != nil {
			t.c = c
		}
	}
	policy := *c.Policy() // changes since that were not taken back stand; the deadline goes with the items
	policy.Deadline = a.Policy().Deadline
	c.policy.Store(&policy)
	c.replaced++
	c.swapped = tx.now
	tx.attachTrees(c, c.indexes.Load())
	if at := c.flushOf(a); at >= 0 {
		tx.takeBack(c, at)
		return
	}
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Undone, Kills: -1})
	tx.recordContainer(c)
}

// bringBack takes a container from those that are set aside, and shows its tables.
func (tx *Tx) bringBack(a *Container) {
	tx.noteAside(a)
	tables := a.tables
	tx.ks.catalogue.removeAside(a)
	a.aside = nil
	for _, t := range tables {
		if t != nil {
			t.showLocked()
		}
	}
	tx.undos = append(tx.undos, undo{f: func() {
		for _, t := range tables {
			if t != nil {
				t.hideLocked()
			}
		}
	}})
	tx.replaced = true
}

// attachTrees gives the tables of a container trees for a set of indexes, which are built in the background if need be.
func (tx *Tx) attachTrees(c *Container, set *indexing.Set) {
	before := c.indexes.Load()
	tx.undos = append(tx.undos, undo{f: func() { c.attachIndexesLocked(before) }})
	c.attachIndexesLocked(set)
	tx.ks.buildIndexes()
}

// promote makes a container that is set aside one of a free name.
func (tx *Tx) promote(w window, name string) error {
	cat, a := &tx.ks.catalogue, w.c
	if _, full := tx.ContainersFull(); full {
		return ErrFullOfName
	}
	db, next, err := cat.byDB.Choose(name, a.wantedDB(name), cat.lastDB())
	if err != nil {
		if db, next, err = cat.byDB.Choose(name, 0, cat.lastDB()); err != nil {
			return err
		}
	}
	if next {
		tx.setLastDB(db)
	}
	what := a.aside.What
	if c := cat.byName[a.name]; c != nil {
		if at := c.flushOf(a); at >= 0 {
			tx.noteContainer(c)
			h := c.history.Load()
			cat.setHistory(c, record.NewHistory(h.Etag, expiry.CloseWindow(h.Entries, at)))
			tx.recordContainer(c)
		}
	}
	tx.bringBack(a)
	a.name, a.db = strings.Clone(name), db
	tx.noteContainer(a)
	cat.add(a)
	set := a.indexes.Load()
	if what == expiry.Flushed {
		set = indexing.FromRecord(set.Recorded()) // the other container goes on with its own
	}
	tx.attachTrees(a, set)
	tx.takeBack(a, w.Entry)
	return nil
}

// wantedDB returns the number that a dropped container had, 0 for any other.
func (c *Container) wantedDB(name string) uint32 {
	if _, isNumber := dbnum.OfName(name); isNumber || c.aside.What != expiry.Dropped || name != c.name {
		return 0
	}
	return c.db
}
