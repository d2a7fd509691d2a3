package keyspace

import (
	"slices"
	"strings"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/watch"
)

// Watcher notes whether any of the items it watches is written, deleted, or dies (WATCH); see
// [watch.Watcher].
type Watcher = watch.Watcher[*partition, *Container]

type watched = watch.Key[*partition, *Container]

// Watch makes a watcher watch an id from now on. The transaction has locked its partition.
func (tx *Tx) Watch(w *Watcher, c *Container, id string) {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	id, set := strings.Clone(id), w.Begin()
	if !p.Watchers.Add(c, id, &set.Mark) { // the keys are not searched: clients decide how many there are
		return
	}
	ends := int64(watch.Never)
	if e != nil {
		if end, ok := e.End(c.Policy()); ok {
			ends = end
		}
	}
	set.Add(watched{Partition: p, Container: c, ID: id, Lived: e != nil, Dead: tx.deadElements(p, c, id)}, c.watchState(), ends)
}

// deadElements returns how many elements of an item are dead and not removed.
func (tx *Tx) deadElements(p *partition, c *Container, id string) int {
	t := c.tables[p.Number]
	if t == nil || t.Pages == nil {
		return 0
	}
	if e := t.Find(id); e != nil {
		if of := collectionOf(t, e); of != nil {
			return t.Pages.Collections.Dead(of, c.Policy().DeadLimits(tx.now).ByOwnTTL)
		}
	}
	return 0
}

// watchState returns the state of the container that watchers compare. A partition must be locked.
func (c *Container) watchState() watch.State {
	return watch.State{Policy: c.Policy(), Replaced: c.replaced, Undone: c.undone, Dropped: c.dropped}
}

// Changed reports whether any item under watch has changed since its watch began; see [watch.Set.Changed].
func (tx *Tx) Changed(w *Watcher) bool {
	set := w.Set()
	if set == nil {
		return false
	}
	lives := func(k watched) bool { return tx.find(tx.partition(k.ID), k.Container, k.ID) != nil }
	changed := set.Changed(watch.View[*partition, *Container]{
		Now: tx.now, State: (*Container).watchState, Lives: lives,
		Brought: func(k watched) bool { return lives(k) || tx.broughtAlive(k) }, Revived: tx.revived,
	})
	changed = changed || slices.ContainsFunc(set.Keys, func(k watched) bool { // what removes dead elements alerts
		return tx.deadElements(k.Partition, k.Container, k.ID) > k.Dead
	})
	if changed {
		tx.saw(tx.ks.catalogue.lsn)
		for _, k := range set.Keys {
			tx.saw(k.Partition.LastWrite)
		}
	}
	return changed
}

// broughtAlive reports whether an item is dead, but lived when Swap brought it.
func (tx *Tx) broughtAlive(k watched) bool {
	t := k.Container.tables[k.Partition.Number]
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

// Unwatch ends all watches of a watcher. The calling goroutine must have no transaction open that has locked
// anything.
func (ks *Keyspace) Unwatch(w *Watcher) { ks.watchEnder.End(w.Reset(), ks.unwatch) }

func (ks *Keyspace) unwatch(k watched, m *watch.Mark) {
	k.Partition.Mu.Lock()
	defer k.Partition.Mu.Unlock()
	k.Partition.Watchers.Remove(k.Container, k.ID, m)
}

// Unwatch ends all watches of a watcher. The transaction has locked the partitions of its IDs.
func (tx *Tx) Unwatch(w *Watcher) {
	set := w.Reset()
	if tx.ks.watchEnder.EndLater(set, tx.ks.unwatch) {
		return
	}
	for _, k := range set.Keys {
		tx.partition(k.ID).Watchers.Remove(k.Container, k.ID, &set.Mark)
	}
}

// alert marks the watchers of an id when the transaction closes, and tells those who have read it.
func (tx *Tx) alert(p *partition, c *Container, id string) {
	if !p.Watchers.Empty() {
		tx.alerted = append(tx.alerted, p.Watchers.Of(c, id)...)
		tx.willTell(p, c, id)
	}
}

// alertDeath tells those who have read an item that was removed because it is dead. It marks its watchers if
// Swap has brought it alive: an item that lived when its watch began is found dead by Changed. Without a swap
// a watch may have begun after the death, and the item never lived for it.
func (p locked) alertDeath(t *table, e *memtable.Entry) {
	if p.Watchers.Empty() {
		return
	}
	p.tellDeath(t.C, t.ID(e))
	if t.C.swapped == 0 || e.Dead(t.C.Policy(), t.C.swapped) {
		return
	}
	for _, m := range p.Watchers.Of(t.C, t.ID(e)) {
		m.Set()
	}
}
