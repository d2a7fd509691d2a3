package watch

import (
	"container/heap"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"mayfly/expiry"
)

// Reader is a client that has read an id, and how: see [ReaderOf].
type Reader uint64

// ReaderOf returns the reader for the number of a client. document says that the client has named the
// container with the id.
func ReaderOf(client int64, document bool) Reader {
	if document {
		return Reader(client)<<1 | 1
	}
	return Reader(client) << 1
}

// Client returns the number of the client.
func (r Reader) Client() int64 { return int64(r >> 1) }

// Document reports whether the client has named the container with the id.
func (r Reader) Document() bool { return r&1 != 0 }

// Counts are figures of the notes of all partitions. Safe for concurrent use.
type Counts struct {
	Keys  atomic.Int64 // ids that someone has read
	Items atomic.Int64 // the same, each once for every reader
	Bytes atomic.Int64 // of memory, an estimate
}

const (
	// sizeOfNote is about what a note takes besides its id: itself, its places in the map and in a queue.
	sizeOfNote   = int64(unsafe.Sizeof(Note{})) + 56
	sizeOfReader = int64(unsafe.Sizeof(Reader(0)))
)

// Note says who has read an id that has not changed since, whether there is such an item or not.
type Note struct {
	id     string
	first  Reader
	others []Reader
	places [2]int32 // in the queues of its group, from 1 on; 0: in none
}

// readers returns who has read the id.
func (n *Note) readers() []Reader { return append([]Reader{n.first}, n.others...) }

// add adds a reader, or makes it one that has named the container too. It reports whether the client is new.
func (n *Note) add(r Reader) bool {
	if n.first.Client() == r.Client() {
		n.first |= r
		return false
	}
	for i := range n.others {
		if n.others[i].Client() == r.Client() {
			n.others[i] |= r
			return false
		}
	}
	n.others = append(n.others, r)
	return true
}

// The queues of a group, as the limits of package expiry select: by the last write of an item that inherits,
// and by an end of its own. An item with a cap is in both.
const (
	byDefault = iota
	byOwnTTL
)

// Group is the notes of a container in a partition. Its owner's lock protects it.
type Group struct {
	Timer *expiry.Timer // for the next death; the owner makes and sets it

	notes   map[string]*Note
	clients map[int64]int // how many of the notes each has
	queues  [2]queue
	items   int64 // see Counts
	bytes   int64
}

// Earliest returns the moments in ms that decide when the first noted item dies, as those of a table do.
func (g *Group) Earliest() (ofDefault, ofOwnTTL int64) {
	return g.queues[byDefault].first(), g.queues[byOwnTTL].first()
}

// Dead reports whether the limits select a noted item.
func (g *Group) Dead(l expiry.Limits) bool { return g.firstDead(l) != nil }

func (g *Group) firstDead(l expiry.Limits) *Note {
	for which, limit := range [2]int64{l.ByDefault, l.ByOwnTTL} {
		if q := g.queues[which].slots; len(q) > 0 && q[0].at <= limit {
			return q[0].note
		}
	}
	return nil
}

// enqueue puts a note into the queues for its item.
func (g *Group) enqueue(n *Note, ts, expireAt int64) {
	at, capped := expiry.Cap(expireAt)
	if expireAt == expiry.Inherit || capped {
		g.queues[byDefault].add(byDefault, ts, n)
	}
	if expireAt > expiry.Inherit {
		at, capped = expireAt, true
	}
	if capped {
		g.queues[byOwnTTL].add(byOwnTTL, at, n)
	}
}

// Notes are the notes of a partition, by container. The zero value is empty. Its owner's lock protects it.
type Notes[C comparable] struct {
	Counts *Counts
	Caches func(client int64) bool // whether a client still caches; nil: all do
	groups map[C]*Group
}

// Group returns the notes of a container, nil if there are none.
func (ns *Notes[C]) Group(c C) *Group { return ns.groups[c] }

// Has reports whether someone has read an id.
func (ns *Notes[C]) Has(c C, id string) bool {
	g := ns.groups[c]
	return g != nil && g.notes[id] != nil
}

// Add notes that a reader reads an id. If there is no note yet, found says whether there is an item, which
// was last written at ts in ms and has the expireAt.
func (ns *Notes[C]) Add(c C, id string, r Reader, found bool, ts, expireAt int64) *Group {
	g := ns.groups[c]
	if g == nil {
		if g = (&Group{notes: make(map[string]*Note), clients: make(map[int64]int)}); ns.groups == nil {
			ns.groups = make(map[C]*Group)
		}
		ns.groups[c] = g
	}
	n := g.notes[id]
	if n != nil && len(n.others) >= manyReaders && len(n.others) == cap(n.others) {
		ns.forgetGone(g, n)
	}
	switch {
	case n == nil:
		id = strings.Clone(id)
		n = &Note{id: id, first: r}
		g.notes[id] = n
		if found {
			g.enqueue(n, ts, expireAt)
		}
		ns.count(g, 1, 1, sizeOfNote+int64(len(id)))
	case n.add(r):
		ns.count(g, 0, 1, sizeOfReader)
	default:
		return g
	}
	g.clients[r.Client()]++
	return g
}

// manyReaders is the number of readers of an id from on which it is looked whether they still cache.
const manyReaders = 16

// forgetGone removes readers of an id that cache no more: clients come and go, and some ids never change.
// There is room for as many readers as stay before the next look, so that a reader costs the same however
// many they are.
func (ns *Notes[C]) forgetGone(g *Group, n *Note) {
	before := len(n.others)
	n.others = slices.DeleteFunc(n.others, func(r Reader) bool {
		gone := ns.Caches != nil && !ns.Caches(r.Client())
		if gone {
			g.release(r)
		}
		return gone
	})
	gone := int64(before - len(n.others))
	n.others = append(make([]Reader, 0, 2*max(len(n.others), manyReaders)), n.others...)
	ns.count(g, 0, -gone, -gone*sizeOfReader)
}

// release notes that a client has one note less.
func (g *Group) release(r Reader) {
	if g.clients[r.Client()]--; g.clients[r.Client()] == 0 {
		delete(g.clients, r.Client())
	}
}

// Take removes the note of an id and returns who has read it, nil if nobody has.
func (ns *Notes[C]) Take(c C, id string) []Reader {
	g := ns.groups[c]
	if g == nil || g.notes[id] == nil {
		return nil
	}
	return ns.remove(c, g, g.notes[id])
}

// TakeDead removes the note of an item that the limits select, if there is one.
func (ns *Notes[C]) TakeDead(c C, l expiry.Limits) (id string, readers []Reader) {
	g := ns.groups[c]
	if g == nil {
		return "", nil
	}
	n := g.firstDead(l)
	if n == nil {
		return "", nil
	}
	return n.id, ns.remove(c, g, n)
}

// TakeAny removes some note, if there is one.
func (ns *Notes[C]) TakeAny() (c C, id string, readers []Reader) {
	for c, g := range ns.groups {
		for id, n := range g.notes {
			return c, id, ns.remove(c, g, n)
		}
	}
	return c, "", nil
}

// remove removes a note.
func (ns *Notes[C]) remove(c C, g *Group, n *Note) []Reader {
	readers := n.readers()
	delete(g.notes, n.id)
	for which, place := range n.places {
		if place > 0 {
			heap.Remove(&g.queues[which], int(place)-1)
		}
	}
	for _, r := range readers {
		g.release(r)
	}
	others := int64(len(readers) - 1)
	ns.count(g, -1, -1-others, -sizeOfNote-int64(len(n.id))-sizeOfReader*others)
	if len(g.notes) == 0 {
		ns.forget(c, g)
	}
	return readers
}

// Drop removes all notes of a container and calls told for each client that has one.
func (ns *Notes[C]) Drop(c C, told func(client int64)) {
	g := ns.groups[c]
	if g == nil {
		return
	}
	for client := range g.clients {
		told(client)
	}
	ns.count(g, -int64(len(g.notes)), -g.items, -g.bytes)
	ns.forget(c, g)
}

// count adds to the figures.
func (ns *Notes[C]) count(g *Group, keys, items, bytes int64) {
	g.items, g.bytes = g.items+items, g.bytes+bytes
	ns.Counts.Keys.Add(keys)
	ns.Counts.Items.Add(items)
	ns.Counts.Bytes.Add(bytes)
}

// DropAll removes all notes.
func (ns *Notes[C]) DropAll() {
	for c := range ns.groups {
		ns.Drop(c, func(int64) {})
	}
}

// forget removes an empty group.
func (ns *Notes[C]) forget(c C, g *Group) {
	if g.Timer != nil {
		g.Timer.Set(expiry.NeverDue)
	}
	delete(ns.groups, c)
}

// queue is notes by a moment in ms, the earliest first.
type queue struct {
	which int
	slots []slot
}

type slot struct {
	at   int64
	note *Note
}

func (q *queue) add(which int, at int64, n *Note) {
	q.which = which
	heap.Push(q, slot{at, n})
}

func (q *queue) first() int64 {
	if len(q.slots) == 0 {
		return expiry.NeverDue
	}
	return q.slots[0].at
}

func (q *queue) Len() int           { return len(q.slots) }
func (q *queue) Less(i, j int) bool { return q.slots[i].at < q.slots[j].at }

func (q *queue) Swap(i, j int) {
	q.slots[i], q.slots[j] = q.slots[j], q.slots[i]
	q.slots[i].note.places[q.which], q.slots[j].note.places[q.which] = int32(i+1), int32(j+1)
}

func (q *queue) Push(x any) {
	s := x.(slot)
	q.slots = append(q.slots, s)
	s.note.places[q.which] = int32(len(q.slots))
}

func (q *queue) Pop() any {
	last := len(q.slots) - 1
	s := q.slots[last]
	q.slots[last] = slot{}
	q.slots = q.slots[:last]
	s.note.places[q.which] = 0
	return s
}
