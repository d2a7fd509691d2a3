package keyspace

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
)

// DefaultMaxContainers is the limit on containers until [Keyspace.SetMaxContainers].
const DefaultMaxContainers = 100_000

// Container is a named set of items under one policy.
type Container struct {
	name    string
	created int64  // ms
	number  uint32 // prefix of its keys; a flushed container has a new one
	db      uint32 // for SELECT; constant once the container is listed
	lastDB  uint32 // of database 0: the number that a container was given last
	policy  atomic.Pointer[expiry.Policy]
	history atomic.Pointer[record.History] // changed while all partitions are locked

	// What watchers compare at the end of a watch. Read while any partition is locked, changed while all are.
	replaced uint64 // counts changes of all items at once: Flush, Swap
	swapped  int64  // ms; the last Swap
	dropped  bool

	retention expiry.Retention // policies that may rule again; read and changed as replaced is
	revived   expiry.Limits    // items within it that live may have been dead until an UNDO
	undone    uint64           // counts UNDOs of rules

	log    *record.Log    // of its deaths, nil if none is kept; changed as replaced is
	deaths *deathLog      // the same in memory
	hidden *record.Hidden // not nil: the container is a log or a group, without a name, and not listed
	group  *groups.Group  // of a group: its state, protected by the lock of the partition of GroupTag
	partOf *deathLog      // of a hidden one: the log that it is, or that the group reads; changed as replaced is

	aside *record.Aside // not nil: the container is set aside, and not listed; changed as replaced is

	indexes atomic.Pointer[index.Set] // nil for none; changed while all partitions are locked

	listPos int // in the list of containers
	tables  tableList
}

func newContainer(r record.Container, partitions int) *Container {
	c := &Container{number: r.Number, revived: expiry.NoLimits, tables: make(tableList, partitions)}
	c.describe(r)
	return c
}

// describe gives the container what a record says of it. Its tables have no trees yet for its indexes.
func (c *Container) describe(r record.Container) {
	// A listed container keeps its name and its number for SELECT, which readers use without a lock.
	if c.name != r.Name {
		c.name = r.Name
	}
	if c.db != r.DB {
		c.db = r.DB
	}
	c.created, c.lastDB = r.Created, r.LastDB
	c.policy.Store(&r.Policy)
	if r.Hidden != nil { // what was read has its creation in it
		r.History = nil
	}
	c.history.Store(record.NewHistory(r.Etag, r.History))
	c.indexes.Store(index.FromRecord(r.Indexes))
	c.aside, c.log, c.hidden = r.Aside, r.Log, r.Hidden
}

// containerOverhead is the memory of a container besides its name, tables and history, in bytes.
const containerOverhead = 512

// memory estimates the memory of a container without its items in bytes. Databases count like others, so what
// is used is never 0.
func (c *Container) memory() int64 {
	n := int64(containerOverhead+len(c.name)+8*len(c.tables)) + c.history.Load().Memory
	if c.group != nil {
		n += int64(len(c.hidden.Group)) + c.group.Memory()
	}
	return n
}

// isLog reports whether the container is a log of deaths.
func (c *Container) isLog() bool { return c.hidden != nil && !c.hidden.IsGroup() }

// owner returns the container to which the log of a hidden one belongs, nil if there is none.
func (c *Container) owner() *Container {
	if c.partOf == nil {
		return nil
	}
	return c.partOf.owner
}

// Name returns the container's name.
func (c *Container) Name() string { return c.name }

// Created returns the moment in ms at which the container was made.
func (c *Container) Created() int64 { return c.created }

// Policy returns the container's policy. The value does not change; a new policy is another value.
func (c *Container) Policy() *expiry.Policy { return c.policy.Load() }

// IsDatabase reports whether the container is one of the databases 0 to 15, which cannot be dropped.
func (c *Container) IsDatabase() bool { return c.db < Databases }

// ValidName reports whether a container may have this name: 1 to 255 of letters, digits, _ . : -
func ValidName(name string) bool { return record.ValidName(name) }

// Container returns the container of a name, nil if there is none.
func (tx *Tx) Container(name string) (c *Container) {
	tx.readCatalogue(func(cat *catalogue) { c = cat.ByName[name] })
	return c
}

// Containers returns all containers, by name in ascending order.
func (tx *Tx) Containers() (list []*Container) {
	tx.readCatalogue(func(cat *catalogue) { list = slices.Clone(cat.List()) })
	slices.SortFunc(list, func(a, b *Container) int { return strings.Compare(a.name, b.name) })
	return list
}

// readCatalogue calls f with at least one partition locked.
func (tx *Tx) readCatalogue(f func(cat *catalogue)) {
	if tx.held.None() {
		p := tx.ks.partitions[0]
		p.Mu.Lock()
		defer p.Mu.Unlock()
	}
	tx.saw(tx.ks.catalogue.lsn)
	f(&tx.ks.catalogue)
}

// CreateContainer makes a container. It returns nil if one of that name exists, or none of its numbers is
// free: see CreateNumbered. It needs BeginAll. The caller has checked the name with [ValidName].
func (tx *Tx) CreateContainer(name string, def expiry.TTL, mode expiry.Mode) *Container {
	c, _ := tx.CreateNumbered(name, 0, def, mode)
	return c
}

// create makes a container, whose name and number are free.
func (tx *Tx) create(name string, db uint32, policy expiry.Policy) *Container {
	cat := tx.writeCatalogue()
	c := newContainer(record.Container{
		Number: cat.Number(), Name: strings.Clone(name), DB: db, Created: tx.now, Policy: policy,
	}, len(tx.ks.partitions))
	tx.made = c
	tx.noteContainer(c)
	cat.Add(c)
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Created, Kills: -1})
	tx.recordContainer(c)
	return c
}

// SetPolicy is SetCounted without a count.
func (tx *Tx) SetPolicy(c *Container, def expiry.TTL, mode expiry.Mode) {
	tx.SetCounted(c, def, mode, -1)
}

// SetCounted changes a container's policy from now on, in constant time. Equal values change nothing. kills
// is the number of items that die of it at once, for the history; -1: not counted. It needs BeginAll.
func (tx *Tx) SetCounted(c *Container, def expiry.TTL, mode expiry.Mode, kills int64) {
	if p := c.Policy(); (p.Default != def || p.Mode != mode) && !tx.vetoes(c, nil) {
		tx.setPolicy(c, p.Change(def, mode, tx.now), expiry.HistoryEntry{What: expiry.Set, Kills: kills})
	}
}

// setPolicy gives a container another policy and records the entry of its history.
func (tx *Tx) setPolicy(c *Container, p expiry.Policy, e expiry.HistoryEntry) {
	tx.writeCatalogue()
	tx.noteContainer(c)
	if was := c.Policy(); e.What == expiry.Set && !was.SameRule(&p) {
		e.Undo = tx.openWindow(c, false)
	}
	c.policy.Store(&p)
	tx.addHistory(c, e)
	tx.recordContainer(c)
}

// Drop removes a container and its items in constant time. Memory and disk are freed in the background, after
// the time in which Undo brings the container back. It needs BeginAll.
func (tx *Tx) Drop(c *Container) {
	if tx.vetoes(c, nil) {
		return
	}
	cat := tx.writeCatalogue()
	tx.noteContainer(c)
	until := tx.openWindow(c, false)
	c.dropped = true
	cat.Remove(c)
	if until == 0 && !c.hasManyGroups() {
		tx.discard(c)
		tx.endLog(c)
		return
	}
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Dropped, Kills: -1, Undo: until})
	tx.setAside(c, expiry.Dropped, max(until, tx.now))
}

// Flush empties a container in constant time. Name, policy and time of creation stay. The items can be
// brought back by Undo as after Drop. It needs BeginAll.
func (tx *Tx) Flush(c *Container) {
	cat := tx.writeCatalogue()
	tx.flushed = true
	tx.buryBefore(c, c)
	if tx.whole(c).empty() || tx.onlyPurgeable(c) {
		return // FLUSHALL costs only containers with items
	}
	if tx.vetoes(c, nil) {
		return
	}
	tx.noteContainer(c)
	until := tx.openWindow(c, true)
	c.replaced++
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Flushed, Kills: -1, Undo: until})
	if until == 0 {
		tx.discard(c)
	} else {
		tx.setAside(c, expiry.Flushed, until)
	}
	c.number = cat.Number()
	tx.recordContainer(c)
}

// Swap exchanges the items of two containers in constant time (SWAPDB). It needs BeginAll.
//
// Names and defaults stay in place. To the items of each side, the swap is a change of default from their own
// to the other side's. So dead items stay dead on the other side (rule 7).
func (tx *Tx) Swap(a, b *Container) {
	tx.writeCatalogue()
	if a == b || tx.vetoes(a, nil) || tx.vetoes(b, nil) {
		return
	}
	tx.noteContainer(a)
	tx.noteContainer(b)
	for _, way := range [][2]*Container{{a, b}, {b, a}} {
		c, to := way[0], way[1]
		tx.closeWindows(c) // first: who died within one is buried under the policy of its death
		tx.buryBefore(c, to)
		c.replaced++
		c.swapped = tx.now
	}
	forA := b.Policy().Change(a.Policy().Default, a.Policy().Mode, tx.now)
	forB := a.Policy().Change(b.Policy().Default, b.Policy().Mode, tx.now)
	a.policy.Store(&forA)
	b.policy.Store(&forB)
	a.number, b.number = b.number, a.number
	swap := func() { swapTables(tx.whole(a), tx.whole(b)) }
	tx.onRollback(swap)
	swap()
	for _, c := range []*Container{a, b} {
		tx.addHistory(c, expiry.HistoryEntry{What: expiry.Swapped, Kills: -1})
		tx.recordContainer(c)
	}
	tx.replaced = true
}

// discard removes all items of a container and its record.
func (tx *Tx) discard(c *Container) {
	cat := &tx.ks.catalogue
	cat.drop(c)
	cat.Gone(c.number)
	tx.noteDetach(c)
	tx.whole(c).detach()
	tx.group.Del(record.ContainerKey(c.number))
	tx.replaced = true
	tx.ks.storage.Wake()
}

// drop remembers the tables of a container that the stores may have items of, before they are detached. They
// tell the next checkpoint what to delete.
func (cat *catalogue) drop(c *Container) {
	for t := range c.each {
		if t.Stored() {
			cat.dropped = append(cat.dropped, t)
		}
		if t.Pages != nil && t.Pages.Stored() {
			cat.dropped = append(cat.dropped, t.Pages)
		}
	}
}

// each calls f for the tables of the partitions that have items, until f returns false.
func (c *Container) each(f func(t *table) (more bool)) { c.tables.Each(f) }

// whole is a container while all partitions are locked, or while a start reads it.
type whole struct{ *Container }

// whole returns a container for what needs the locks of all partitions.
func (tx *Tx) whole(c *Container) whole {
	if !tx.held.All() {
		panic("keyspace: a container is used as a whole without all partitions locked")
	}
	return whole{c}
}

// empty reports whether the container has no items in memory.
func (c whole) empty() bool {
	for t := range c.each {
		if t.Len() > 0 {
			return false
		}
	}
	return true
}

// detach detaches all tables.
func (c whole) detach() {
	for t := range c.each {
		t.Leave()
	}
}

// setTimers sets the timers of the tables, after something that they depend on may have changed.
func (c whole) setTimers(now int64) {
	for t := range c.each {
		t.SetTimer(now)
	}
}

// own gives the container tables, which become its own.
func (c whole) own(ts tableList) {
	c.tables = ts
	for t := range c.each {
		if t.C = c.Container; t.Pages != nil {
			t.Pages.C = c.Container
		}
	}
}

// swapTables exchanges the tables of two containers.
func swapTables(a, b whole) {
	tablesOfA := a.tables
	a.own(b.tables)
	b.own(tablesOfA)
	ofA := a.indexes.Load() // indexes go with the items
	a.indexes.Store(b.indexes.Load())
	b.indexes.Store(ofA)
}

// writeCatalogue returns the catalogue to change it.
func (tx *Tx) writeCatalogue() *catalogue {
	if !tx.held.All() {
		panic("keyspace: the catalogue is changed without all partitions locked")
	}
	tx.changed = true
	return &tx.ks.catalogue
}

// recordContainer journals the state of a container.
func (tx *Tx) recordContainer(c *Container) {
	tx.buf = c.record().Append(tx.buf[:0])
	tx.group.Set(record.ContainerKey(c.number), record.View(tx.buf), "")
	tx.ks.catalogue.Changed(c)
	tx.recorded = append(tx.recorded, c)
	if c.deaths != nil && c.deaths.c.hidden.LogOf != c.number { // a repair needs it if the container's record is lost
		h, before := c.deaths.c, c.deaths.c.hidden
		h.hidden = &record.Hidden{LogOf: c.number}
		tx.onRollback(func() { h.hidden = before })
		tx.recordContainer(h)
	}
}

// record returns the container's record on disk.
func (c *Container) record() record.Container {
	r := record.Container{
		Number: c.number, Name: c.name, DB: c.db, LastDB: c.lastDB, Created: c.created,
		Policy: *c.Policy(), Indexes: c.indexes.Load().Recorded(), Aside: c.aside, Log: c.log, Hidden: c.hidden,
	}
	if c.hidden != nil { // it has no history, but for what a reader makes of that
		return r
	}
	return r.WithHistory(c.history.Load())
}

// SetMaxContainers limits the containers besides the databases 0 to 15; 0: no limit. It concerns new ones
// only.
func (ks *Keyspace) SetMaxContainers(n int) { ks.maxContainers.Store(int64(n)) }

// ContainersFull reports whether no more containers may be made, and the limit.
func (tx *Tx) ContainersFull() (limit int, full bool) {
	limit = int(tx.ks.maxContainers.Load())
	tx.readCatalogue(func(cat *catalogue) { full = limit > 0 && len(cat.List())-Databases >= limit })
	return limit, full
}

// longFlush is the number of tables from which on FlushAll takes long.
const longFlush = 1 << 10

// FlushAll empties all containers. Empty ones cost nothing; each of the others costs some microseconds,
// however many items it has. All change at one moment, so the locks are held until the last one. It needs
// BeginAll.
func (tx *Tx) FlushAll() {
	if tx.ks.tables.Len() >= longFlush {
		tx.MarkLong(true)
	}
	tx.flushed = true
	for _, t := range tx.ks.tables.Some(nil, 0, math.MaxInt) {
		if !t.Gone() && t.C.hidden == nil && t.Collections == nil {
			tx.Flush(t.C) // which detaches its other tables too
		}
	}
}

// Etag returns the version of the container's settings. It changes with them and is never used twice.
func (c *Container) Etag() uint64 { return c.history.Load().Etag }

// History returns the newest changes of a container, oldest first: at least one. The slice does not change.
func (tx *Tx) History(c *Container) (entries []expiry.HistoryEntry) {
	tx.readCatalogue(func(*catalogue) { entries = c.history.Load().Entries })
	return entries
}

// ClearHistory reduces the history of a container to [expiry.Cleared], in which no client and no reason is
// named. The etag stays. While a change can be taken back, which needs the history, it does nothing and
// returns until when (ms). It needs BeginAll.
func (tx *Tx) ClearHistory(c *Container) (until int64) {
	if list := tx.stack(c.name).Windows(tx.now); len(list) > 0 {
		return list[len(list)-1].Until
	}
	entries := c.history.Load().Entries
	cleared := expiry.Cleared(entries)
	if len(entries) == 1 && entries[0] == cleared || tx.vetoes(c, nil) {
		return 0
	}
	tx.writeCatalogue()
	tx.buryBefore(c, c) // the causes of these deaths are in the history
	tx.noteContainer(c)
	tx.setEntries(c, []expiry.HistoryEntry{cleared})
	tx.recordContainer(c)
	return 0
}

// setHistory replaces the history of a container, which may be listed.
func (cat *catalogue) setHistory(c *Container, h *record.History) {
	if c.aside != nil || cat.ByName[c.name] == c {
		cat.AddMemory(h.Memory - c.history.Load().Memory)
	}
	c.history.Store(h)
	c.retention = h.Retention
}

// addHistory adds an entry for the policy that the container has now. A change of settings gives it a new
// etag. The caller notes the container before, and records it afterwards.
func (tx *Tx) addHistory(c *Container, e expiry.HistoryEntry) {
	before := c.history.Load()
	e.At, e.Policy, e.Etag, e.By = tx.now, *c.Policy(), before.Etag, tx.By
	if e.What != expiry.Flushed && e.What != expiry.Swapped {
		e.Etag = tx.ks.partitions[0].NextVersion()
	}
	tx.ks.catalogue.setHistory(c, before.With(e))
}
