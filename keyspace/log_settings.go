package keyspace

import (
	"maps"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// AllowLogs raises the version of the data folder, the first time, to the one in which containers may have logs, of what
// clients delete too if deletes is set. It fails if it cannot write that. [Tx.SetLog] calls it too, under locks.
func (ks *Keyspace) AllowLogs(deletes bool) error {
	return ks.ForClients(ks.storage.AllowLogs(deletes))
}

// SetLog changes the log of a container. Equal settings change nothing. 0 seconds end the log with its entries and its
// groups, and all windows of undo. The log of a container that the transaction has made is part of its creation. The error is that of [Keyspace.AllowLogs]. It needs BeginAll.
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
	log := &deathLog{}
	log.c = newContainer(record.Container{
		Number: cat.Number(), Created: tx.now, Policy: expiry.Policy{Default: expiry.TTL(s.Seconds)}, Hidden: &record.Hidden{LogOf: c.number},
	}, len(tx.ks.partitions))
	c.deaths, c.log = log, s.record(log.c.number)
	tx.addHidden(log.c, c)
	tx.logged = append(tx.logged, c)
}

// changeLog changes the settings of a log. Entries that have expired stay so. The caller has noted the container and records
// it.
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
	if c.deaths == nil {
		return
	}
	for _, h := range c.hiddenLocked() {
		tx.discardHidden(h)
	}
	c.deaths, c.log = nil, nil
	tx.logged = append(tx.logged, c)
}

// hiddenLocked returns the hidden containers that belong to one. The locks of all partitions must be held.
func (c *Container) hiddenLocked() []*Container {
	if c.deaths == nil {
		return nil
	}
	return append(slices.Collect(maps.Values(c.deaths.groups)), c.deaths.c)
}

// addHidden adds a hidden container, which belongs to another.
func (tx *Tx) addHidden(h, owner *Container) {
	cat := tx.writeCatalogue()
	h.owner = owner
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
	if h.owner.aside == nil {
		tx.noteDetach(h)
		h.detachLocked()
	} else { // its tables are hidden
		for t := range h.each {
			t.Detach()
			tx.onRollback(t.Attach)
		}
	}
	tx.group = aof.AppendDel(tx.group, record.ContainerKey(h.number))
	tx.replaced = true
	tx.ks.storage.Wake()
}

// giveLog gives the log of a container to another, which has none. The caller has noted both, or makes them.
func (tx *Tx) giveLog(from, to *Container) {
	give := func(from, to *Container) {
		to.deaths, to.log = from.deaths, from.log
		from.deaths, from.log = nil, nil
		for _, h := range to.hiddenLocked() {
			h.owner = to
		}
	}
	if from.deaths != nil {
		give(from, to)
		tx.onRollback(func() { give(to, from) })
		tx.logged = append(tx.logged, to)
	}
}

// hideLog hides the tables of the hidden containers that belong to one that is set aside.
func (tx *Tx) hideLog(a *Container) {
	for _, h := range a.hiddenLocked() {
		h.tables.Hide()
		tx.onRollback(h.tables.Show)
	}
}

// showLog ends hideLog.
func (tx *Tx) showLog(a *Container) {
	for _, h := range a.hiddenLocked() {
		h.tables.Show()
		tx.onRollback(h.tables.Hide)
	}
	if a.deaths != nil {
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
	if h.owner != nil { // likewise
		c.log = nil
		ks.catalogue.Changed(c)
		return
	}
	c.openLogLocked(h)
	if c.aside != nil {
		h.tables.Hide()
	}
}

// openLogLocked gives a container the log whose entries a hidden container has. The locks of all partitions must be held.
func (c *Container) openLogLocked(h *Container) {
	c.deaths, h.owner = &deathLog{c: h}, c
	for t := range h.each {
		t.OpenPart()
		c.deaths.ids.Raise(t.Part.Last())
	}
}
