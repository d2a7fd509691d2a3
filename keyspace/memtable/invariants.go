//go:build invariants || race

package memtable

import (
	"fmt"
	"math"
	"slices"

	"mayfly/keyspace/record"
)

// Check verifies the invariants of a shard and its attached tables and returns the first violation. It takes
// time in proportion to the data.
func (s *Shard) Check() error {
	memory, live, garbage := int64(0), int64(0), int64(0)
	for _, t := range s.Tables() {
		number := t.number
		memory += t.memory + TableOverhead
		live += t.live
		garbage += t.arena.dead
		if t.shard != s || t.detached || s.tables[number] != t && s.pages[number] != t {
			return fmt.Errorf("the table of container %d is not where it is attached", number)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("table of container %d: %w", number, err)
		}
	}
	if counted := s.memory.Load(); memory != counted {
		return fmt.Errorf("the tables take %d bytes of memory, counted are %d", memory, counted)
	}
	if live != s.live {
		return fmt.Errorf("the tables take %d bytes in a store, counted are %d", live, s.live)
	}
	if counted := s.garbage.Load(); garbage != counted {
		return fmt.Errorf("the tables have %d bytes of garbage, counted are %d", garbage, counted)
	}
	for _, t := range slices.Concat(s.dirty, s.captured) {
		if !t.listed && t.captured == nil {
			return fmt.Errorf("the table of container %d is in the dirty list without its mark", t.number)
		}
	}
	return nil
}

func (t *Table) check() error {
	capped, living, plains, bytes, live, texts, lastSeq := 0, 0, 0, int64(0), int64(0), int64(0), uint64(0)
	memory := t.extra
	listed := make(map[Handle]bool) // as dirty
	for _, h := range slices.Concat(t.dirty, t.captured) {
		listed[h] = true
	}
	known := slices.Contains(t.shard.dirty, t)
	captured := slices.Contains(t.shard.captured, t)
	if len(t.dirty) > 0 && !(t.listed && (known || captured)) || len(t.captured) > 0 && !captured {
		return fmt.Errorf("it has dirty items, but is in no list of dirty tables")
	}
	for i := range t.order.slots.n {
		h, seq := t.order.at(i)
		if h == 0 {
			continue
		}
		if seq <= lastSeq || seq >= t.order.next {
			return fmt.Errorf("insertion order: slot %d is out of order", i)
		}
		lastSeq = seq
		living++
		e := t.slab.at(h)
		id := t.ID(e)
		bytes += t.size(e)
		memory += e.Memory()
		key, rec, large := t.KeyAndRecord(e)
		if (large != "") != e.split() {
			return fmt.Errorf("%q has a body of %d bytes apart", id, len(large))
		}
		if large != "" {
			at := t.tailOf(e)
			if at.sum != record.Sum(0, large) || at.base > e.version || t.arena.segments[at.segment].refs != 1 {
				return fmt.Errorf("%q has the tail %+v", id, at)
			}
			texts += tailSize
		}
		rec += large
		live += t.shard.SetSize(len(key), len(rec))
		if e.has(plain) {
			plains++
		}
		if e.capped() {
			capped++
		}
		switch {
		case t.Find(id) != e:
			return fmt.Errorf("%q is in the insertion order but not in the index", id)
		case int(e.pos) != i:
			return fmt.Errorf("%q has position %d, is at %d", id, e.pos, i)
		case !e.has(present):
			return fmt.Errorf("%q is in the table and not marked present", id)
		case !e.has(dirty) && !e.has(stored):
			return fmt.Errorf("%q is neither stored nor dirty", id)
		case e.has(dirty) && !listed[h]:
			return fmt.Errorf("%q is marked dirty but not listed", id)
		}
		texts += allocHeader + int64(len(key)+len(rec))
		it, body, err := record.Decode(key, rec)
		if err != nil {
			return fmt.Errorf("%q: %w", id, err)
		}
		if e.Collection() { // see Refresh
			it.TS, it.Version = e.ts, e.version
		}
		if it != t.Item(e) || body != e.header() || e.has(plain) != it.Kind.IsKey() {
			return fmt.Errorf("%q differs from its record", id)
		}
		if err := t.checkQueuePos(e, h); err != nil {
			return fmt.Errorf("%q: %w", id, err)
		}
	}
	for _, q := range []*expiryQueue{&t.byDefault, &t.byOwnTTL} {
		if err := q.check(&t.slab); err != nil {
			return err
		}
	}
	if err := t.arena.check(&t.slab); err != nil {
		return err
	}
	if err := t.checkChains(); err != nil {
		return err
	}
	switch {
	case texts != t.arena.used-t.arena.dead:
		return fmt.Errorf("the items take %d bytes of the arena, %d are live", texts, t.arena.used-t.arena.dead)
	case t.arena.wasteful() && !t.unclean:
		return fmt.Errorf("the arena is wasteful and not in the list to clean")
	case living != t.Len():
		return fmt.Errorf("%d items in the insertion order, %d in the index", living, t.Len())
	case living != t.slab.used():
		return fmt.Errorf("%d items in the insertion order, %d in the slab", living, t.slab.used())
	case plains != t.plain:
		return fmt.Errorf("%d plain keys, counted are %d", plains, t.plain)
	case capped != t.capped:
		return fmt.Errorf("%d items with a cap, counted are %d", capped, t.capped)
	case bytes != t.bytes:
		return fmt.Errorf("items have %d bytes, counted are %d", bytes, t.bytes)
	case memory != t.memory:
		return fmt.Errorf("items and what is kept besides take %d bytes of memory, counted are %d", memory, t.memory)
	case live != t.live:
		return fmt.Errorf("items take %d bytes in a store, counted are %d", live, t.live)
	}
	return nil
}

// ExtraMemory returns the sum of [Table.AddMemory].
func (t *Table) ExtraMemory() int64 { return t.extra }

func (a *arena) check(entries *slab) (err error) {
	used, dead := int64(0), int64(0)
	for i := range a.segments {
		s := &a.segments[i]
		if s.refs > 0 {
			used += int64(len(s.data))
			continue
		}
		living := 0
		eachLive(s.data, 0, len(s.data), func(at uint32, h Handle, live []byte) {
			living += allocHeader + len(live)
			if e := entries.atStale(h); e == nil || e.data != (ref{uint32(i), at}) || e.allocated() != len(live) {
				err = fmt.Errorf("the allocation at %d of segment %d is live, but its entry does not refer to it", at, i)
			}
		})
		if living+int(s.dead) != len(s.data) {
			return fmt.Errorf("segment %d has %d bytes, %d of them live and %d dead", i, len(s.data), living, s.dead)
		}
		used += int64(len(s.data))
		dead += int64(s.dead)
	}
	if used != a.used || dead != a.dead {
		return fmt.Errorf("an arena has %d bytes, %d of them dead, counted are %d and %d", used, dead, a.used, a.dead)
	}
	return err
}

// used returns the number of entries in use.
func (s *slab) used() (n int) {
	for _, b := range s.blocks {
		n += int(b.used)
	}
	return n
}

func (t *Table) checkQueuePos(e *Entry, h Handle) error {
	byDefault, byOwnTTL := queues(e.expireAt)
	if !byDefault && !byOwnTTL && e.queuePos != notQueued {
		return fmt.Errorf("queue position %d with the end %d", e.queuePos, e.expireAt)
	}
	for q, in := range map[*expiryQueue]bool{&t.byDefault: byDefault, &t.byOwnTTL: byOwnTTL} {
		if !in {
			continue
		}
		pos := q.place(&t.slab, h, e)
		if number, at := pos>>bucketBits, int(pos&(bucketSize-1)); int(number) >= len(q.buckets) ||
			at >= len(q.buckets[number].items) || q.buckets[number].items[at] != h {
			return fmt.Errorf("not at its queue position %d", pos)
		}
	}
	return nil
}

func (q *expiryQueue) check(s *slab) error {
	n := 0
	for i, span := range q.order {
		b := &q.buckets[span.bucket]
		n += len(b.items)
		switch {
		case b.from != span.from:
			return fmt.Errorf("bucket %d begins at %d, its span at %d", i, b.from, span.from)
		case len(b.items) == 0 || len(b.items) > bucketSize:
			return fmt.Errorf("bucket %d has %d items", i, len(b.items))
		case b.waiting < b.earliest:
			return fmt.Errorf("bucket %d waits from %d, its first item dies at %d", i, b.waiting, b.earliest)
		case i+1 < len(q.order) && q.order[i+1].from < max(b.from, b.earliest):
			return fmt.Errorf("bucket %d begins at %d, its first item dies at %d, and the next bucket begins at %d",
				i, b.from, b.earliest, q.order[i+1].from)
		}
		last := int64(math.MinInt64)
		for at, h := range b.items {
			e := s.at(h)
			if moment := q.moment(e); q.isOrdered(span.bucket) && (moment < last || i+1 < len(q.order) && moment > q.order[i+1].from) {
				return fmt.Errorf("ordered bucket %d has an item at %d behind one at %d", i, moment, last)
			} else {
				last = moment
			}
			if moment := q.moment(e); moment < b.from || moment < b.earliest {
				return fmt.Errorf("bucket %d begins at %d, nothing in it is before %d, but an item is at %d", i, b.from, b.earliest, moment)
			}
			if pos := q.place(s, h, e); pos != queuePos(span.bucket, at) {
				return fmt.Errorf("bucket %d has an item of queue position %d at %d", i, pos, at)
			}
		}
	}
	switch {
	case n != q.n:
		return fmt.Errorf("%d items in buckets, counted are %d", n, q.n)
	case len(q.buckets) != len(q.order)+len(q.vacant):
		return fmt.Errorf("%d buckets, %d in use and %d vacant", len(q.buckets), len(q.order), len(q.vacant))
	}
	return nil
}

// checkChains verifies the chains of a log: each entry is in that of its item, newest first.
func (t *Table) checkChains() error {
	entries, items := 0, 0
	for b := range t.chains.buckets.n {
		for head := *t.chains.buckets.at(b); head != 0; head = t.slab.link(head).newer &^ newest {
			items++
			item := t.itemOf(head)
			if t.chains.bucket(t.seed.hash(item)) != t.chains.buckets.at(b) || t.slab.link(head).newer&newest == 0 {
				return fmt.Errorf("the newest entry of %q is in another chain", item)
			}
			for h, newer := head, Handle(0); h != 0; h, newer = t.slab.link(h).older, h {
				entries++
				e := t.slab.at(h)
				if !e.has(present) || t.itemOf(h) != item || newer != 0 && (t.slab.link(h).newer != newer || t.ID(t.slab.at(newer)) <= t.ID(e)) {
					return fmt.Errorf("entry %q is in the wrong place of the chain of %q", t.ID(e), item)
				}
			}
		}
	}
	if want := t.byDefault.n; t.log && entries != want || !t.log && items > 0 || items != t.chains.n {
		return fmt.Errorf("%d entries of %d items are in chains, of %d and %d", entries, items, want, t.chains.n)
	}
	return nil
}
