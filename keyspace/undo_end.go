package keyspace

import "mayfly/keyspace/memtable"

// tick does what is due each second.
func (ks *Keyspace) tick() {
	ks.watchClock()
	ks.EndWindows()
}

// EndWindows removes what is set aside and cannot be brought back any more. The windows of rules end by themselves.
func (ks *Keyspace) EndWindows() {
	until := ks.undo.until.Load()
	if until == 0 || !ks.hasEnded(ks.Now()) {
		return
	}
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	for _, list := range ks.catalogue.asides {
		for _, a := range list {
			if a.aside.Until <= tx.now {
				tx.discardAside(a)
			}
		}
	}
}

// hasEnded reports whether something is set aside that cannot be brought back any more at a moment in ms.
func (ks *Keyspace) hasEnded(now int64) bool {
	p := ks.partitions[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range ks.catalogue.asides {
		for _, a := range list {
			if a.aside.Until <= now {
				return true
			}
		}
	}
	return false
}

// loadWindows notes the windows of a container that was read.
func (c *Container) loadWindows(ks *Keyspace) {
	h := c.history.Load()
	c.retention = h.Retention
	until := int64(0)
	if c.aside != nil {
		until = c.aside.Until
		for _, t := range c.tables {
			if t != nil {
				t.hideLocked()
			}
		}
	}
	for _, r := range c.retention {
		until = max(until, r.Until)
	}
	if until > ks.undo.until.Load() {
		ks.undo.until.Store(until)
	}
}

// EndAllWindows ends all windows, so that memory can be freed. It reports whether one was open. [Keyspace.Reclaim] removes
// the dead that they have kept. The calling goroutine must have no transaction open.
func (ks *Keyspace) EndAllWindows() (lsn LSN, open bool) {
	if ks.undo.until.Load() <= ks.Now() {
		return 0, false
	}
	var tx Tx
	ks.lockAll(&tx)
	cat := tx.writeCatalogue()
	for name, list := range cat.asides {
		open = open || len(tx.windows(name)) > 0
		for _, a := range list {
			tx.discardAside(a)
		}
	}
	for _, c := range cat.list {
		open = open || c.retention.Open(tx.now)
		if tx.limitHistory(c, 0) {
			tx.recordContainer(c)
		}
	}
	ks.undo.until.Store(0)
	if open {
		ks.undo.reclaim.Store(true)
	}
	return tx.Close(), open
}

// reclaimDead is the number of dead that Reclaim removes from a table while its partition is locked.
const reclaimDead = 256

// Reclaim removes the dead that ended windows have kept, until at most limit bytes are used or it has found no more in all
// tables. It reports whether the limit is reached.
func (ks *Keyspace) Reclaim(limit int64) bool {
	for ks.undo.reclaim.Load() && ks.Used() > limit {
		found := false
		for _, t := range ks.tables.Some(nil, 0, ks.tables.Len()) {
			for more := true; more && ks.Used() > limit; {
				s := t.Sample(reclaimDead)
				more = s.More
				found = found || s.Dead > 0
			}
		}
		if !found {
			ks.undo.reclaim.Store(false)
		}
	}
	return ks.Used() <= limit
}

// UndoMemory estimates the memory in bytes of what can be brought back: containers that are set aside, and the dead that
// former rules keep. The latter are those of up to a second ago.
func (ks *Keyspace) UndoMemory() (bytes int64) {
	now := ks.Now()
	if ks.undo.until.Load() <= now {
		return 0
	}
	for _, p := range ks.partitions {
		p.mu.Lock()
		for _, list := range ks.catalogue.asides {
			for _, a := range list {
				if t := a.tables[p.number]; t != nil {
					bytes += t.Stats().Memory + memtable.TableOverhead
				}
			}
		}
		for _, c := range ks.catalogue.list {
			if t := c.tables[p.number]; t != nil && c.retention.Open(now) {
				bytes += t.deadStats(now, mostAge).Memory
			}
		}
		p.mu.Unlock()
	}
	return bytes
}
