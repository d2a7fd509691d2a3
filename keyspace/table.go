package keyspace

import (
	"math"
	"sync/atomic"

	"mayfly/expiry"
)

// entry is one item in memory. It is protected by its partition's lock; the strings it points to
// are immutable and shared with the store behind the partition.
type entry struct {
	key     string // as in the store: container number, colon, id
	rec     string // the record as on disk; the body begins at head
	ts      int64
	own     int64
	version uint64
	ticket  Ticket // the batch of its last write
	place   int32  // index in the roster
	rank    int32  // index in the list of its class; noRank if it has none
	head    uint8
	kind    Kind
	dirty   bool // stands in the partition's list of what the store has to learn
	stored  bool // the store has, or is being given, an item of this key
	gone    bool // removed; only the partition's dirty list still points here
	// changing: the transaction that holds the partition's lock has it among its changes
	changing bool
}

const noRank = -1

func (e *entry) item() Item {
	return Item{Kind: e.kind, Body: e.rec[e.head:], TS: e.ts, Own: e.own, Version: e.version}
}

// table holds the items of one container in one partition. All under the partition's lock.
//
//   - index finds an item by its id.
//   - roster lists the items in the order of their creation; it gives SCAN its stable cursor.
//     A removed item leaves a hole; when holes are the majority the roster is compacted.
//   - heirs and mortals list the items that inherit the container's default and those with an end
//     of their own, in no order: O(1) draws for the purge and a fast pass for exact counts.
//     Items that never die are in neither.
type table struct {
	pool    *pool  // what the purge knows it as
	number  uint32 // of the container
	prefix  int    // length of the container's part of a key
	index   map[string]*entry
	roster  []berth
	nextSeq uint64 // of the roster; the first is 1
	heirs   class
	mortals class
	spread  expiry.Spread // where the purge draws next, over heirs and mortals together
	bytes   int64         // of ids and bodies
	memory  int64         // bytes that the items take, an estimate; also in used
	used    *atomic.Int64 // the same of the whole partition
	plain   int           // how many are plain keys
}

// berth is a place in the roster; e is nil in a hole.
type berth struct {
	seq uint64
	e   *entry
}

// class is a list of items that die by the same clause of the rules.
type class struct {
	list []candidate
	// earliest is a lower bound of when: nothing can be dead as long as it is not reached.
	earliest int64
}

// candidate is an item that could die; when is its last write (heirs) or its own end (mortals),
// repeated here so that a pass over the list reads memory in order.
type candidate struct {
	when int64
	e    *entry
}

func newTable(number uint32, p *partition) *table {
	return &table{
		number:  number,
		used:    &p.used,
		prefix:  len(appendKey(nil, number, "")),
		index:   make(map[string]*entry),
		nextSeq: 1,
		heirs:   class{earliest: math.MaxInt64},
		mortals: class{earliest: math.MaxInt64},
	}
}

func (t *table) id(e *entry) string { return e.key[t.prefix:] }

func (t *table) size(e *entry) int64 { return int64(len(e.key) - t.prefix + len(e.rec) - int(e.head)) }

// itemOverhead is what an item takes in memory besides its key and record: the entry, its places in
// the index, the lists and the store's tree, and what allocation rounds up. BenchmarkMemory tells.
const itemOverhead = 256

// memory is what an entry of a table takes in memory, in bytes.
func (e *entry) memory() int64 { return int64(len(e.key) + len(e.rec) + itemOverhead) }

// account counts an entry that comes (times 1) or goes (-1).
func (t *table) account(e *entry, times int) {
	t.bytes += int64(times) * t.size(e)
	memory := int64(times) * e.memory()
	t.memory += memory
	t.used.Add(memory)
	if e.kind == Plain {
		t.plain += times
	}
}

// insert adds an entry whose id is not in the table.
func (t *table) insert(e *entry) {
	t.index[t.id(e)] = e
	e.place = int32(len(t.roster))
	t.roster = append(t.roster, berth{t.nextSeq, e})
	t.nextSeq++
	t.account(e, 1)
	t.enlist(e)
}

// replace gives an entry of the table a new record (key, rec and what is read from it).
func (t *table) replace(e *entry, key, rec string, it Item) {
	t.account(e, -1)
	t.discharge(e)
	e.set(key, rec, it)
	// Assigning again makes the index refer to the new key; the old one would keep the memory of
	// the old record alive.
	t.index[t.id(e)] = e
	t.account(e, 1)
	t.enlist(e)
}

func (e *entry) set(key, rec string, it Item) {
	e.key, e.rec = key, rec
	e.head = uint8(len(rec) - len(it.Body))
	e.kind, e.ts, e.own, e.version = it.Kind, it.TS, it.Own, it.Version
}

// remove takes an entry out of the table.
func (t *table) remove(e *entry) {
	delete(t.index, t.id(e))
	t.roster[e.place].e = nil
	t.account(e, -1)
	t.discharge(e)
	if len(t.roster) > 64 && len(t.index) < len(t.roster)/2 {
		t.compact()
	}
}

// compact closes the holes of the roster. Amortised constant time per removal.
func (t *table) compact() {
	kept := t.roster[:0]
	for _, b := range t.roster {
		if b.e != nil {
			b.e.place = int32(len(kept))
			kept = append(kept, b)
		}
	}
	if cap(kept) > 4*len(kept) {
		kept = append(make([]berth, 0, len(kept)*5/4), kept...)
	} else {
		clear(t.roster[len(kept):])
	}
	t.roster = kept
}

func (t *table) classOf(e *entry) (c *class, when int64) {
	switch e.own {
	case expiry.Inherit:
		return &t.heirs, e.ts
	case expiry.Never:
		return nil, 0
	}
	return &t.mortals, e.own
}

func (t *table) enlist(e *entry) {
	c, when := t.classOf(e)
	if c == nil {
		e.rank = noRank
		return
	}
	e.rank = int32(len(c.list))
	c.list = append(c.list, candidate{when, e})
	c.earliest = min(c.earliest, when)
}

func (t *table) discharge(e *entry) {
	c, _ := t.classOf(e)
	if c == nil {
		return
	}
	last := len(c.list) - 1
	moved := c.list[last]
	c.list[e.rank] = moved
	moved.e.rank = e.rank
	c.list[last] = candidate{}
	c.list = c.list[:last]
	if cap(c.list) > 256 && len(c.list) < cap(c.list)/4 {
		c.list = append(make([]candidate, 0, cap(c.list)/2), c.list...)
	}
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
	for i := 0; i < len(c.list); {
		if when := c.list[i].when; when > limit {
			earliest = min(earliest, when)
			i++
			continue
		}
		e := c.list[i].e // removal puts the last candidate in its place: look at i again
		t.remove(e)
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
		numHeirs = len(t.heirs.list)
	}
	if t.mortals.earliest <= mortals {
		numMortals = len(t.mortals.list)
	}
	for ; drawn < n && numHeirs+numMortals > 0; drawn++ {
		list, at, left, limit := t.heirs.list, t.spread.Next(numHeirs+numMortals), &numHeirs, heirs
		if at >= numHeirs {
			list, at, left, limit = t.mortals.list, at-numHeirs, &numMortals, mortals
		}
		if list[at].when > limit {
			continue
		}
		e := list[at].e
		t.remove(e)
		gone(e)
		*left--
		dead++
	}
	return drawn, dead
}

// dead tells whether an entry of the table is dead.
func (e *entry) dead(p *expiry.Policy, now int64) bool { return p.Dead(e.ts, e.own, now) }

// before gives the index in the roster of the newest berth below a sequence number; -1 if none.
func (t *table) before(seq uint64) int {
	low, high := 0, len(t.roster)
	for low < high {
		if mid := int(uint(low+high) >> 1); t.roster[mid].seq < seq {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}
