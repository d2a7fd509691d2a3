package keyspace

import (
	"fmt"
	"slices"

	"mayfly/keyspace/record"
)

// Check verifies the invariants of the whole keyspace and returns the first violation. It locks
// everything and takes time in proportion to the data: it is for tests.
func (ks *Keyspace) Check() error {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	names := make(map[uint32]string)
	memory, tables := int64(0), 0
	for name, c := range ks.catalogue.byName {
		if other, taken := names[c.number]; taken {
			return fmt.Errorf("containers %q and %q share number %d", name, other, c.number)
		}
		names[c.number] = name
		if name != c.name || c.number >= ks.catalogue.next {
			return fmt.Errorf("container %q is listed as %q with number %d, the next is %d", c.name, name, c.number, ks.catalogue.next)
		}
		memory += c.memory()
		for i, t := range c.tables {
			if t == nil {
				continue
			}
			tables++
			if o := t.pool; o.c != c || o.p != ks.partitions[i] || ks.poolList.list[o.place] != o {
				return fmt.Errorf("container %q, partition %d: the purge knows the table as another", name, i)
			}
			if err := t.check(ks, ks.partitions[i], c); err != nil {
				return fmt.Errorf("container %q, partition %d: %w", name, i, err)
			}
		}
	}
	if used := ks.catalogue.memory.Load(); memory != used || tables != len(ks.poolList.list) {
		return fmt.Errorf("containers take %d bytes and have %d tables, %d and %d are known of", memory, tables, used, len(ks.poolList.list))
	}
	for i, p := range ks.partitions {
		memory, live, garbage, tables := int64(0), int64(0), int64(0), 0
		for _, c := range ks.catalogue.byName {
			if t := c.tables[i]; t != nil {
				memory += t.memory + tableOverhead
				live += t.live
				garbage += t.arena.dead
				if tables++; p.tables[t.number] != t {
					return fmt.Errorf("partition %d does not know the table of container %d", i, t.number)
				}
			}
		}
		if used := p.used.Load(); memory != used {
			return fmt.Errorf("partition %d counts %d bytes of memory, its tables have %d", i, used, memory)
		}
		if tables != len(p.tables) {
			return fmt.Errorf("partition %d has %d tables, %d are known", i, tables, len(p.tables))
		}
		if live != p.live {
			return fmt.Errorf("partition %d counts %d bytes in its store, its tables have %d", i, p.live, live)
		}
		if counted := p.garbage.Load(); garbage != counted {
			return fmt.Errorf("partition %d counts %d bytes of garbage, its tables have %d", i, counted, garbage)
		}
		for _, t := range slices.Concat(p.dirty, p.taken) {
			if !t.listed && t.taken == nil {
				return fmt.Errorf("partition %d: the table of container %d is in the dirty list without its mark", p.number, t.number)
			}
		}
	}
	return nil
}

func (t *table) check(ks *Keyspace, p *partition, c *Container) error {
	if t.number != c.number {
		return fmt.Errorf("table has number %d, container %d", t.number, c.number)
	}
	living, plains, bytes, live, texts, seq := 0, 0, int64(0), int64(0), int64(0), uint64(0)
	waiting := make(map[handle]bool) // to be stored
	for _, h := range slices.Concat(t.dirty, t.taken) {
		waiting[h] = true
	}
	known := slices.Contains(p.dirty, t)
	taken := slices.Contains(p.taken, t)
	if len(t.dirty) > 0 && !(t.listed && (known || taken)) || len(t.taken) > 0 && !taken {
		return fmt.Errorf("table has dirty items, but the partition does not know")
	}
	for i := range t.roster.berths.n {
		h, s := t.roster.at(i)
		if h == 0 {
			continue
		}
		if s <= seq || s >= t.roster.next {
			return fmt.Errorf("roster is out of order at berth %d", i)
		}
		seq = s
		living++
		e := t.slab.at(h)
		bytes += t.size(e)
		live += commandSize(len(t.key(e)), len(t.rec(e)))
		if e.has(plain) {
			plains++
		}
		id := t.id(e)
		switch {
		case t.find(id) != e:
			return fmt.Errorf("%q is in the roster but not in the index", id)
		case int(e.place) != i:
			return fmt.Errorf("%q has place %d, stands at %d", id, e.place, i)
		case !e.has(present):
			return fmt.Errorf("%q is in the table though it is gone", id)
		case !e.has(dirty) && !e.has(stored):
			return fmt.Errorf("%q is neither stored nor waiting to be", id)
		case e.has(dirty) && !waiting[h]:
			return fmt.Errorf("%q is marked dirty but not on the list", id)
		case ks.partitionOf(id) != p:
			return fmt.Errorf("%q belongs to another partition", id)
		case e.version > p.version:
			return fmt.Errorf("%q has a version from the future", id)
		}
		texts += textHeader + int64(len(t.text(e)))
		it, head, err := record.Decode(t.key(e), t.rec(e))
		if err != nil {
			return fmt.Errorf("%q: %w", id, err)
		}
		if it != t.item(e) || head != int(e.head) || e.has(plain) != (it.Kind == Plain) {
			return fmt.Errorf("%q differs from its record", id)
		}
		if err := t.checkRank(e, h); err != nil {
			return fmt.Errorf("%q: %w", id, err)
		}
	}
	for _, c := range []*class{&t.heirs, &t.mortals} {
		if err := c.check(&t.slab); err != nil {
			return err
		}
	}
	if err := t.arena.check(&t.slab); err != nil {
		return err
	}
	switch {
	case texts != t.arena.used-t.arena.dead:
		return fmt.Errorf("items have texts of %d bytes, in the arena live %d", texts, t.arena.used-t.arena.dead)
	case t.arena.wasteful() && !t.untidy:
		return fmt.Errorf("the arena is wasteful, and nobody is to clean it")
	case living != t.count():
		return fmt.Errorf("%d items in the roster, %d in the index", living, t.count())
	case living != t.slab.used():
		return fmt.Errorf("%d items in the roster, %d in the slab", living, t.slab.used())
	case plains != t.plain:
		return fmt.Errorf("%d plain keys, counted are %d", plains, t.plain)
	case bytes != t.bytes:
		return fmt.Errorf("items have %d bytes, counted are %d", bytes, t.bytes)
	case live != t.live:
		return fmt.Errorf("items take %d bytes in a store, counted are %d", live, t.live)
	}
	return nil
}

// check tells what is wrong with an arena.
func (a *arena) check(entries *slab) (err error) {
	used, dead := int64(0), int64(0)
	for i := range a.segments {
		s := &a.segments[i]
		lives := 0
		eachText(s.data, 0, len(s.data), func(at uint32, h handle, text string) {
			lives += textHeader + len(text)
			if e := entries.stale(h); e == nil || e.text != (ref{uint32(i), at}) || e.keyLen()+int(e.recSize) != len(text) {
				err = fmt.Errorf("a text lives at %d of segment %d, but not for the entry that it names", at, i)
			}
		})
		if lives+int(s.dead) != len(s.data) {
			return fmt.Errorf("segment %d has %d bytes, %d of them living and %d dead", i, len(s.data), lives, s.dead)
		}
		used += int64(len(s.data))
		dead += int64(s.dead)
	}
	if used != a.used || dead != a.dead {
		return fmt.Errorf("an arena has %d bytes, %d of them dead, counted are %d and %d", used, dead, a.used, a.dead)
	}
	return err
}

// used is the number of entries that are taken.
func (s *slab) used() (n int) {
	for _, c := range s.chunks {
		n += int(c.used)
	}
	return n
}

func (t *table) checkRank(e *entry, h handle) error {
	c := t.classOf(e)
	if c == nil {
		if e.rank != noRank {
			return fmt.Errorf("rank %d of own end %d", e.rank, e.own)
		}
		return nil
	}
	if number, at := e.rank>>bucketBits, int(e.rank&(bucketSize-1)); int(number) >= len(c.buckets) ||
		at >= len(c.buckets[number].items) || c.buckets[number].items[at] != h {
		return fmt.Errorf("not at its rank %d", e.rank)
	}
	return nil
}

func (c *class) check(s *slab) error {
	n := 0
	for i, span := range c.order {
		b := &c.buckets[span.bucket]
		n += len(b.items)
		switch {
		case b.from != span.from:
			return fmt.Errorf("bucket %d begins at %d, its span at %d", i, b.from, span.from)
		case len(b.items) == 0 || len(b.items) > bucketSize:
			return fmt.Errorf("bucket %d has %d items", i, len(b.items))
		case i+1 < len(c.order) && c.order[i+1].from < max(b.from, b.earliest):
			return fmt.Errorf("bucket %d begins at %d, its first item dies at %d, and the next bucket begins at %d",
				i, b.from, b.earliest, c.order[i+1].from)
		}
		for at, h := range b.items {
			e := s.at(h)
			if when := e.when(); when < b.from || when < b.earliest {
				return fmt.Errorf("bucket %d begins at %d and has nothing before %d, but there is %d", i, b.from, b.earliest, when)
			}
			if e.rank != rank(span.bucket, at) {
				return fmt.Errorf("bucket %d has an item of rank %d at %d", i, e.rank, at)
			}
		}
	}
	switch {
	case n != c.n:
		return fmt.Errorf("%d items in buckets, counted are %d", n, c.n)
	case len(c.buckets) != len(c.order)+len(c.vacant):
		return fmt.Errorf("%d buckets, %d in use and %d vacant", len(c.buckets), len(c.order), len(c.vacant))
	}
	return nil
}
