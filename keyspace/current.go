package keyspace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mayfly/keyspace/record"
)

// current is the presence of a partition's items as memory knows it: a set is of a present item if it has
// written what the item is now. Of the file nothing has to be remembered but a bit for each item.
//
// What has been overwritten, deleted or dropped since the last checkpoint is not present. That is in the
// journal, which is forced to disk before the new file takes the place of the old: so the next start knows it.
// What has died since is dead at the next start, too: the journal promises that it will be no earlier.
//
// No checkpoint may be made meanwhile: what it writes is not in the file that is being read.
type current struct {
	ks    *Keyspace
	p     *partition
	found map[*table]*handles // by handle: the entries whose sets have been found
	owed  bool                // some of what is marked as stored is not: a checkpoint has failed

	list []placed
	warm Prefetcher
}

// placed is an id in the table that it would be in.
type placed struct {
	t  *table // nil: it is in none
	id string
}

func newCurrent(ks *Keyspace, p *partition) *current {
	return &current{ks: ks, p: p, found: make(map[*table]*handles), owed: ks.fold.captured != nil}
}

func (c *current) find(sets []sighting) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if err := c.look(sets); err != nil {
		return err
	}
	for i, at := range c.list {
		if at.t == nil {
			continue
		}
		h, e := at.t.locate(at.id)
		sets[i].present = e != nil && at.t.holds(e, sets[i].rec) && c.first(at.t, h)
	}
	return nil
}

// look fills the list, and fetches what looking the ids up will read.
func (c *current) look(sets []sighting) error {
	c.list = c.list[:0]
	var t *table
	for _, s := range sets {
		number, id, err := record.SplitKey(record.View(s.key))
		if err != nil {
			return fmt.Errorf("%s: %q: %w", c.p.store.path(), s.key, err)
		}
		if t == nil || t.number != number {
			t = c.p.tables[number]
		}
		c.list = append(c.list, placed{t, id})
		if t != nil && t.index.n > 0 {
			c.warm.list = append(c.warm.list, sought{t: t, hash: hashOf(id)})
		}
	}
	c.warm.walk(cacheLine)
	c.warm.list = c.warm.list[:0]
	return nil
}

// first notes that the set of an entry has been found, and tells whether it is the first: a crash between the
// end of a checkpoint and that of its journals has the next write the same once more.
func (c *current) first(t *table, h handle) bool {
	b := c.found[t]
	if b == nil {
		b = new(handles)
		c.found[t] = b
	}
	return b.add(h)
}

func (c *current) settled() error {
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.ks.journal.commitAll(); err != nil {
		return err
	}
	return c.ks.journal.sync()
}

// complete makes sure that the file has had all that memory says it has.
func (c *current) complete() error {
	if c.owed {
		return nil
	}
	c.p.mu.Lock()
	tables := slices.Collect(maps.Values(c.p.tables))
	c.p.mu.Unlock()
	for _, t := range tables {
		for chunk, more := 0, true; more; {
			var missing string
			c.p.mu.Lock()
			if missing, chunk = t.missing(c.found[t], chunk); missing != "" {
				missing = strings.Clone(missing)
			}
			more = chunk < len(t.slab.chunks) && !t.gone
			c.p.mu.Unlock()
			if missing != "" {
				return fmt.Errorf("%s lacks %q, which has been stored in it", c.p.store.path(), missing)
			}
		}
	}
	return nil
}

// missing gives the key of an item that the store has, but which has not been found, empty for none; and the
// chunk with which to go on: it looks at some.
func (t *table) missing(found *handles, from int) (key string, next int) {
	const most = 8
	if t.gone {
		return "", from
	}
	for next = from; next < len(t.slab.chunks) && next < from+most; next++ {
		entries := t.slab.chunks[next].entries
		for slot := range entries {
			e := &entries[slot]
			if e.has(present) && e.has(stored) && !e.has(dirty) && !found.has(handle(next)<<slotBits|handle(slot)) {
				return t.key(e), next
			}
		}
	}
	return "", next
}

// handles is a set of handles. Nil is an empty one.
type handles []uint64

func (b *handles) has(h handle) bool {
	at := int(h >> 6)
	return b != nil && at < len(*b) && (*b)[at]>>(h&63)&1 == 1
}

// add adds a handle, and tells whether it is new.
func (b *handles) add(h handle) bool {
	if b.has(h) {
		return false
	}
	if at := int(h >> 6); at >= len(*b) {
		*b = append(*b, make([]uint64, at+1-len(*b))...)
	}
	(*b)[h>>6] |= 1 << (h & 63)
	return true
}
