package memtable

import (
	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// chains finds the entries of a log of deaths by the item that died: a hash table of the newest entry of each
// item, from which the others follow, newest first. It grows as index does. The items of the state, which
// never expire, are not in it.
type chains struct {
	buckets chunkedSlice[Handle]
	mask    uint32 // the least 2^k-1 that covers the number of the last bucket
	n       int    // items
}

// link has the neighbours of an entry in its chain. The newest has no newer neighbour, but the newest entry
// of the next item in its bucket, with the bit newest set.
type link struct{ older, newer Handle }

const (
	newest      = Handle(1 << 31)
	chainLoad   = 2                   // items a bucket
	chainMemory = 8 + 4/chainLoad + 2 // bytes an entry, an estimate
)

// links has a link beside each entry of a log.
type links [][]link // by block

// link returns the link of an entry, and makes room for those of its block.
func (s *slab) link(h Handle) *link {
	block := int(h >> entryBits)
	for len(s.links) <= block {
		s.links = append(s.links, nil)
	}
	if s.links[block] == nil {
		s.links[block] = make([]link, cap(s.blocks[block].entries))
	}
	return &s.links[block][h&(1<<entryBits-1)]
}

// itemOf returns the id of the item that died.
func (t *Table) itemOf(h Handle) string { return t.ID(t.slab.at(h))[record.EntryIDLength+1:] }

// bucket returns the head of the bucket for a hash. There must be buckets.
func (c *chains) bucket(hash uint32) *Handle {
	b := int(hash & c.mask)
	if b >= c.buckets.n {
		b = int(hash & (c.mask >> 1))
	}
	return c.buckets.at(b)
}

// findChain returns the newest entry of an item, 0 if there is none, and that of the item before it in the
// bucket.
func (t *Table) findChain(item string, hash uint32) (h, before Handle) {
	if t.chains.n == 0 {
		return 0, 0
	}
	for h = *t.chains.bucket(hash); h != 0 && t.itemOf(h) != item; {
		before, h = h, t.slab.link(h).newer&^newest
	}
	return h, before
}

// follow makes an entry the newest of its item in the place behind that of another item, 0 for the first in
// the bucket.
func (t *Table) follow(before, h Handle, hash uint32) {
	if before == 0 {
		*t.chains.bucket(hash) = h
	} else {
		t.slab.link(before).newer = h | newest
	}
}

// chain adds an entry to the chain of its item. Mostly it is the newest.
func (t *Table) chain(h Handle, e *Entry) {
	if e.expireAt == expiry.Never {
		return
	}
	t.AddMemory(chainMemory)
	for t.chains.buckets.n < minBuckets {
		t.chains.buckets.push(0)
		t.chains.mask = minBuckets - 1
	}
	id, item := t.ID(e), t.itemOf(h)
	hash := t.seed.hash(item)
	head, before := t.findChain(item, hash)
	l := t.slab.link(h)
	switch {
	case head == 0:
		first := t.chains.bucket(hash)
		*l = link{newer: *first | newest}
		*first = h
		t.chains.n++
		for t.chains.n > t.chains.buckets.n*chainLoad {
			t.splitChains()
		}
	case t.ID(t.slab.at(head)) < id:
		*l = link{older: head, newer: t.slab.link(head).newer}
		t.slab.link(head).newer = h
		t.follow(before, h, hash)
	default: // a rollback has brought it back, or the file has another order
		at := head
		for next := t.slab.link(at).older; next != 0 && t.ID(t.slab.at(next)) > id; next = t.slab.link(at).older {
			at = next
		}
		after := t.slab.link(at)
		*l = link{older: after.older, newer: at}
		if after.older != 0 {
			t.slab.link(after.older).newer = h
		}
		after.older = h
	}
}

// unchain removes an entry from the chain of its item.
func (t *Table) unchain(h Handle, e *Entry) {
	if e.expireAt == expiry.Never {
		return
	}
	t.AddMemory(-chainMemory)
	l := *t.slab.link(h)
	*t.slab.link(h) = link{}
	if l.newer&newest == 0 {
		t.slab.link(l.newer).older = l.older
		if l.older != 0 {
			t.slab.link(l.older).newer = l.newer
		}
		return
	}
	item := t.itemOf(h)
	hash := t.seed.hash(item)
	before := Handle(0)
	for at := *t.chains.bucket(hash); at != h; at = t.slab.link(at).newer &^ newest {
		before = at
	}
	if l.older != 0 {
		t.slab.link(l.older).newer = l.newer
		t.follow(before, l.older, hash)
		return
	}
	t.follow(before, l.newer&^newest, hash)
	t.chains.n--
	for range 2 {
		if t.chains.n < t.chains.buckets.n/4 && t.chains.buckets.n > minBuckets {
			t.mergeChains()
		}
	}
}

// splitChains adds a bucket and moves the items that belong there.
func (t *Table) splitChains() {
	c := &t.chains
	number := uint32(c.buckets.n)
	if number > c.mask {
		c.mask = c.mask<<1 | 1
	}
	c.buckets.push(0)
	from := *c.buckets.at(int(number & (c.mask >> 1)))
	stay, moved := Handle(0), Handle(0)
	for h := from; h != 0; {
		l := t.slab.link(h)
		next := l.newer &^ newest
		if t.seed.hash(t.itemOf(h))&c.mask == number {
			l.newer, moved = moved|newest, h
		} else {
			l.newer, stay = stay|newest, h
		}
		h = next
	}
	*c.buckets.at(int(number & (c.mask >> 1))), *c.buckets.at(int(number)) = stay, moved
}

// mergeChains undoes the last split.
func (t *Table) mergeChains() {
	c := &t.chains
	number := uint32(c.buckets.n - 1)
	into := c.buckets.at(int(number & (c.mask >> 1)))
	for h := *c.buckets.at(int(number)); h != 0; {
		l := t.slab.link(h)
		next := l.newer &^ newest
		l.newer, *into = *into|newest, h
		h = next
	}
	c.buckets.truncate(int(number))
	if number == c.mask>>1+1 {
		c.mask >>= 1
	}
}

// Deaths visits the entries of an item in a log, the newest first, until visit returns false.
func (t *Table) Deaths(item string, visit func(e *Entry) (more bool)) {
	h, _ := t.findChain(item, t.seed.hash(item))
	for h != 0 && visit(t.slab.at(h)) {
		h = t.slab.link(h).older
	}
}
