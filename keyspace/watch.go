package keyspace

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Watcher notes whether any of the items it watches is written, deleted, or dies (WATCH). The zero value watches
// nothing. One goroutine uses a watcher; others only mark it.
type Watcher struct {
	keys []watched
	// changed is set under the lock of the changed partition. It is read under the locks of all the keys' partitions,
	// so a reader sees all changes up to then.
	changed atomic.Bool
}

// watched is one id under watch.
type watched struct {
	p     *partition
	at    watchPoint
	lived bool // when the watch began
}

// watchPoint is an id of a container, whether there is such an item or not.
type watchPoint struct {
	c  *Container
	id string
}

// Watch makes a watcher watch an id from now on. The transaction has locked its partition.
func (tx *Tx) Watch(w *Watcher, c *Container, id string) {
	p := tx.partition(id)
	// w.keys is not searched: clients decide how long it is.
	if slices.Contains(p.watchers[watchPoint{c, id}], w) {
		return
	}
	at := watchPoint{c, strings.Clone(id)}
	w.keys = append(w.keys, watched{p, at, tx.find(p, c, id) != nil})
	if p.watchers == nil {
		p.watchers = make(map[watchPoint][]*Watcher)
	}
	p.watchers[at] = append(p.watchers[at], w)
}

// IDs returns the ids under watch. A transaction locks their partitions before it calls Changed.
func (w *Watcher) IDs() []string {
	ids := make([]string, len(w.keys))
	for i, k := range w.keys {
		ids[i] = k.at.id
	}
	return ids
}

// Changed reports whether any item under watch has changed since its watch began. An item that lived then and is
// dead now has changed; one that was dead already has not.
func (tx *Tx) Changed(w *Watcher) bool {
	changed := w.changed.Load() || slices.ContainsFunc(w.keys, func(k watched) bool {
		return k.lived && tx.find(tx.partition(k.at.id), k.at.c, k.at.id) == nil
	})
	if changed {
		tx.saw(tx.ks.catalogue.lsn)
		for _, k := range w.keys {
			tx.saw(k.p.lastWrite)
		}
	}
	return changed
}

// Unwatch ends all watches of a watcher. The calling goroutine must have no transaction open that has locked
// anything.
func (ks *Keyspace) Unwatch(w *Watcher) {
	for _, k := range w.keys {
		k.p.mu.Lock()
		k.p.unwatchLocked(w, k.at)
		k.p.mu.Unlock()
	}
	w.reset()
}

// Unwatch ends all watches of a watcher. The transaction has locked the partitions of its IDs.
func (tx *Tx) Unwatch(w *Watcher) {
	for _, k := range w.keys {
		tx.partition(k.at.id).unwatchLocked(w, k.at)
	}
	w.reset()
}

// unwatchLocked takes a watcher off the list of an id. mu must be held.
func (p *partition) unwatchLocked(w *Watcher, at watchPoint) {
	left := slices.DeleteFunc(p.watchers[at], func(other *Watcher) bool { return other == w })
	if len(left) > 0 {
		p.watchers[at] = left
	} else {
		delete(p.watchers, at)
	}
}

// reset makes a watcher watch nothing.
func (w *Watcher) reset() {
	w.keys = nil
	w.changed.Store(false)
}

// alert marks the watchers of an id when the transaction closes.
func (tx *Tx) alert(p *partition, c *Container, id string) {
	if len(p.watchers) > 0 {
		tx.alerted = append(tx.alerted, p.watchers[watchPoint{c, id}]...)
	}
}

// alertWhere marks the watchers of all ids that a change of containers changes.
func (tx *Tx) alertWhere(changes func(p *partition, at watchPoint) bool) {
	for _, p := range tx.ks.partitions {
		for at, watchers := range p.watchers {
			if changes(p, at) {
				tx.alerted = append(tx.alerted, watchers...)
			}
		}
	}
}

// livesLocked reports whether a container has a living item under an id. Unlike Tx.find it leaves a dead one in
// place: its watcher finds out by itself (Changed). mu must be held.
func (p *partition) livesLocked(c *Container, id string, now int64) bool {
	t := c.tables[p.number]
	if t == nil {
		return false
	}
	e := t.Find(id)
	return e != nil && !e.Dead(c.Policy(), now)
}
