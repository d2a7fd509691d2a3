package keyspace

import (
	"math"
	"sync/atomic"
	"unsafe"

	"mayfly/expiry"
)

// entry is one item in memory. It is protected by its partition's lock; what key and rec point to
// is immutable and shared with the store behind the partition.
//
// There are many: fields are as small as they can be, and what the record's text tells as fast is not
// repeated here.
type entry struct {
	keyStart *byte // as in the store: container number, colon, id
	recStart *byte // the record as on disk; the body begins at head
	ts       int64
	own      int64
	version  uint64
	ticket   Ticket // the batch of its last write
	recSize  uint32
	hash     uint32 // of the id
	next     handle // in the chain of its bucket
	place    uint32 // in the roster
	rank     int32  // index in the list of its class; noRank if it has none
	keySize  uint16 // of its lower 16 bits; see longKey
	head     uint8
	flags    flags
}

// flags of an entry.
type flags uint8

const (
	longKey  flags = 1 << iota // the key has 64 KiB more than keySize says
	plain                      // it is a plain key
	dirty                      // stands in the table's list of what the store has to learn
	stored                     // the store has, or is being given, an item of this key
	present                    // it is in the table
	changing                   // the transaction that holds the partition's lock has it among its changes
)

const noRank = -1

func (e *entry) has(f flags) bool { return e.flags&f != 0 }

func (e *entry) mark(f flags)   { e.flags |= f }
func (e *entry) unmark(f flags) { e.flags &^= f }

func (e *entry) keyLen() int {
	return int(e.keySize) + int(e.flags&longKey)<<16
}

func (e *entry) key() string { return unsafe.String(e.keyStart, e.keyLen()) }
func (e *entry) rec() string { return unsafe.String(e.recStart, int(e.recSize)) }

func (e *entry) item() Item {
	rec := e.rec()
	return Item{Kind: Kind(rec[recordKindAt]), Body: rec[e.head:], TS: e.ts, Own: e.own, Version: e.version}
}

// table holds the items of one container in one partition. All under the partition's lock.
//
//   - slab is where the entries are; what follows refers to them by handles.
//   - index finds an item by its id.
//   - roster lists the items in the order of their creation; it gives SCAN its stable cursor.
//     When holes are the majority it is compacted.
//   - heirs and mortals list the items that inherit the container's default and those with an end
//     of their own, in no order: O(1) draws for the purge and a fast pass for exact counts.
//     Items that never die are in neither.
type table struct {
	pool    *pool  // what the purge knows it as
	number  uint32 // of the container
	prefix  int    // length of the container's part of a key
	slab    slab
	index   index
	roster  roster
	heirs   class
	mortals class
	spread  expiry.Spread // where the purge draws next, over heirs and mortals together
	bytes   int64         // of ids and bodies
	memory  int64         // bytes that the items take, an estimate; also in used
	used    *atomic.Int64 // the same of the whole partition
	plain   int           // how many are plain keys

	// dirty has the entries that are marked dirty, in no order, and handles whose entries have
	// been removed since: these may name others by now, marked or not. See partition.capture.
	dirty  []handle
	listed bool // the partition's list of tables that are dirty has it
}

// class is a list of items that die by the same clause of the rules.
type class struct {
	list pile[candidate]
	// earliest is a lower bound of when: nothing can be dead as long as it is not reached.
	earliest int64
}

// candidate is an item that could die. When that is to be counted from, its last write (heirs) or its
// own end (mortals), is repeated here in units of candidateUnit, rounded down, so that a pass over the
// list reads memory in order and mostly needs to look at no entry.
type candidate struct {
	from uint32
	h    handle
}

const candidateUnit = 1024 // ms; 32 bits of it reach beyond the year 2100

func newCandidate(when int64, h handle) candidate {
	return candidate{uint32(min(max(when, 0)/candidateUnit, math.MaxUint32)), h}
}

// bound is not later than when.
func (c candidate) bound() int64 { return int64(c.from) * candidateUnit }

func newTable(number uint32, p *partition) *table {
	return &table{
		number:  number,
		used:    &p.used,
		prefix:  len(appendKey(nil, number, "")),
		roster:  roster{next: 1},
		heirs:   class{earliest: math.MaxInt64},
		mortals: class{earliest: math.MaxInt64},
	}
}

// count is how many items there are.
func (t *table) count() int { return t.index.n }

func (t *table) id(e *entry) string { return e.key()[t.prefix:] }

func (t *table) size(e *entry) int64 {
	return int64(e.keyLen() - t.prefix + int(e.recSize) - int(e.head))
}

// itemOverhead is what an item takes in memory besides its key and record: the entry, its places in
// the index, the lists and the store's tree, and what allocation rounds up. BenchmarkMemory tells.
const itemOverhead = 208

// memory is what an entry of a table takes in memory, in bytes.
func (e *entry) memory() int64 { return int64(e.keyLen()) + int64(e.recSize) + itemOverhead }

// account counts an entry that comes (times 1) or goes (-1).
func (t *table) account(e *entry, times int) {
	t.bytes += int64(times) * t.size(e)
	t.memory += int64(times) * e.memory()
	if e.has(plain) {
		t.plain += times
	}
}

// find gives the entry of an id, nil if there is none. Valid until it is released.
func (t *table) find(id string) *entry {
	if t.index.n == 0 {
		return nil
	}
	hash := hashOf(id)
	for h := *t.index.bucket(hash); h != 0; {
		e := t.slab.at(h)
		if e.hash == hash && t.id(e) == id {
			return e
		}
		h = e.next
	}
	return nil
}

// insert adds an item whose id is not in the table (key, rec and what is read from it).
func (t *table) insert(key, rec string, it Item) *entry {
	h, e := t.slab.take()
	e.set(key, rec, it)
	e.mark(present)
	e.hash = hashOf(t.id(e))
	t.index.insert(&t.slab, h, e)
	e.place = t.roster.push(h)
	t.account(e, 1)
	t.used.Add(e.memory())
	t.enlist(e, h)
	return e
}

// replace gives an entry of the table a new record (key, rec and what is read from it). The key is of
// the same text; the old one would keep the memory of the old record alive.
func (t *table) replace(e *entry, key, rec string, it Item) {
	before, was := t.memory, t.classOf(e)
	t.account(e, -1)
	h := t.handle(e)
	if is := t.classBy(it.Own); is != was {
		t.discharge(e)
		e.set(key, rec, it)
		t.enlist(e, h)
	} else if e.set(key, rec, it); is != nil {
		when := e.when()
		*is.list.at(int(e.rank)) = newCandidate(when, h)
		is.earliest = min(is.earliest, when)
	}
	t.account(e, 1)
	t.used.Add(t.memory - before)
}

// handle gives the handle of an entry of the table.
func (t *table) handle(e *entry) handle {
	h, _ := t.roster.at(int(e.place))
	return h
}

func (e *entry) set(key, rec string, it Item) {
	e.keyStart, e.keySize = unsafe.StringData(key), uint16(len(key))
	e.recStart, e.recSize = unsafe.StringData(rec), uint32(len(rec))
	e.head = uint8(len(rec) - len(it.Body))
	e.ts, e.own, e.version = it.TS, it.Own, it.Version
	e.unmark(longKey | plain)
	if len(key) > math.MaxUint16 {
		e.mark(longKey)
	}
	if it.Kind == Plain {
		e.mark(plain)
	}
}

// remove takes an entry out of the table. It is valid until it is given to forget, which must follow.
func (t *table) remove(e *entry) {
	h := t.handle(e)
	t.index.remove(&t.slab, h, e)
	t.roster.leave(e.place)
	t.account(e, -1)
	t.used.Add(-e.memory())
	t.discharge(e)
	e.unmark(present)
	e.next = h // for forget: it is in no chain any more
	if t.roster.sparse() {
		t.roster.compact(func(h handle, place uint32) { t.slab.at(h).place = place })
	}
}

// classBy gives the class of items with such an own end, nil for those that never die.
func (t *table) classBy(own int64) *class {
	switch own {
	case expiry.Inherit:
		return &t.heirs
	case expiry.Never:
		return nil
	}
	return &t.mortals
}

func (t *table) classOf(e *entry) *class { return t.classBy(e.own) }

// when is what the time of an item's death is to be counted from: its last write or its own end.
func (e *entry) when() int64 {
	if e.own == expiry.Inherit {
		return e.ts
	}
	return e.own
}

func (t *table) enlist(e *entry, h handle) {
	c := t.classOf(e)
	if c == nil {
		e.rank = noRank
		return
	}
	when := e.when()
	e.rank = int32(c.list.n)
	c.list.push(newCandidate(when, h))
	c.earliest = min(c.earliest, when)
}

func (t *table) discharge(e *entry) {
	c := t.classOf(e)
	if c == nil {
		return
	}
	last := c.list.n - 1
	moved := *c.list.at(last)
	*c.list.at(int(e.rank)) = moved
	t.slab.at(moved.h).rank = e.rank
	c.list.cut(last)
}

// sweep removes all that is dead now, calling gone for each. If the bounds show that nothing can
// be dead it costs nothing; otherwise it passes once over each list and makes the bounds exact.
func (t *table) sweep(p *expiry.Policy, now int64, gone func(*entry)) {
	heirs, mortals := p.DeadTo(now)
	t.sweepClass(&t.heirs, heirs, gone)
	t.sweepClass(&t.mortals, mortals, gone)
}

func (t *table) sweepClass(c *class, limit int64, gone func(*entry)) {
	if c.earliest > limit {
		return
	}
	earliest := int64(math.MaxInt64)
	for i := 0; i < c.list.n; {
		candidate := *c.list.at(i)
		if bound := candidate.bound(); bound > limit && bound >= earliest {
			i++
			continue
		}
		e := t.slab.at(candidate.h)
		if when := e.when(); when > limit {
			earliest = min(earliest, when)
			i++
			continue
		}
		t.remove(e) // puts the last candidate in its place: look at i again
		gone(e)
	}
	c.earliest = earliest
}

// sample draws n candidates, spread over all that could be dead, and removes those that are,
// calling gone for each.
func (t *table) sample(p *expiry.Policy, now int64, n int, gone func(*entry)) (drawn, dead int) {
	heirs, mortals := p.DeadTo(now)
	numHeirs, numMortals := 0, 0
	if t.heirs.earliest <= heirs {
		numHeirs = t.heirs.list.n
	}
	if t.mortals.earliest <= mortals {
		numMortals = t.mortals.list.n
	}
	for ; drawn < n && numHeirs+numMortals > 0; drawn++ {
		list, at, left, limit := &t.heirs.list, t.spread.Next(numHeirs+numMortals), &numHeirs, heirs
		if at >= numHeirs {
			list, at, left, limit = &t.mortals.list, at-numHeirs, &numMortals, mortals
		}
		candidate := *list.at(at)
		if candidate.bound() > limit {
			continue
		}
		e := t.slab.at(candidate.h)
		if e.when() > limit {
			continue
		}
		t.remove(e)
		gone(e)
		*left--
		dead++
	}
	return drawn, dead
}

// dead tells whether an entry of the table is dead.
func (e *entry) dead(p *expiry.Policy, now int64) bool { return p.Dead(e.ts, e.own, now) }
