package keyspace

import (
	"cmp"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
	"mayfly/keyspace/undo"
)

// Package undo decides what can be taken back and until when. Here the catalogue and the tables follow. A
// container that is set aside has the tables, the number, the policy and the history, and nothing lists it.
// No item is touched, in memory or on disk. The purge and eviction leave it alone.

// SetUndoWindow sets the time in seconds in which changes to come can be taken back; 0: they cannot. The
// first time, it raises the version of the data folder, and fails if it cannot write that.
func (ks *Keyspace) SetUndoWindow(seconds int64) error {
	if seconds > 0 {
		if err := ks.storage.AllowUndo(); err != nil {
			return ks.ForClients(err)
		}
	}
	ks.undo.SetWindow(seconds)
	return nil
}

// SetUndoWindowAuto sets the window that nobody has asked for: see [undo.Horizon.SetAuto]. It is 0 if the
// version of the data folder cannot be raised, which the log says.
func (ks *Keyspace) SetUndoWindowAuto() {
	if err := ks.storage.AllowUndo(); err != nil {
		ks.opt.Log.Warn().Err(err).Msg("changes of containers cannot be taken back: the data folder cannot be prepared for that")
		ks.undo.SetWindow(0)
		return
	}
	ks.undo.SetAuto()
}

// UndoWindow returns the time in seconds in which a change of the rule of a container, which may be empty,
// could be taken back; 0: it could not.
func (ks *Keyspace) UndoWindow(empty bool) int64 {
	if !ks.undo.Opens(false, empty) {
		return 0
	}
	return ks.undo.Window()
}

// stack returns what a name has.
func (tx *Tx) stack(name string) (s undo.Stack[*Container]) {
	cat := &tx.ks.catalogue
	for _, a := range cat.Asides.Of(name) {
		s = append(s, a.layer())
	}
	if c := cat.ByName[name]; c != nil {
		s = append(s, c.layer())
	}
	return s
}

func (c *Container) layer() *undo.Layer[*Container] {
	return &undo.Layer[*Container]{Container: c, History: c.history.Load().Entries, Aside: c.aside}
}

// follow makes the containers of a name be what was decided about its stack. The caller has noted the listed
// container and records it.
func (tx *Tx) follow(s undo.Stack[*Container]) {
	for _, l := range s {
		switch c := l.Container; {
		case l.Ended:
			tx.discardAside(c)
		case !l.Changed:
		case l.Aside == nil:
			tx.setEntries(c, l.History)
		default:
			tx.noteAside(c)
			c.aside = l.Aside
			tx.ks.catalogue.Asides.EndChanged()
			tx.setEntries(c, l.History)
			tx.recordContainer(c)
		}
	}
}

// setEntries replaces the entries of a container's history.
func (tx *Tx) setEntries(c *Container, entries []expiry.HistoryEntry) {
	tx.ks.catalogue.setHistory(c, record.NewHistory(c.Etag(), entries))
}

// openWindow makes room for the window of a change of a container that follows, and returns its end in ms; 0:
// the change cannot be taken back. The caller has noted the container and records it.
func (tx *Tx) openWindow(c *Container, flush bool) (until int64) {
	frees, empty := flush || tx.ks.DiskFull(), tx.whole(c).empty() && (c.deaths == nil || c.deaths.length.Load() == 0)
	switch {
	case tx.ks.undo.Opens(frees, empty):
		until = tx.ks.undo.End(tx.now)
	case tx.ks.undo.Opens(frees, false):
		return 0 // it is empty, so nothing is lost: what the name had before can still come back
	}
	s := tx.stack(c.name)
	s.Open(tx.now, until)
	tx.follow(s)
	tx.ks.undo.Extend(until)
	return until
}

// closeWindows ends all windows of a container's name. The caller has noted the container and records it.
func (tx *Tx) closeWindows(c *Container) {
	s := tx.stack(c.name)
	s.Limit(0)
	tx.follow(s)
}

// endWindows is closeWindows, and records the container if a window was open.
func (tx *Tx) endWindows(c *Container) {
	tx.writeCatalogue()
	if len(tx.stack(c.name).Windows(tx.now)) > 0 {
		tx.noteContainer(c)
		tx.closeWindows(c)
		tx.recordContainer(c)
	}
}

// onlyPurgeable reports whether windows are in use and no item of a container lives or can live again. So a
// Flush opens a window, and limits others, however far the purge is.
func (tx *Tx) onlyPurgeable(c *Container) bool {
	u := &tx.ks.undo
	return (u.Opens(true, false) || u.Open(tx.now)) && !c.exceeds(c.retention.Purgeable(c.Policy(), tx.now))
}

// exceeds reports whether an item of the container is beyond limits. The locks of all partitions must be
// held.
func (c *Container) exceeds(l expiry.Limits) bool {
	for t := range c.each {
		if t.Len() > t.DeadStats(l).Items+len(t.Hollow(l)) {
			return true
		}
	}
	return false
}

// Aside says why the container is set aside; nil: it is in use.
func (c *Container) Aside() *record.Aside { return c.aside }

// setAside sets the items of a container aside, with its number, policy and history. The caller gives the
// container, if it stays, another number.
func (tx *Tx) setAside(c *Container, what expiry.Action, until int64) {
	why := &record.Aside{What: what, Until: until, Order: tx.ks.partitions[0].NextVersion()}
	a := &Container{name: c.name, created: c.created, number: c.number, db: c.db, aside: why, revived: expiry.NoLimits}
	a.policy.Store(c.Policy())
	a.indexes.Store(c.indexes.Load())
	a.history.Store(c.history.Load())
	tx.giveTables(c, a)
	a.tables.Hide()
	tx.onRollback(func() { a.tables.Show() })
	if what == expiry.Dropped { // it comes back with the container
		tx.giveLog(c, a)
		tx.hideLog(a)
	}
	tx.addAside(a)
	tx.replaced = true
}

// addAside adds a container that is set aside.
func (tx *Tx) addAside(a *Container) {
	cat := &tx.ks.catalogue
	cat.AddAside(a)
	tx.onRollback(func() { cat.RemoveAside(a) })
	tx.recordContainer(a)
	tx.ks.undo.Extend(a.aside.Until)
}

// giveTables gives the tables of a container to another, which has none.
func (tx *Tx) giveTables(from, to *Container) {
	give := func(from, to *Container) {
		tx.whole(to).own(from.tables)
		from.tables = make(tableList, len(to.tables))
	}
	give(from, to)
	tx.onRollback(func() { give(to, from) })
}

// noteAside records a container that is set aside before it changes.
func (tx *Tx) noteAside(a *Container) {
	cat := &tx.ks.catalogue
	aside, history, name, number, db, deaths, log := a.aside, a.history.Load(), a.name, a.number, a.db, a.deaths, a.log
	created, policy, indexes, dropped := a.created, a.policy.Load(), a.indexes.Load(), len(cat.dropped)
	tx.onRollback(func() {
		cat.RemoveAside(a)
		a.aside, a.name, a.number, a.db, a.created = aside, name, number, db, created
		a.deaths, a.log = deaths, log
		a.policy.Store(policy)
		a.indexes.Store(indexes)
		a.history.Store(history)
		cat.AddAside(a)
		cat.Changed(a)
		cat.dropped = cat.dropped[:dropped]
	})
}

// discardAside removes a container that is set aside, with its items. Of one whose log has many groups it
// ends the time in which it can be brought back: EndWindows does the rest.
func (tx *Tx) discardAside(a *Container) {
	cat := tx.writeCatalogue()
	tx.noteAside(a)
	if a.hasManyGroups() {
		if a.aside.Until > tx.now {
			a.aside = &record.Aside{What: a.aside.What, Until: tx.now, Order: a.aside.Order}
			cat.Asides.EndChanged()
			tx.recordContainer(a)
		}
		return
	}
	cat.RemoveAside(a)
	cat.drop(a)
	cat.Gone(a.number)
	for t := range a.each {
		t.Detach()
		tx.onRollback(t.Attach)
	}
	tx.endLog(a)
	tx.group.Del(record.ContainerKey(a.number))
	tx.ks.storage.Wake()
}

// Undo takes back the newest change of a name, in constant time: a rule, a Flush or a Drop. Items that were
// flushed or dropped become a container of another name if as is not "". It returns nil if a hold vetoes it.
// The error is one of package undo, or says why the container cannot have a number. It needs BeginAll.
func (tx *Tx) Undo(name, as string) (*undo.Undone, error) {
	cat := tx.writeCatalogue()
	tx.saw(cat.lsn)
	listed := cat.ByName[name]
	if listed != nil && tx.vetoes(listed, nil) {
		return nil, nil
	}
	stack := tx.stack(name)
	list := stack.Windows(tx.now)
	if len(list) == 0 {
		return nil, stack.Nothing()
	}
	w := &list[len(list)-1]
	done := &undo.Undone{What: w.Change().What, At: w.Change().At, By: w.Change().By}
	lives := func() bool { return listed.exceeds(listed.Policy().DeadLimits(tx.now)) }
	to, err := w.Target(as, undo.Names{Listed: listed != nil, Lives: lives, Taken: cat.ByName[as] != nil})
	switch {
	case err != nil:
		return nil, err
	case to == undo.Rule:
		tx.undoRule(w)
	case to == undo.Listed:
		tx.undoFlush(listed, w)
	default:
		err = tx.promote(w, strings.Clone(cmp.Or(as, name)))
	}
	return done, err
}

// undoRule lets the policy before a change rule again.
func (tx *Tx) undoRule(w *undo.Window[*Container]) {
	c := w.Container
	tx.noteContainer(c)
	l := c.Policy().DeadLimits(tx.now)
	c.revived.ByDefault, c.revived.ByOwnTTL = max(c.revived.ByDefault, l.ByDefault), max(c.revived.ByOwnTTL, l.ByOwnTTL)
	c.undone++
	former := w.Former
	former.Deadline, former.Hold = c.Policy().Deadline, c.Policy().Hold // they are no rules, and stay
	c.policy.Store(&former)
	tx.takeBack(c, w.Entry)
}

// takeBack notes in the history of a container that an entry, if there is one, was taken back, and records
// the container.
func (tx *Tx) takeBack(c *Container, entry int) {
	if entry >= 0 {
		tx.setEntries(c, expiry.TakeBack(c.history.Load().Entries, entry))
	}
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Undone, Kills: -1})
	tx.recordContainer(c)
}

// undoFlush gives a container without living items those back that were set aside.
func (tx *Tx) undoFlush(c *Container, w *undo.Window[*Container]) {
	a := w.Container
	tx.noteContainer(c)
	tx.buryBefore(c, c)
	tx.discard(c)
	tx.bringBack(a)
	tx.giveTables(a, c)
	c.number = a.number
	// Changes since that were not taken back stand. The rule of a container that was made since is a change
	// to the items: the dead stay dead.
	policy := *c.Policy()
	if c.created != a.created {
		policy = a.Policy().Change(policy.Default, policy.Mode, tx.now)
		policy.Hold = c.Policy().Hold
	}
	policy.Deadline = a.Policy().Deadline // it goes with the items
	c.policy.Store(&policy)
	c.replaced++
	c.swapped = tx.now
	tx.attachTrees(c, c.indexes.Load())
	tx.takeBack(c, w.FlushIn(c.history.Load().Entries))
}

// bringBack takes a container from those that are set aside, and shows its tables.
func (tx *Tx) bringBack(a *Container) {
	tx.noteAside(a)
	tx.ks.catalogue.RemoveAside(a)
	a.aside = nil
	a.tables.Show()
	tx.onRollback(func() { a.tables.Hide() })
	tx.showLog(a)
	tx.replaced = true
}

// promote makes a container that is set aside one of a free name, which outlasts the call.
func (tx *Tx) promote(w *undo.Window[*Container], name string) error {
	cat, a := &tx.ks.catalogue, w.Container
	if _, full := tx.ContainersFull(); full {
		return undo.ErrFullOfName
	}
	wanted := uint32(0)
	if _, isNumber := numberOfName(name); !isNumber && w.Aside.What == expiry.Dropped && name == a.name {
		wanted = a.db // it had this number
	}
	db, next, err := cat.ByDB.Choose(name, wanted, cat.lastDB())
	if err != nil {
		if db, next, err = cat.ByDB.Choose(name, 0, cat.lastDB()); err != nil {
			return err
		}
	}
	if next {
		tx.setLastDB(db)
	}
	if c := cat.ByName[a.name]; c != nil {
		if at := w.FlushIn(c.history.Load().Entries); at >= 0 {
			tx.noteContainer(c)
			tx.setEntries(c, expiry.CloseWindow(c.history.Load().Entries, at))
			tx.recordContainer(c)
		}
	}
	tx.bringBack(a)
	a.name, a.db = name, db
	tx.noteContainer(a)
	cat.Add(a)
	set := a.indexes.Load()
	if w.Aside.What == expiry.Flushed {
		set = index.FromRecord(set.Recorded()) // the other container goes on with its own
	}
	tx.attachTrees(a, set)
	tx.takeBack(a, w.Entry)
	return nil
}
