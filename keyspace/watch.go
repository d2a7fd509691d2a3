package keyspace

import (
	"math"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/watch"
)

// Watcher notes whether any of the items it watches is written, deleted, or dies (WATCH). The zero value watches
// nothing. One goroutine uses a watcher; others only mark it.
//
// Writes, deletes and removals of the dead mark the watchers of their id. A change of a whole container marks none,
// however many there are: a watcher remembers the state of the container, and compares at the end.
type Watcher struct{ set *watchSet }

// watchSet is what a watcher watches until it is reset. The partitions refer to it, so a large one can be taken off
// their lists later.
type watchSet struct {
	keys   []watched
	groups []watchGroup
	// changed is set under the lock of the changed partition. It is read under the locks of all the keys' partitions,
	// so a reader sees all changes up to then.
	changed watch.Mark
}

// watched is one id under watch, whether there is such an item or not.
type watched struct {
	p     *partition
	c     *Container
	id    string
	lived bool // when the watch began
}

// watchGroup is consecutive keys of one container that were watched in the same state of it.
type watchGroup struct {
	c        *Container
	policy   *expiry.Policy
	replaced uint64
	from, to int   // of its keys
	lived    bool  // one of them did when its watch began
	earliest int64 // ms; when the first of those dies under the policy; math.MaxInt64: never
}

// Watch makes a watcher watch an id from now on. The transaction has locked its partition.
func (tx *Tx) Watch(w *Watcher, c *Container, id string) {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	if w.set == nil {
		w.set = new(watchSet)
	}
	id = strings.Clone(id)
	if p.watchers.Add(c, id, &w.set.changed) { // the keys are not searched: clients decide how many there are
		w.set.add(watched{p, c, id, e != nil}, e)
	}
}

// add adds a key, whose item has this entry, nil if there is none.
func (s *watchSet) add(k watched, e *memtable.Entry) {
	s.keys = append(s.keys, k)
	policy := k.c.Policy()
	last := len(s.groups) - 1
	if last < 0 || s.groups[last].c != k.c || s.groups[last].policy != policy || s.groups[last].replaced != k.c.replaced {
		s.groups = append(s.groups, watchGroup{
			c: k.c, policy: policy, replaced: k.c.replaced, from: len(s.keys) - 1, earliest: math.MaxInt64,
		})
		last++
	}
	g := &s.groups[last]
	g.to = len(s.keys)
	if e == nil {
		return
	}
	g.lived = true
	if end, ok := e.End(policy); ok {
		g.earliest = min(g.earliest, end)
	}
}

// keys returns the keys under watch.
func (w *Watcher) keys() []watched {
	if w.set == nil {
		return nil
	}
	return w.set.keys
}

// IDs returns the ids under watch. A transaction locks their partitions before it calls Changed.
func (w *Watcher) IDs() []string {
	ids := make([]string, len(w.keys()))
	for i, k := range w.keys() {
		ids[i] = k.id
	}
	return ids
}

// Changed reports whether any item under watch has changed since its watch began. An item that lived then and is
// dead now has changed; one that was dead already has not. It looks at the items only if the rules or the items of
// their container were replaced.
func (tx *Tx) Changed(w *Watcher) bool {
	if w.set == nil {
		return false
	}
	changed := w.set.changed.IsSet() || slices.ContainsFunc(w.set.groups, func(g watchGroup) bool {
		return tx.groupChanged(&g, w.set.keys[g.from:g.to])
	}) || w.set.changed.IsSet() // by the death of an item that a swap has brought
	if changed {
		tx.saw(tx.ks.catalogue.lsn)
		for _, k := range w.set.keys {
			tx.saw(k.p.lastWrite)
		}
	}
	return changed
}

// groupChanged reports whether an item of a group has changed in a way that does not mark its watchers.
//
// Flush and Swap replace the items of the container. Each item that lived when its watch began has then been removed,
// or was dead before. One that did not live has changed if the replacement brought it.
func (tx *Tx) groupChanged(g *watchGroup, keys []watched) bool {
	lives := func(k watched) bool { return tx.find(tx.partition(k.id), k.c, k.id) != nil }
	brought := func(k watched) bool { return lives(k) || tx.broughtAlive(k) }
	switch {
	case g.c.dropped:
		return true // absent ids too: they may appear in another container of this name
	case g.c.replaced != g.replaced:
		return g.lived || slices.ContainsFunc(keys, brought)
	case g.earliest <= tx.now:
		return true
	case g.policy != g.c.Policy():
		return slices.ContainsFunc(keys, func(k watched) bool { return k.lived && !lives(k) })
	}
	return false
}

// broughtAlive reports whether an item is dead, but lived when Swap brought it.
func (tx *Tx) broughtAlive(k watched) bool {
	t := k.c.tables[k.p.number]
	if t == nil {
		return false
	}
	e := t.Find(k.id)
	return e != nil && !e.Dead(k.c.Policy(), k.c.swapped)
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
	if len(s.keys) <= unwatchAtOnce {
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
	for _, k := range s.keys {
		k.p.mu.Lock()
		k.p.watchers.Remove(k.c, k.id, &s.changed)
		k.p.mu.Unlock()
	}
}

// Unwatch ends all watches of a watcher. The transaction has locked the partitions of its IDs.
func (tx *Tx) Unwatch(w *Watcher) {
	s := w.set
	if w.set = nil; s == nil || tx.ks.unwatchLater(s) {
		return
	}
	for _, k := range s.keys {
		tx.partition(k.id).watchers.Remove(k.c, k.id, &s.changed)
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
