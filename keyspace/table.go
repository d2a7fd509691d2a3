package keyspace

import (
	"math"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// entry is one item in memory, but for its key and record. It is protected by its partition's lock.
//
// There are many: fields are as small as they can be, and what the record's text tells as fast is not
// repeated here. An entry fills a line of the processor's cache, and has no pointers, so that the collector
// need not look into it.
type entry struct {
	ts      int64
	own     int64
	version uint64
	ticket  LSN // the batch of its last write
	text    ref // the key as in the store (container number, colon, id), then the record as on disk
	recSize uint32
	hash    uint32 // of the id
	next    handle // in the chain of its bucket
	place   uint32 // in the roster
	rank    uint32 // in its class; noRank if it is in none
	keySize uint16 // of its lower 16 bits; see longKey
	head    uint8  // where the body begins in the record
	flags   flags
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

func (e *entry) has(f flags) bool { return e.flags&f != 0 }

func (e *entry) mark(f flags)   { e.flags |= f }
func (e *entry) unmark(f flags) { e.flags &^= f }

func (e *entry) keyLen() int {
	return int(e.keySize) + int(e.flags&longKey)<<16
}

// text gives the key and the record of an entry, side by side. Like all that is read from it, it is safe to
// keep, without any lock.
func (t *table) text(e *entry) string { return t.arena.text(e.text, e.keyLen()+int(e.recSize)) }

func (t *table) key(e *entry) string { return t.arena.text(e.text, e.keyLen()) }
func (t *table) rec(e *entry) string { return t.text(e)[e.keyLen():] }
func (t *table) id(e *entry) string  { return t.key(e)[t.prefix:] }

func (t *table) item(e *entry) Item {
	rec := t.rec(e)
	return Item{Kind: record.KindOf(rec), Body: rec[e.head:], TS: e.ts, ExpireAt: e.own, Version: e.version}
}

// table holds the items of one container in one partition. All under the partition's lock.
//
//   - slab is where the entries are; what follows refers to them by handles.
//   - arena is where their keys and records are.
//   - index finds an item by its id.
//   - roster lists the items in the order of their creation; it gives SCAN its stable cursor.
//     When holes are the majority it is compacted.
//   - heirs and mortals list the items that inherit the container's default and those with an end
//     of their own, those that die soon before those that die late: the purge and exact counts look at
//     hardly any others than the dead. Items that never die are in neither.
type table struct {
	pool    *pool // what the purge knows it as
	p       *partition
	number  uint32 // of the container
	prefix  int    // length of the container's part of a key
	slab    slab
	arena   arena
	untidy  bool // the partition's list of tables whose arenas are wasteful has it
	index   index
	roster  roster
	heirs   class
	mortals class
	turn    bool  // the purge begins with mortals next, not with heirs
	bytes   int64 // of ids and bodies
	memory  int64 // bytes that the items take, an estimate; also in the partition's used
	live    int64 // bytes that they would take in a store of nothing else; also in the partition's
	plain   int   // how many are plain keys
	stored  bool  // the store may have items of it
	gone    bool  // its container was dropped

	// dirty has the entries that are marked dirty, in no order, and handles whose entries have
	// been removed since: these may name others by now, marked or not. See table.capture.
	dirty  []handle
	listed bool     // the partition's list of tables that are dirty has it
	taken  []handle // what is left of those that capture has taken over; never empty but nil
}

func newTable(number uint32, p *partition) *table {
	return &table{
		number: number,
		p:      p,
		prefix: len(record.AppendKey(nil, number, "")),
		roster: roster{next: 1},
	}
}

// join counts the whole table to its partition's account.
func (t *table) join() {
	t.gone = false
	t.p.adopt(t)
	t.charge(1)
}

// part takes the whole table from its partition's account, and out of what the store has to learn.
func (t *table) part() {
	t.gone = true
	delete(t.p.tables, t.number)
	t.charge(-1)
}

func (t *table) charge(times int64) {
	t.p.used.Add(times * (t.memory + tableOverhead))
	t.p.live += times * t.live
	t.p.garbage.Add(times * t.arena.dead)
}

// count is how many items there are.
func (t *table) count() int { return t.index.n }

func (t *table) size(e *entry) int64 {
	return int64(e.keyLen() - t.prefix + int(e.recSize) - int(e.head))
}

// itemOverhead is what an item takes in memory besides its key and record: the entry, its places in
// the index and the lists, and the header of its text. BenchmarkMemory tells.
const itemOverhead = 96

// memory is what an entry of a table takes in memory, in bytes.
func (e *entry) memory() int64 { return int64(e.keyLen()) + int64(e.recSize) + itemOverhead }

// live is what the command that sets an entry takes in a store, in bytes.
func (e *entry) live() int64 { return commandSize(e.keyLen(), int(e.recSize)) }

// account counts an entry that comes (times 1) or goes (-1).
func (t *table) account(e *entry, times int) {
	t.bytes += int64(times) * t.size(e)
	t.memory += int64(times) * e.memory()
	live := int64(times) * e.live()
	t.live += live
	t.p.live += live
	if e.has(plain) {
		t.plain += times
	}
}

// find gives the entry of an id, nil if there is none. Valid until it is released.
func (t *table) find(id string) *entry {
	_, e := t.locate(id)
	return e
}

// locate is find for those who need the entry's handle, too.
func (t *table) locate(id string) (handle, *entry) {
	if t.index.n == 0 {
		return 0, nil
	}
	hash := hashOf(id)
	for h := *t.index.bucket(hash); h != 0; {
		e := t.slab.at(h)
		if e.hash == hash && t.id(e) == id {
			return h, e
		}
		h = e.next
	}
	return 0, nil
}

// holds tells whether a record is that of an entry. Versions are never used twice, so its head tells.
func (t *table) holds(e *entry, rec []byte) bool {
	is := t.rec(e)
	return len(is) == len(rec) && is[:e.head] == record.View(rec[:e.head])
}

// insert adds an item whose id is not in the table (key, rec and what is read from it). The texts are copied.
func (t *table) insert(key, rec string, it Item) (handle, *entry) {
	h, e := t.slab.take()
	t.set(h, e, key, rec, it)
	e.mark(present)
	e.hash = hashOf(t.id(e))
	t.index.insert(&t.slab, h, e)
	e.place = t.roster.push(h)
	t.account(e, 1)
	t.p.used.Add(e.memory())
	t.enlist(e, h)
	return h, e
}

// put inserts or replaces an item of this id, whatever it was before.
func (t *table) put(id, key, rec string, it Item) (handle, *entry) {
	h, e := t.locate(id)
	if e == nil {
		return t.insert(key, rec, it)
	}
	t.drop(t.replace(h, e, key, rec, it))
	return h, e
}

// replace gives an entry of the table a new record (key, rec and what is read from it), and tells where the old
// text is, which is still to be dropped. The key is the same.
func (t *table) replace(h handle, e *entry, key, rec string, it Item) (old ref) {
	old = e.text
	before, was := t.memory, t.classOf(e)
	t.account(e, -1)
	if is := t.classBy(it.ExpireAt); is != was {
		t.discharge(e)
		t.set(h, e, key, rec, it)
		t.enlist(e, h)
	} else {
		when := e.when()
		if t.set(h, e, key, rec, it); is != nil && !is.stays(e, when) {
			t.discharge(e)
			t.enlist(e, h)
		}
	}
	t.account(e, 1)
	t.p.used.Add(t.memory - before)
	return old
}

// handle gives the handle of an entry of the table.
func (t *table) handle(e *entry) handle {
	h, _ := t.roster.at(int(e.place))
	return h
}

// set makes an entry what an item is. Its old text is not dropped.
func (t *table) set(h handle, e *entry, key, rec string, it Item) {
	e.text = t.arena.add(h, key, rec)
	e.keySize, e.recSize = uint16(len(key)), uint32(len(rec))
	e.head = uint8(len(rec) - len(it.Body))
	e.ts, e.own, e.version = it.TS, it.ExpireAt, it.Version
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
	h, seq := t.roster.at(int(e.place))
	t.index.remove(&t.slab, h, e)
	t.roster.leave(e.place)
	t.account(e, -1)
	t.p.used.Add(-e.memory())
	t.discharge(e)
	e.unmark(present)
	e.next = h                                     // for forget: it is in no chain any more
	e.place, e.rank = uint32(seq>>32), uint32(seq) // for leftSeq: nor in any list
	if t.roster.sparse() {
		t.roster.compact(func(h handle, place uint32) { t.slab.at(h).place = place })
	}
}

// leftSeq is the sequence number in the roster that an entry had which has been removed, and not forgotten.
func (e *entry) leftSeq() uint64 { return uint64(e.place)<<32 | uint64(e.rank) }

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
	if c := t.classOf(e); c != nil {
		c.add(&t.slab, h, e)
	} else {
		e.rank = noRank
	}
}

func (t *table) discharge(e *entry) {
	if c := t.classOf(e); c != nil {
		c.take(&t.slab, e)
	}
}

// sweep removes all that is dead now, calling gone for each. Besides the dead it looks at few others.
func (t *table) sweep(p *expiry.Policy, now int64, gone func(*entry)) {
	heirs, mortals := p.DeadTo(now)
	for t.heirs.due(heirs) {
		t.reap(&t.heirs, heirs, math.MaxInt, gone)
	}
	for t.mortals.due(mortals) {
		t.reap(&t.mortals, mortals, math.MaxInt, gone)
	}
}

// sample removes up to n of what is dead now, calling gone for each. It looks at a few buckets at most,
// and leaves the rest to the next.
func (t *table) sample(p *expiry.Policy, now int64, n int, gone func(*entry)) (got expiry.Sample) {
	heirs, mortals := p.DeadTo(now)
	got.All = t.heirs.n + t.mortals.n
	got.Due = t.heirs.begun(heirs) + t.mortals.begun(mortals)
	first, second, to, then := &t.heirs, &t.mortals, heirs, mortals
	if t.turn {
		first, second, to, then = second, first, then, to
	}
	t.turn = !t.turn // neither has to wait until nothing of the other is left
	t.sampleClass(first, to, n, &got, gone)
	t.sampleClass(second, then, n, &got, gone)
	got.More = t.heirs.due(heirs) || t.mortals.due(mortals)
	got.Due = max(got.Due, got.Dead)
	return got
}

func (t *table) sampleClass(c *class, limit int64, n int, got *expiry.Sample, gone func(*entry)) {
	for got.Dead < n && got.Drawn < bucketSize && c.due(limit) {
		drawn, dead := t.reap(c, limit, n-got.Dead, gone)
		got.Drawn += drawn
		got.Dead += dead
	}
}

func (t *table) reap(c *class, limit int64, n int, gone func(*entry)) (looked, dead int) {
	return c.reap(&t.slab, limit, n, func(e *entry) {
		t.remove(e)
		gone(e)
	})
}

// dead tells whether an entry of the table is dead.
func (e *entry) dead(p *expiry.Policy, now int64) bool { return p.Dead(e.ts, e.own, now) }
