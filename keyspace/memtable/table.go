package memtable

import (
	"math"
	"strings"
	"unsafe"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// Table holds the items of one container in one partition. Its owner's lock protects it.
//
//   - slab has the entries; the other parts refer to them by handle.
//   - arena has their keys and records.
//   - index finds an item by id.
//   - order lists the items in the order of creation.
//   - byDefault queues the items that inherit the container's default, byOwnTTL those with an end of their
//     own. Items with a cap are in both. Items that never die are in neither.
type Table struct {
	shard       *Shard
	seed        Seed   // of the shard
	number      uint32 // of the container
	prefix      string // the container's part of each key, "12:" or "41~"
	log         bool   // the items are of a log of deaths
	pages       bool   // they are pages of collections
	slab        slab
	arena       arena
	index       index
	order       insertionOrder
	byDefault   expiryQueue
	byOwnTTL    expiryQueue
	capped      int    // items in both queues
	chains      chains // of a log of deaths
	turn        bool   // Sample begins with byOwnTTL next
	bytes       int64  // of ids and bodies
	memory      int64  // bytes, an estimate; also in the shard's
	extra       int64  // of memory: see AddMemory
	observer    Observer
	collections KeyObserver // see ObserveCollections
	live        int64       // bytes that the items take in a store; also in the shard's
	plain       int         // how many items are plain keys
	stored      bool        // the store may have items of the table
	detached    bool
	unclean     bool // in the shard's list of tables to clean

	// dirty has the entries that are marked dirty, in no order. It also has handles of entries that were
	// removed: these may name other entries by now, marked or not. See captureDirty.
	dirty    []Handle
	listed   bool     // in the shard's list of dirty tables
	captured []Handle // what is left of those that a capture has taken over; never empty but nil
}

// TableOverhead is the memory of a table besides its items, in bytes, an estimate.
const TableOverhead = 608

// Init makes the zero value an empty table of a container and attaches it to a shard.
func (t *Table) Init(s *Shard, container uint32) {
	t.init(s, container, string(record.AppendKey(nil, container, "")))
}

// InitLog is Init for a log of deaths: all items are of the kind [record.Entry].
func (t *Table) InitLog(s *Shard, log uint32) {
	t.init(s, log, string(record.AppendLogKey(nil, log, "")))
	t.log = true
}

// InitPages is Init for the pages of a container's collections: all items are of the kind [record.Page].
func (t *Table) InitPages(s *Shard, container uint32) {
	t.pages = true
	t.init(s, container, string(record.AppendPageKey(nil, container, "")))
}

func (t *Table) init(s *Shard, container uint32, prefix string) {
	*t = Table{shard: s, seed: s.Seed, number: container, prefix: prefix, pages: t.pages, order: insertionOrder{next: 1}}
	t.byOwnTTL.byOwnTTL = true
	t.Attach()
}

// Log reports whether the table is one of a log of deaths.
func (t *Table) Log() bool { return t.log }

// Pages reports whether the table is one of pages of collections.
func (t *Table) Pages() bool { return t.pages }

// Container returns the number of the table's container.
func (t *Table) Container() uint32 { return t.number }

// Attach adds the table to its shard and to the shard's totals.
func (t *Table) Attach() {
	t.detached = false
	t.shard.attach(t)
	t.addTotals(1)
}

// Detach takes the table from its shard. Captures and the shard's totals leave it out. EachStored still
// visits what the store has of it.
func (t *Table) Detach() {
	t.detached = true
	t.shard.detach(t)
	t.addTotals(-1)
}

// Detached reports whether the table is detached.
func (t *Table) Detached() bool { return t.detached }

// Stored reports whether the store may have items of the table.
func (t *Table) Stored() bool { return t.stored }

// MarkStored notes that the store has the item of an entry.
func (t *Table) MarkStored(e *Entry) {
	t.shard.overwrites = t.shard.overwrites || e.has(stored)
	e.set(stored)
	t.stored = true
}

func (t *Table) addTotals(times int64) {
	t.shard.memory.Add(times * (t.memory + TableOverhead))
	t.shard.live += times * t.live
	t.shard.garbage.Add(times * t.arena.dead)
}

// Len returns the number of items.
func (t *Table) Len() int { return t.index.n }

// Stats are figures of a table.
type Stats struct {
	Items     int
	Plain     int   // plain keys among them
	ByDefault int   // items that only inherit the container's default
	ByOwnTTL  int   // items with an end of their own or a cap
	Bytes     int64 // of ids and bodies
	Memory    int64 // bytes, an estimate
}

// Stats returns the figures. The dead that have not been removed are counted.
func (t *Table) Stats() Stats {
	return Stats{
		Items: t.index.n, Plain: t.plain, ByDefault: t.byDefault.n - t.capped, ByOwnTTL: t.byOwnTTL.n,
		Bytes: t.bytes, Memory: t.memory,
	}
}

// KeyAndRecord returns the key and the record of an entry as they are in the store. Like all strings that the
// table returns, they are views of the arena and safe to keep, without a lock. Of a large item rec is the
// header, and body the rest of the record; else body is empty.
func (t *Table) KeyAndRecord(e *Entry) (key, rec, body string) {
	n := e.keyLen()
	if e.split() {
		text := t.arena.view(e.data, n+e.header())
		return text[:n], text[n:], t.bodyOf(e)
	}
	text := t.arena.view(e.data, n+int(e.recSize))
	return text[:n], text[n:], ""
}

// KeyAndChange returns the last write of an entry as the journal has it: as [Table.KeyAndRecord], or a touch
// if only the header of a large item was written.
func (t *Table) KeyAndChange(e *Entry) (key, rec, body string) {
	key, rec, body = t.KeyAndRecord(e)
	if base := t.Base(e); body != "" && base != e.Version() {
		key = record.TouchKey(key)
		rec, body = string(record.Append(nil, key, record.TouchItem(t.Item(e), base))), ""
	}
	return key, rec, body
}

// Key returns the key of an entry as it is in the store.
func (t *Table) Key(e *Entry) string { return t.arena.view(e.data, e.keyLen()) }

// ID returns the id of an entry.
func (t *Table) ID(e *Entry) string { return t.Key(e)[len(t.prefix):] }

// Item returns the item of an entry.
func (t *Table) Item(e *Entry) record.Item {
	_, it := t.IDAndItem(e)
	return it
}

// IDAndItem returns the id and the item of an entry. It does not read the record.
func (t *Table) IDAndItem(e *Entry) (id string, it record.Item) {
	n := e.keyLen()
	it = record.Item{Kind: record.Document, TS: e.ts, ExpireAt: e.expireAt, Version: e.version}
	switch {
	case t.log:
		it.Kind = record.Entry
	case t.pages:
		it.Kind = record.Page
	case e.Collection():
		it.Kind = record.KindOf(t.arena.view(e.data, n+e.header())[n:])
	case e.has(plain):
		it.Kind = record.Plain
	}
	if e.split() {
		it.Body = t.bodyOf(e)
		return t.arena.view(e.data, n)[len(t.prefix):], it
	}
	text := t.arena.view(e.data, n+int(e.recSize))
	it.Body = text[n+e.header():]
	return text[len(t.prefix):n], it
}

// size returns the bytes of an item's id and body.
func (t *Table) size(e *Entry) int64 {
	return int64(e.keyLen() - len(t.prefix) + int(e.recSize) - e.header())
}

// account adds an entry to the totals (times 1) or subtracts it (-1), but for the shard's memory.
func (t *Table) account(e *Entry, times int) {
	t.bytes += int64(times) * t.size(e)
	t.memory += int64(times) * e.Memory()
	live := int64(times) * t.shard.SetSize(e.keyLen(), int(e.recSize))
	t.live += live
	t.shard.live += live
	if e.has(plain) {
		t.plain += times
	}
}

// Find returns the entry of an id, nil if there is none.
func (t *Table) Find(id string) *Entry {
	_, e := t.Lookup(id)
	return e
}

// Lookup returns the entry of an id and its handle, nil if there is none.
func (t *Table) Lookup(id string) (Handle, *Entry) {
	if t.index.n == 0 {
		return 0, nil
	}
	hash := t.seed.hash(id)
	for h := *t.index.bucket(hash); h != 0; {
		e := t.slab.at(h)
		if e.hash == hash && t.ID(e) == id {
			return h, e
		}
		h = e.next
	}
	return 0, nil
}

// Insert adds an item under an id that the table does not have, marked dirty. The id and the body are copied
// once, into the arena. But own, if it is not nil, is the body already.
func (t *Table) Insert(id string, it record.Item, own *Body) (Handle, *Entry) {
	h, e := t.slab.alloc()
	data, size := t.encode(h, nil, id, it, own)
	t.insert(h, e, id, it, data, size)
	t.MarkDirty(h, e)
	return h, e
}

// Replace gives an entry another item under the same id and marks it dirty. The id and the body are copied
// once. The body is not if own is that already, or if it is the view of the entry's own large body. The old
// record stays until FreeReplaced frees it or Restore brings it back.
func (t *Table) Replace(h Handle, e *Entry, id string, it record.Item, own *Body) {
	data, size := t.encode(h, e, id, it, own)
	t.replace(h, e, id, it, data, size)
	t.MarkDirty(h, e)
}

// Overwrite is Replace for an old record that is not needed any more.
func (t *Table) Overwrite(h Handle, e *Entry, id string, it record.Item, own *Body) {
	old := *e
	t.Replace(h, e, id, it, own)
	t.freeRecord(&old)
}

// Load inserts or overwrites an item whose record is encoded already, and does not mark it dirty. The id and
// the record are copied.
func (t *Table) Load(id, rec string, it record.Item) (Handle, *Entry) {
	h, e := t.Lookup(id)
	if e == nil {
		h, e = t.slab.alloc()
		t.insert(h, e, id, it, t.copyIn(h, id, rec, it), len(rec))
		return h, e
	}
	old := *e
	t.replace(h, e, id, it, t.copyIn(h, id, rec, it), len(rec))
	t.freeRecord(&old)
	return h, e
}

// encode writes the key and the record of an item into the arena and returns the record's size. e is the
// entry that it replaces, nil if there is none.
func (t *Table) encode(h Handle, e *Entry, id string, it record.Item, own *Body) (data ref, size int) {
	var buf [record.MaxHeader]byte
	header := record.AppendHeader(buf[:0], it)
	if len(it.Body) >= LargeBody {
		at, shared := t.sharedTail(e, it)
		if !shared {
			if own == nil {
				b := CopyBody(it.Body)
				own = &b
			}
			at = tail{t.arena.addBody(own.text), own.sum, it.Version}
		}
		return t.encodeLarge(h, id, header, len(it.Body), at, false)
	}
	size = len(header) + len(it.Body)
	data, b := t.arena.alloc(h, len(t.prefix)+len(id)+size)
	key := copy(b, t.prefix)
	key += copy(b[key:], id)
	copy(b[key:], header)
	copy(b[key+len(header):], it.Body)
	record.PutSum(record.View(b[:key]), b[key:])
	return data, size
}

// copyIn writes a key and an encoded record into the arena. it is the item that the record decodes to.
func (t *Table) copyIn(h Handle, id, rec string, it record.Item) ref {
	if len(it.Body) >= LargeBody {
		own := CopyBody(it.Body)
		header := []byte(rec[:len(rec)-len(it.Body)])
		data, _ := t.encodeLarge(h, id, header, len(it.Body), tail{t.arena.addBody(own.text), own.sum, it.Version}, true)
		return data
	}
	data, b := t.arena.alloc(h, len(t.prefix)+len(id)+len(rec))
	key := copy(b, t.prefix)
	key += copy(b[key:], id)
	copy(b[key:], rec)
	return data
}

// insert adds a new entry for an item whose record, of size bytes, is in the arena.
func (t *Table) insert(h Handle, e *Entry, id string, it record.Item, data ref, size int) {
	t.fill(e, id, it, data, size)
	e.set(present)
	e.hash = t.seed.hash(id)
	t.index.insert(&t.slab, h, e)
	e.pos = t.order.push(h)
	t.account(e, 1)
	t.shard.memory.Add(e.Memory())
	t.enqueue(e, h)
	if t.log {
		t.chain(h, e)
	}
	t.added(h, e)
}

// replace makes an entry that of another item, whose record, of size bytes, is in the arena.
func (t *Table) replace(h Handle, e *Entry, id string, it record.Item, data ref, size int) {
	if t.observer == nil && t.collections == nil {
		t.refill(h, e, id, it, data, size)
		return
	}
	old := t.Item(e)
	t.refill(h, e, id, it, data, size)
	t.replaced(h, old, e)
}

// refill is replace without the observer.
func (t *Table) refill(h Handle, e *Entry, id string, it record.Item, data ref, size int) {
	before := t.memory
	if !t.hasBody(e, it.Body) {
		e.SetEncoding(record.Chosen)
	}
	t.account(e, -1)
	wasDefault, wasOwn := queues(e.expireAt)
	if isDefault, isOwn := queues(it.ExpireAt); isDefault == wasDefault && isOwn == wasOwn {
		byDefault, byOwnTTL := t.byDefault.moment(e), t.byOwnTTL.moment(e)
		t.fill(e, id, it, data, size)
		t.requeue(e, h, byDefault, byOwnTTL)
	} else {
		t.dequeue(e, h)
		t.fill(e, id, it, data, size)
		t.enqueue(e, h)
	}
	t.account(e, 1)
	t.shard.memory.Add(t.memory - before)
}

// hasBody reports whether a body is the very one of an entry, as KeyAndRecord has returned it.
func (t *Table) hasBody(e *Entry, body string) bool {
	if e.flags&encodingMask == 0 {
		return true // the answer does not matter
	}
	is := t.Item(e).Body
	return len(is) == len(body) && unsafe.StringData(is) == unsafe.StringData(body)
}

// fill sets the fields of an entry that depend on its item.
func (t *Table) fill(e *Entry, id string, it record.Item, data ref, size int) {
	key := len(t.prefix) + len(id)
	e.data, e.keySize, e.recSize = data, uint16(key), uint32(size)
	if e.bodyAt = uint8(size - len(it.Body)); it.Kind.IsCollection() {
		e.bodyAt |= withElements
	}
	e.ts, e.expireAt, e.version = it.TS, it.ExpireAt, it.Version
	e.clear(longKey | plain)
	if key > math.MaxUint16 {
		e.set(longKey)
	}
	if it.Kind.IsKey() {
		e.set(plain)
	}
}

// Remove takes an entry out of the table. The entry stays valid until Release or Restore, which must follow.
func (t *Table) Remove(e *Entry) {
	h, seq := t.order.at(int(e.pos))
	t.removed(h, e)
	if t.log {
		t.unchain(h, e)
	}
	t.index.remove(&t.slab, h, e)
	t.order.remove(e.pos)
	t.account(e, -1)
	t.shard.memory.Add(-e.Memory())
	t.dequeue(e, h)
	e.clear(present)
	e.next = h                                       // in no chain any more: the handle, for Release
	e.pos, e.queuePos = uint32(seq>>32), uint32(seq) // in no list any more: see removedSeq
	if t.order.sparse() {
		t.order.compact(func(h Handle, pos uint32) { t.slab.at(h).pos = pos })
	}
}

// removedSeq returns the sequence number in the insertion order that a removed entry had.
func (e *Entry) removedSeq() uint64 { return uint64(e.pos)<<32 | uint64(e.queuePos) }

// Release frees a removed entry. If the store has the item, the next capture returns the delete. So the store
// never learns of items that are removed before it has them.
func (t *Table) Release(e *Entry) {
	if e.has(stored) {
		t.shard.deleted = append(t.shard.deleted, strings.Clone(t.Key(e))) // a clone, so that the segment can go
	}
	t.discard(e)
}

// Unload removes and frees an entry of which the store has nothing any more.
func (t *Table) Unload(e *Entry) {
	t.Remove(e)
	t.discard(e)
}

func (t *Table) discard(e *Entry) {
	t.freeRecord(e)
	t.slab.free(e.next)
}

// FreeReplaced frees the record that an entry had, unless the entry still has it.
func (t *Table) FreeReplaced(e, was *Entry) {
	if was.data != e.data {
		t.freeRecord(was)
	}
}

// Restore undoes all changes of an entry since it was was, a removal among them. Only its mark as dirty
// stays: what the store then learns again changes nothing. A restored entry keeps its place in the insertion
// order.
func (t *Table) Restore(e, was *Entry) {
	if !e.has(present) {
		h, seq := e.next, e.removedSeq()
		t.restoreFields(e, was)
		t.index.insert(&t.slab, h, e)
		e.pos = t.order.reinsert(h, seq, func(h Handle, pos uint32) { t.slab.at(h).pos = pos })
		t.account(e, 1)
		t.shard.memory.Add(e.Memory())
		t.enqueue(e, h)
		if t.log {
			t.chain(h, e)
		}
		t.added(h, e)
		return
	}
	h, _ := t.order.at(int(e.pos))
	old := t.Item(e)
	before := t.memory
	t.account(e, -1)
	t.dequeue(e, h)
	t.restoreFields(e, was)
	t.account(e, 1)
	t.shard.memory.Add(t.memory - before)
	t.enqueue(e, h)
	t.replaced(h, old, e)
}

// restoreFields restores an entry but for its places in lists.
func (t *Table) restoreFields(e, was *Entry) {
	if e.data != was.data {
		t.freeRecord(e)
	}
	marked, next, pos, queuePos := e.flags&dirty, e.next, e.pos, e.queuePos
	*e = *was
	e.flags = e.flags&^dirty | marked
	e.next, e.pos, e.queuePos = next, pos, queuePos
}

// Descend visits the entries below a sequence number of the insertion order, newest first, until visit
// returns false. Below 0 means all. Sequence numbers are at least 1 and never reused.
func (t *Table) Descend(below uint64, visit func(seq uint64, e *Entry) (more bool)) {
	if below == 0 {
		below = t.order.next
	}
	for i := t.order.before(below); i >= 0; i-- {
		if h, seq := t.order.at(i); h != 0 && !visit(seq, t.slab.at(h)) {
			return
		}
	}
}

// Placed is an entry and its sequence number in the insertion order.
type Placed struct {
	Seq   uint64
	Entry *Entry
}

// Newest fills a list with the next entries below a sequence number, newest first, and returns their number.
// Below 0 means all. It has read each entry into the processor's cache.
func (t *Table) Newest(below uint64, list []Placed) (n int) {
	if below == 0 {
		below = t.order.next
	}
	seen := uint32(0) // no read waits for another, so the cache misses overlap
	for i := t.order.before(below); i >= 0 && n < len(list); i-- {
		if h, seq := t.order.at(i); h != 0 {
			e := t.slab.at(h)
			seen += e.hash
			list[n] = Placed{seq, e}
			n++
		}
	}
	t.arena.seen += seen
	return n
}

// NoneWithin reports whether limits are known to select no entry. It takes constant time.
func (t *Table) NoneWithin(l expiry.Limits) bool {
	return !t.byDefault.due(l.ByDefault) && !t.byOwnTTL.due(l.ByOwnTTL)
}

// Random returns a random entry and its handle. The table must not be empty. intN returns a random number in
// [0,n).
func (t *Table) Random(intN func(n int) int) (Handle, *Entry) {
	// At most about half of the slots are holes, so a few draws suffice. Otherwise the first entry after a
	// random slot is taken.
	n, start := t.order.slots.n, 0
	for range 16 {
		start = intN(n)
		if h, _ := t.order.at(start); h != 0 {
			return h, t.slab.at(h)
		}
	}
	for i := range n {
		if h, _ := t.order.at((start + i) % n); h != 0 {
			return h, t.slab.at(h)
		}
	}
	panic("memtable: a random entry of an empty table")
}
