package keyspace

import (
	"sync/atomic"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/undo"
)

// undoState is the state of windows. Safe for concurrent use.
type undoState struct {
	undo.Horizon
	reclaim atomic.Bool // windows were ended for memory: the dead that they kept are purgeable, and not yet removed
}

// tick does what is due each second.
func (ks *Keyspace) tick() {
	ks.watchClock()
	ks.EndWindows()
	ks.commitBurials()
}

// EndWindows removes what is set aside and cannot be brought back any more. The windows of rules end by
// themselves.
func (ks *Keyspace) EndWindows() {
	if !ks.undo.Any() || ks.follows() {
		return
	}
	for list := ks.ended(); len(list) > 0; {
		list = ks.endSome(list)
	}
}

// ended returns what is set aside and cannot be brought back any more.
func (ks *Keyspace) ended() []*Container {
	p := ks.partitions[0]
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return ks.catalogue.Asides.Ended(ks.Now())
}

// endSome removes some of what [Keyspace.ended] has returned, and returns the rest. It is one atomic group.
// After a crash the rest still cannot be brought back, and is removed then.
func (ks *Keyspace) endSome(list []*Container) []*Container {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	if ks.follows() {
		return nil
	}
	for n := groupsAtOnce; len(list) > 0 && n > 0; {
		a := list[0]
		switch {
		case a.aside == nil || a.aside.Until > tx.now || !ks.catalogue.Asides.Has(a): // another has removed it
			n--
		case a.hasManyGroups():
			tx.discardGroups(a, n)
			return list
		default:
			n -= 1 + len(a.hiddenOnes())
			tx.discardAside(a)
		}
		list = list[1:]
	}
	return list
}

// discardGroups removes up to n groups of a container that is set aside.
func (tx *Tx) discardGroups(a *Container, n int) {
	for name, h := range a.deaths.groups {
		if n--; n < 0 {
			return
		}
		delete(a.deaths.groups, name)
		tx.onRollback(func() { a.deaths.addGroup(h) })
		tx.discardHidden(h)
	}
}

// noteWindows notes the windows of a container that was read.
func (c *Container) noteWindows(ks *Keyspace) {
	c.retention = c.history.Load().Retention
	for _, r := range c.retention {
		ks.undo.Extend(r.Until)
	}
	if c.aside != nil {
		ks.undo.Extend(c.aside.Until)
	}
}

// EndAllWindows ends all windows, so that memory can be freed. It reports whether one was open.
// [Keyspace.Reclaim] removes the dead that they have kept. The calling goroutine must have no transaction
// open.
func (ks *Keyspace) EndAllWindows() (lsn LSN, open bool) {
	if !ks.undo.Open(ks.Now()) || ks.follows() {
		return 0, false
	}
	var tx Tx
	ks.lockAll(&tx)
	cat := tx.writeCatalogue()
	for a := range cat.Asides.All() {
		open = open || len(tx.stack(a.name).Windows(tx.now)) > 0
		tx.discardAside(a)
	}
	for _, c := range cat.List() {
		open = open || c.retention.Open(tx.now)
		s := tx.stack(c.name)
		if s.Limit(0); s[len(s)-1].Changed { // the listed container
			tx.follow(s)
			tx.recordContainer(c)
		}
	}
	ks.undo.Close()
	if !cat.Asides.Empty() {
		ks.undo.Extend(tx.now) // EndWindows removes the rest
	}
	if open {
		ks.undo.reclaim.Store(true)
	}
	return tx.Close(), open
}

// Reclaim removes the dead that ended windows have kept, until at most limit bytes are used or it has found
// no more in all tables. It reports whether the limit is reached.
func (ks *Keyspace) Reclaim(limit int64) bool {
	enough := func() bool { return ks.Used() <= limit }
	if ks.undo.reclaim.Load() && ks.purge.Drain(enough) {
		ks.undo.reclaim.Store(false)
	}
	return enough()
}

// UndoMemory estimates the memory in bytes of what can be brought back: containers that are set aside, and
// the dead that former rules keep. The latter are those of up to a second ago.
func (tx *Tx) UndoMemory() (bytes int64) {
	ks := tx.ks
	if !ks.undo.Open(tx.now) {
		return 0
	}
	tx.eachPartition(func(p *partition) bool {
		for a := range ks.catalogue.Asides.All() {
			for _, c := range append(a.hiddenOnes(), a) {
				if t := c.tables[p.Number]; t != nil {
					bytes += t.Stats().Memory + memtable.TableOverhead
					if t.Pages != nil {
						bytes += t.Pages.Stats().Memory
					}
				}
			}
		}
		for _, c := range ks.catalogue.List() {
			if t := c.tables[p.Number]; t != nil && c.retention.Open(tx.now) {
				bytes += t.KeptStats(tx.now, mostAge).Memory
			}
		}
		return true
	})
	return bytes
}
