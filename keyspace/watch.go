package keyspace

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Watcher notes whether any of the items it watches changes (WATCH): is written, deleted, or dies.
// Its zero value watches nothing. One goroutine uses a watcher; others only mark it.
type Watcher struct {
	keys []watched
	// changed is set under the lock of the partition in which a change happens, and read under the
	// locks of all the keys' partitions: whoever reads it sees all changes up to then.
	changed atomic.Bool
}

// watched is one id under watch.
type watched struct {
	p     *partition
	at    watchPoint
	lived bool // when the watch began
}

// watchPoint is what is watched: an id of a container, whether there is such an item or not.
type watchPoint struct {
	c  *Container
	id string
}

// Watch makes a watcher watch an id from now on. The transaction has locked its partition.
func (tx *Tx) Watch(w *Watcher, c *Container, id string) {
	p := tx.partition(id)
	// Not w.keys is searched, which is as long as a client likes.
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

// Watching tells whether the watcher watches anything.
func (w *Watcher) Watching() bool { return len(w.keys) > 0 }

// IDs gives the ids under watch, whose partitions a transaction locks before it asks Changed.
func (w *Watcher) IDs() []string {
	ids := make([]string, len(w.keys))
	for i, k := range w.keys {
		ids[i] = k.at.id
	}
	return ids
}

// Changed tells whether any item under watch has changed since the watch on it began. An item that
// lived then and is dead now has changed; one that was dead already has not.
func (tx *Tx) Changed(w *Watcher) bool {
	changed := w.changed.Load() || slices.ContainsFunc(w.keys, func(k watched) bool {
		return k.lived && tx.find(tx.partition(k.at.id), k.at.c, k.at.id) == nil
	})
	if changed {
		tx.saw(tx.ks.catalogue.ticket)
		for _, k := range w.keys {
			tx.saw(k.p.lastWrite)
		}
	}
	return changed
}

// Unwatch ends all watches of a watcher. No transaction that has locked anything may be open in the
// calling goroutine.
func (ks *Keyspace) Unwatch(w *Watcher) {
	for _, k := range w.keys {
		k.p.mu.Lock()
		k.p.unwatch(w, k.at)
		k.p.mu.Unlock()
	}
	w.reset()
}

// Unwatch ends all watches of a watcher. The transaction has locked the partitions of its IDs.
func (tx *Tx) Unwatch(w *Watcher) {
	for _, k := range w.keys {
		tx.partition(k.at.id).unwatch(w, k.at)
	}
	w.reset()
}

// unwatch takes a watcher from the list of those who watch an id. The partition is locked.
func (p *partition) unwatch(w *Watcher, at watchPoint) {
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

// alert has those marked who watch an id, when the transaction is closed.
func (tx *Tx) alert(p *partition, c *Container, id string) {
	if len(p.watchers) > 0 {
		tx.alerted = append(tx.alerted, p.watchers[watchPoint{c, id}]...)
	}
}

// alertWhere has those marked who watch an id that a change of containers changes.
func (tx *Tx) alertWhere(changes func(p *partition, at watchPoint) bool) {
	for _, p := range tx.ks.partitions {
		for at, watchers := range p.watchers {
			if changes(p, at) {
				tx.alerted = append(tx.alerted, watchers...)
			}
		}
	}
}

// lives tells whether a container has a living item of an id. Unlike a transaction's find it leaves
// the dead where they are: whoever watches one sees by itself that it has died (Changed).
func (p *partition) lives(c *Container, id string, now int64) bool {
	t := c.tables[p.number]
	if t == nil {
		return false
	}
	e := t.find(id)
	return e != nil && !e.dead(c.Policy(), now)
}
