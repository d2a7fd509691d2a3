package keyspace

import (
	"fmt"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
)

// containerApplier makes containers be what the records of a batch say:
//
//  1. Tables belong to numbers. A container that is listed keeps its place in memory as long as its name is
//     listed, whatever number it has: those who look at it go on.
//  2. What changes its number, its name or its place leaves it first, with hidden tables. Then all take their
//     new places.
//  3. Logs and groups follow their owners. Tables are shown or hidden last.
type containerApplier struct {
	*applier
	numbers []uint32
	hidden  map[uint32]bool       // whether tables are hidden, by number
	taken   map[uint32]content    // of containers that have left their place, by number
	arrived map[*Container]bool   // containers that are in a new place
	left    map[string]*Container // those of them that were listed, by name
	logs    map[uint32]*deathLog  // that have left their owner, by number
}

// content is what goes with a number.
type content struct {
	from    *Container
	tables  tableList
	indexes *index.Set
}

func (r *containerApplier) apply() error {
	r.numbers = r.batch.Numbers()
	r.hidden, r.taken = make(map[uint32]bool), make(map[uint32]content)
	r.left, r.logs = make(map[string]*Container), make(map[uint32]*deathLog)
	for _, number := range r.numbers {
		if c := r.byNumber[number]; c != nil {
			r.tx.noteState(c)
		}
	}
	for _, step := range []func(number uint32, rec *record.Container) error{r.leave, r.arrive, r.linkLog, r.linkGroup, r.complete} {
		for _, number := range r.numbers {
			if err := step(number, r.batch.Records[number]); err != nil {
				return err
			}
		}
	}
	for name, c := range r.left {
		c.dropped = c.dropped || r.ks.catalogue.ByName[name] != c
	}
	for number, hidden := range r.hidden {
		r.show(r.byNumber[number], hidden)
	}
	return nil
}

// isHidden reports whether the tables of a container are hidden.
func (c *Container) isHidden() bool {
	return c.aside != nil || c.owner() != nil && c.owner().aside != nil
}

// unlisted reports whether the tables of a container, if it has some, are not in the list for the purge and
// eviction. Those of groups always are: they have nothing that dies, and a log may have a great many.
func (c *Container) unlisted() bool { return c.isHidden() && (c.hidden == nil || !c.hidden.IsGroup()) }

// stays reports whether a container has the same place by a record of its number.
func (cat *catalogue) stays(c *Container, rec *record.Container) bool {
	switch {
	case rec == nil:
		return false
	case c.hidden != nil:
		return rec.Hidden != nil && rec.Hidden.GroupOf == c.hidden.GroupOf && rec.Hidden.Group == c.hidden.Group
	case c.aside != nil:
		return rec.Aside != nil && rec.Name == c.name && rec.Aside.Order == c.aside.Order
	}
	return rec.Aside == nil && rec.Hidden == nil && rec.Name == c.name && rec.DB == c.db && cat.ByName[c.name] == c
}

// leave takes what is to change from its place, and drops what the batch leaves without a record.
func (r *containerApplier) leave(number uint32, rec *record.Container) error {
	cat, c := &r.ks.catalogue, r.byNumber[number]
	cat.Used(number + 1)
	cat.Gone(number)
	if c == nil {
		return nil
	}
	r.noteHidden(c)
	stays := cat.stays(c, rec)
	if c.deaths != nil && (!stays || rec.Log == nil || rec.Log.Number != c.log.Number) {
		r.leaveLog(c)
	}
	if stays {
		return nil
	}
	if !r.hidden[number] {
		c.tables.Hide()
		r.hidden[number] = true
	}
	switch {
	case c.hidden != nil && rec != nil:
		return fmt.Errorf("container %d was hidden for another purpose", number)
	case c.hidden != nil:
		cat.Unhide(c)
		r.leaveGroup(c)
	case c.aside != nil:
		cat.RemoveAside(c)
	case cat.ByName[c.name] == c:
		cat.Remove(c)
		r.left[c.name] = c
	default:
		cat.unnumbered = slices.DeleteFunc(cat.unnumbered, func(other *Container) bool { return other == c })
	}
	r.taken[number] = content{c, c.tables, c.indexes.Load()}
	delete(r.byNumber, number)
	if rec == nil {
		cat.drop(c)
		for t := range c.each {
			t.Detach()
		}
		r.ks.storage.Wake()
	}
	c.tables = make(tableList, len(c.tables))
	return nil
}

// noteHidden notes whether the tables of a container are hidden before anything changes.
func (r *containerApplier) noteHidden(c *Container) {
	if _, noted := r.hidden[c.number]; !noted {
		r.hidden[c.number] = c.unlisted()
	}
}

// leaveLog takes the log of a container, with its groups.
func (r *containerApplier) leaveLog(c *Container) {
	r.noteHidden(c.deaths.c)
	r.logs[c.log.Number] = c.deaths
	c.deaths = nil
	note(&r.logged, c)
}

// leaveGroup takes a hidden container, which was a group, from its log.
func (r *containerApplier) leaveGroup(h *Container) {
	if !h.hidden.IsGroup() {
		return
	}
	note(&r.logged, h.owner())
	for _, log := range []*deathLog{h.owner().deaths, r.logs[h.hidden.GroupOf]} {
		if log != nil && log.groups[h.hidden.Group] == h {
			delete(log.groups, h.hidden.Group)
		}
	}
}

// arrive makes the container of a number what its record says, in its place.
func (r *containerApplier) arrive(number uint32, rec *record.Container) error {
	cat, c := &r.ks.catalogue, r.byNumber[number]
	switch {
	case rec == nil:
		return nil
	case c != nil: // it stays
		cat.AddMemory(-c.memory())
		r.describe(c, rec)
		cat.AddMemory(c.memory())
		return nil
	}
	had := r.taken[number]
	if made := r.made[number]; made != nil {
		had = content{made, made.tables, made.indexes.Load()}
	}
	c = r.target(rec, had.from)
	c.number = number
	c.indexes.Store(had.indexes)
	if had.tables != nil {
		r.tx.whole(c).own(had.tables)
	}
	r.describe(c, rec)
	switch {
	case rec.Hidden != nil:
		cat.Hide(c)
	case rec.Aside != nil:
		cat.AddAside(c)
	case cat.ByName[c.name] != nil || cat.ByDB[c.db] != nil:
		return fmt.Errorf("container %d has the name %q and the number %d for SELECT, which are in use", number, c.name, c.db)
	default:
		cat.Add(c)
	}
	r.byNumber[number] = c
	note(&r.arrived, c)
	return nil
}

// target returns the container in memory for a record. from has had its number, nil for none.
func (r *containerApplier) target(rec *record.Container, from *Container) *Container {
	listed := rec.Hidden == nil && rec.Aside == nil
	if c := r.left[rec.Name]; listed && c != nil {
		c.replaced++
		c.swapped = r.now
		return c
	}
	if from == nil || r.left[from.name] == from {
		return newContainer(*rec, len(r.ks.partitions))
	}
	return from
}

// describe gives a container what its record says, but for indexes, log and groups.
func (r *containerApplier) describe(c *Container, rec *record.Container) {
	if undone := slices.ContainsFunc(rec.History, func(h expiry.HistoryEntry) bool {
		return h.What == expiry.Undone && h.Etag > c.Etag()
	}); undone {
		l := c.Policy().DeadLimits(r.now)
		c.revived.ByDefault, c.revived.ByOwnTTL = max(c.revived.ByDefault, l.ByDefault), max(c.revived.ByOwnTTL, l.ByOwnTTL)
		c.undone++
	}
	set := c.indexes.Load()
	c.describe(*rec)
	c.indexes.Store(set)
	c.noteWindows(r.ks)
	r.ks.catalogue.Changed(c)
}

// linkLog gives a container its log.
func (r *containerApplier) linkLog(number uint32, _ *record.Container) error {
	c := r.byNumber[number]
	if c == nil || c.log == nil || c.deaths != nil {
		return nil
	}
	h := r.byNumber[c.log.Number]
	if h == nil || !h.isLog() {
		return fmt.Errorf("container %q has the log %d, which is none", c.name, c.log.Number)
	}
	note(&r.logged, c)
	if c.deaths = r.logs[h.number]; c.deaths != nil {
		c.deaths.owner = c
		return nil
	}
	if h.partOf != nil {
		return fmt.Errorf("container %q has the log %d of %q", c.name, h.number, h.owner().name)
	}
	r.tx.whole(c).openLog(h)
	return nil
}

// linkGroup gives a log its group.
func (r *containerApplier) linkGroup(number uint32, _ *record.Container) error {
	h := r.byNumber[number]
	if h == nil || h.hidden == nil || !h.hidden.IsGroup() || h.group != nil {
		return nil
	}
	log := r.byNumber[h.hidden.GroupOf]
	if log == nil || !log.isLog() || log.partOf == nil {
		return fmt.Errorf("container %d is a group of the log %d, which is none", number, h.hidden.GroupOf)
	}
	r.hidden[number] = false
	note(&r.logged, log.owner())
	return r.ks.loadGroup(h, log.owner())
}

// complete gives a container its indexes, and compares what belongs together.
func (r *containerApplier) complete(number uint32, rec *record.Container) error {
	c := r.byNumber[number]
	if c == nil {
		if h := r.taken[number].from; h != nil && h.isLog() && h.owner().deaths != nil && h.owner().deaths.c == h {
			return fmt.Errorf("container %q has lost its log", h.owner().name)
		}
		return nil
	}
	if _, noted := r.hidden[number]; !noted {
		r.hidden[number] = false
	}
	if rec.Hidden != nil {
		return nil
	}
	r.show(c, r.hidden[number])
	delete(r.hidden, number)
	w, set := r.tx.whole(c), c.indexes.Load().Become(rec.Indexes)
	if set != c.indexes.Load() || r.arrived[c] && rec.Aside == nil { // tables that were loaded as set aside have no trees
		w.attachIndexes(set)
	}
	if set.MarkBuilt(w.indexed()) {
		r.ks.builder.Wake()
	}
	w.setTimers(r.now)
	return nil
}

// show hides the tables of a container, or shows them. hidden says what they are now.
func (r *containerApplier) show(c *Container, hidden bool) {
	switch {
	case c == nil || c.unlisted() == hidden:
	case hidden:
		c.tables.Show()
	default:
		c.tables.Hide()
	}
}
