package keyspace

import (
	"maps"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// AllowLogs raises the version of the data folder, the first time, to the one in which containers may have
// logs, of what clients delete too if deletes is set. It fails if it cannot write that. [Tx.SetLog] calls it
// too, under locks.
func (ks *Keyspace) AllowLogs(deletes bool) error {
	return ks.ForClients(ks.storage.AllowLogs(deletes))
}

// SetLog changes the log of a container. Equal settings change nothing. 0 seconds end the log with its
// entries and its groups, and all windows of undo. The log of a container that the transaction has made is
// part of its creation. The error is that of [Keyspace.AllowLogs]. It needs BeginAll.
func (tx *Tx) SetLog(c *Container, s LogSettings) error {
	now, on := c.Log()
	if s.Seconds == 0 {
		s = LogSettings{}
	}
	if now == s || tx.vetoes(c, nil) {
		return nil
	}
	if !on || s.Deletes {
		if err := tx.ks.AllowLogs(s.Deletes); err != nil {
			return err
		}
	}
	tx.writeCatalogue()
	tx.noteContainer(c)
	switch {
	case s.Seconds == 0:
		tx.closeWindows(c)
		tx.endLog(c)
	case !on:
		tx.beginLog(c, s)
	default:
		tx.changeLog(c, s)
	}
	if tx.made != c {
		tx.addHistory(c, expiry.HistoryEntry{What: expiry.Set, Kills: -1})
	}
	tx.recordContainer(c)
	return nil
}

// record returns what the record of a container says of its log.
func (s *LogSettings) record(number uint32) *record.Log {
	return &record.Log{Number: number, MaxLen: s.MaxLen, Bodies: s.Bodies, Deletes: s.Deletes}
}

// beginLog gives a container an empty log. The caller has noted the container and records it.
func (tx *Tx) beginLog(c *Container, s LogSettings) {
	cat := tx.writeCatalogue()
	log := &deathLog{owner: c}
	log.c = newContainer(record.Container{
		Number: cat.Number(), Created: tx.now, Policy: expiry.Policy{Default: expiry.TTL(s.Seconds)}, Hidden: &record.Hidden{LogOf: c.number},
	}, len(tx.ks.partitions))
	c.deaths, c.log = log, s.record(log.c.number)
	tx.addHidden(log.c, c)
	tx.logged = append(tx.logged, c)
}

// changeLog changes the settings of a log. Entries that have expired stay so. The caller has noted the
// container and records it.
func (tx *Tx) changeLog(c *Container, s LogSettings) {
	h := c.deaths.c
	if p := h.Policy(); p.Default != expiry.TTL(s.Seconds) {
		tx.setHiddenPolicy(h, p.Change(expiry.TTL(s.Seconds), p.Mode, tx.now))
	}
	c.log = s.record(h.number)
}

// holdLog keeps the entries of a container's log as long as the container is on hold; "" ends that.
func (tx *Tx) holdLog(c *Container, reason string) {
	if c.deaths != nil {
		tx.setHiddenPolicy(c.deaths.c, c.deaths.c.Policy().WithHold(reason, tx.now))
	}
}

// setHiddenPolicy gives a hidden container another policy.
func (tx *Tx) setHiddenPolicy(h *Container, p expiry.Policy) {
	before := h.Policy()
	h.policy.Store(&p)
	tx.onRollback(func() { h.policy.Store(before); tx.ks.catalogue.Changed(h) })
	tx.recordContainer(h)
}

// endLog removes the log of a container, if it has one, with its entries. The caller has noted the container.
func (tx *Tx) endLog(c *Container) {
	switch {
	case c.deaths == nil:
		return
	case c.hasManyGroups():
		tx.setLogAside(c)
		return
	}
	for _, h := range c.hiddenOnes() {
		tx.discardHidden(h)
	}
	c.deaths, c.log = nil, nil
	tx.logged = append(tx.logged, c)
}

// groupsAtOnce is the number of groups that are discarded under the locks of all partitions: some ms.
const groupsAtOnce = 256

// hasManyGroups reports whether the groups of the container's log are to be discarded little by little. The
// container, which cannot be brought back, is set aside until then: a folder that has a log of deaths may
// have such containers, and a crash leaves one that nothing brings back.
func (c *Container) hasManyGroups() bool {
	return c.deaths != nil && len(c.deaths.groups) > groupsAtOnce
}

// setLogAside gives the log of a container to one without items that is set aside, and cannot be brought
// back.
func (tx *Tx) setLogAside(c *Container) {
	cat := tx.writeCatalogue()
	a := newContainer(record.Container{
		Number: cat.Number(), Name: c.name, DB: c.db, Created: c.created, Policy: *c.Policy(),
		Aside: &record.Aside{What: expiry.Dropped, Until: tx.now, Order: tx.ks.partitions[0].NextVersion()},
	}, len(tx.ks.partitions))
	a.history.Store(c.history.Load())
	tx.giveLog(c, a)
	tx.hideLog(a)
	tx.onRollback(func() { cat.Gone(a.number) })
	tx.addAside(a)
	tx.logged = append(tx.logged, c)
}

// hiddenOnes returns the hidden containers that belong to one.
func (c *Container) hiddenOnes() []*Container {
	if c.deaths == nil {
		return nil
	}
	return append(slices.Collect(maps.Values(c.deaths.groups)), c.deaths.c)
}

// addHidden adds a hidden container, which belongs to another.
func (tx *Tx) addHidden(h, owner *Container) {
	cat := tx.writeCatalogue()
	h.partOf = owner.deaths
	cat.Hide(h)
	tx.onRollback(func() {
		cat.Unhide(h)
		cat.Gone(h.number)
	})
	tx.recordContainer(h)
}

// discardHidden removes a hidden container with its items.
func (tx *Tx) discardHidden(h *Container) {
	cat := tx.writeCatalogue()
	dropped := len(cat.dropped)
	cat.drop(h)
	cat.Unhide(h)
	cat.Gone(h.number)
	tx.onRollback(func() {
		cat.Hide(h)
		cat.Changed(h)
		cat.dropped = cat.dropped[:dropped]
	})
	if !h.unlisted() {
		tx.noteDetach(h)
		tx.whole(h).detach()
	} else {
		for t := range h.each {
			t.Detach()
			tx.onRollback(t.Attach)
		}
	}
	tx.group.Del(record.ContainerKey(h.number))
	tx.replaced = true
	tx.ks.storage.Wake()
}

// giveLog gives the log of a container to another, which has none. The caller has noted both, or makes them.
func (tx *Tx) giveLog(from, to *Container) {
	give := func(from, to *Container) {
		to.deaths, to.log = from.deaths, from.log
		from.deaths, from.log = nil, nil
		to.deaths.owner = to
	}
	if from.deaths != nil {
		give(from, to)
		tx.onRollback(func() { give(to, from) })
		tx.logged = append(tx.logged, to)
	}
}

// hideLog hides the tables of the log of a container that is set aside. Those of its groups stay listed,
// however many there are: see unlisted.
func (tx *Tx) hideLog(a *Container) {
	if a.deaths != nil {
		h := a.deaths.c
		h.tables.Hide()
		tx.onRollback(func() { h.tables.Show() })
	}
}

// showLog ends hideLog.
func (tx *Tx) showLog(a *Container) {
	if a.deaths != nil {
		h := a.deaths.c
		h.tables.Show()
		tx.onRollback(func() { h.tables.Hide() })
		tx.logged = append(tx.logged, a)
	}
}

// loadLog gives a container that was read its log.
func (ks *Keyspace) loadLog(c *Container) {
	h := ks.catalogue.Hidden[c.log.Number]
	if h == nil { // the folder was repaired, and nothing tells how long entries were to be kept
		h = newContainer(record.Container{
			Number: c.log.Number, Policy: expiry.Policy{Default: expiry.MaxTTL}, Hidden: &record.Hidden{LogOf: c.number},
		}, len(ks.partitions))
		ks.catalogue.Used(h.number + 1)
		ks.catalogue.Hide(h)
		ks.catalogue.Changed(h)
	}
	if h.partOf != nil { // likewise
		c.log = nil
		ks.catalogue.Changed(c)
		return
	}
	whole{c}.openLog(h)
	if c.aside != nil {
		h.tables.Hide()
	}
}

// openLog gives a container the log whose entries a hidden container has.
func (c whole) openLog(h *Container) {
	c.deaths = &deathLog{c: h, owner: c.Container}
	h.partOf = c.deaths
	for t := range h.each {
		t.OpenPart()
		c.deaths.ids.Raise(t.Part.Last())
	}
}
