package keyspace

import (
	"strings"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/watch"
)

// Watcher notes whether any of the items it watches is written, deleted, or dies (WATCH). The zero value watches
// nothing. One goroutine uses a watcher; others only mark it.
//
// Writes, deletes and removals of the dead mark the watchers of their id. A change of a whole container marks none,
// however many there are: a watcher remembers the state of the container, and compares at the end.
type Watcher struct{ set *watchSet }

type (
	watchSet = watch.Set[*partition, *Container]
	watched  = watch.Key[*partition, *Container]
)

// Watch makes a watcher watch an id from now on. The transaction has locked its partition.
func (tx *Tx) Watch(w *Watcher, c *Container, id string) {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	if w.set == nil {
		w.set = new(watchSet)
	}
	id = strings.Clone(id)
	if !p.watchers.Add(c, id, &w.set.Mark) { // the keys are not searched: clients decide how many there are
		return
	}
	ends := int64(watch.Never)
	if e != nil {
		if end, ok := e.End(c.Policy()); ok {
			ends = end
		}
	}
	w.set.Add(watched{Partition: p, Container: c, ID: id, Lived: e != nil}, c.watchState(), ends)
}

// watchState returns the state of the container that watchers compare. A partition must be locked.
func (c *Container) watchState() watch.State {
	return watch.State{Policy: c.Policy(), Replaced: c.replaced, Undone: c.undone, Dropped: c.dropped}
}

// IDs returns the ids under watch. A transaction locks their partitions before it calls Changed.
func (w *Watcher) IDs() (ids []string) {
	if w.set != nil {
		for _, k := range w.set.Keys {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Changed reports whether any item under watch has changed since its watch began; see [watch.Set.Changed].
func (tx *Tx) Changed(w *Watcher) bool {
	if w.set == nil {
		return false
	}
	lives := func(k watched) bool { return tx.find(tx.partition(k.ID), k.Container, k.ID) != nil }
	changed := w.set.Changed(watch.View[*partition, *Container]{
		Now: tx.now, State: (*Container).watchState, Lives: lives,
		Brought: func(k watched) bool { return lives(k) || tx.broughtAlive(k) }, Revived: tx.revived,
	})
	if changed {
		tx.saw(tx.ks.catalogue.lsn)
		for _, k := range w.set.Keys {
			tx.saw(k.Partition.lastWrite)
		}
	}
	return changed
}

// broughtAlive reports whether an item is dead, but lived when Swap brought it.
func (tx *Tx) broughtAlive(k watched) bool {
	t := k.Container.tables[k.Partition.number]
	if t == nil {
		return false
	}
	e := t.Find(k.ID)
	return e != nil && !e.Dead(k.Container.Policy(), k.Container.swapped)
}

// revived reports whether an item lives that Undo may have brought back.
func (tx *Tx) revived(k watched) bool {
	e := tx.find(tx.partition(k.ID), k.Container, k.ID)
	return e != nil && e.Within(k.Container.revived)
}

// unwatchAtOnce is the number of watches that end at once. More end in the background, unless unwatchersAtMost
// goroutines do that already.
const (
	unwatchAtOnce    = 256
	unwatchersAtMost = 4
)

// Unwatch ends all watches of a watcher. The calling goroutine must have no transaction open that has locked
// anything.
func (ks *Keyspace) Unwatch(w *Watcher) {
	s := w.set
	if w.set = nil; s == nil {
		return
	}
	if !ks.unwatchLater(s) {
		ks.unwatch(s)
	}
}

// unwatchLater ends the watches of a large set in the background. It reports false if it does nothing.
func (ks *Keyspace) unwatchLater(s *watchSet) bool {
	if len(s.Keys) <= unwatchAtOnce {
		return false
	}
	if ks.unwatchers.Add(1) > unwatchersAtMost {
		ks.unwatchers.Add(-1)
		return false
	}
	ks.background.Go(func() {
		defer ks.unwatchers.Add(-1)
		ks.unwatch(s)
	})
	return true
}

func (ks *Keyspace) unwatch(s *watchSet) {
	for _, k := range s.Keys {
		k.Partition.mu.Lock()
		k.Partition.watchers.Remove(k.Container, k.ID, &s.Mark)
		k.Partition.mu.Unlock()
	}
}

// Unwatch ends all watches of a watcher. The transaction has locked the partitions of its IDs.
func (tx *Tx) Unwatch(w *Watcher) {
	s := w.set
	if w.set = nil; s == nil || tx.ks.unwatchLater(s) {
		return
	}
	for _, k := range s.Keys {
		tx.partition(k.ID).watchers.Remove(k.Container, k.ID, &s.Mark)
	}
}

// alert marks the watchers of an id when the transaction closes.
func (tx *Tx) alert(p *partition, c *Container, id string) {
	if !p.watchers.Empty() {
		tx.alerted = append(tx.alerted, p.watchers.Of(c, id)...)
	}
}

// alertDeathLocked marks the watchers of an item that was removed because it is dead, if Swap has brought it alive: an
// item that lived when its watch began is found dead by Changed. Without a swap a watch may have begun after the death,
// and the item never lived for it. p.mu must be held.
func (t *table) alertDeathLocked(e *memtable.Entry) {
	if t.p.watchers.Empty() || t.c.swapped == 0 || e.Dead(t.c.Policy(), t.c.swapped) {
		return
	}
	for _, m := range t.p.watchers.Of(t.c, t.ID(e)) {
		m.Set()
	}
}
