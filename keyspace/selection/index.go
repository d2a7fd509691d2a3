package selection

import (
	"container/heap"
	"errors"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
)

// The errors of a query whose index serves it no more since it was planned.
var (
	ErrIndexGone = errors.New("the index of the query is gone")
	ErrLongRun   = errors.New("the index of the query cuts too many strings alike")
)

// sliceDead bounds the dead of a slice: to remove one from all indexes takes longer than to examine an entry.
const sliceDead = 128

// expectedItems is the number of items for which a reader has memory at first.
const expectedItems = 16

// indexReader reads the living items in the ranges of a plan in slices. The items of an ordered plan come in
// its order, those of another by partition.
type indexReader struct {
	source Source
	plan   *Plan
	at     Place

	slice    Slice
	keys     []index.Key // of the items
	dead     []deadEntry
	examined int
	size     int // entries of the slice

	limits  expiry.Limits // of the dead
	found   []foundEntry  // examined next, together
	last    foundEntry
	touched uint64 // keeps the reads of entries from being optimised away

	runs      []run         // of the slice
	values    *index.Reader // of the documents of runs; nil before
	behindRun bool          // at is behind a run, and nothing follows it in the slice
}

// foundEntry is an entry that was found in a tree.
type foundEntry struct {
	partition int
	t         *memtable.Table
	handle    memtable.Handle
	key       index.Key
}

// foundTogether bounds the entries that are examined together.
const foundTogether = 32

// deadEntry is a dead entry that was met, in a partition.
type deadEntry struct {
	Partition int
	Entry     *memtable.Entry
}

// newIndexReader returns a reader from a place on.
func newIndexReader(s Source, p *Plan, from Place) *indexReader {
	size := firstSlice(p.First)
	r := &indexReader{source: s, plan: p, at: from, size: size, found: make([]foundEntry, 0, foundTogether)}
	if !p.Count {
		expected := min(size, expectedItems)
		r.slice.Items, r.keys = make([]Item, 0, expected), make([]index.Key, 0, expected)
	}
	return r
}

// Place returns the place behind an item of the last slice.
func (r *indexReader) Place(i int) Place {
	it := &r.slice.Items[i]
	p := Place{Partition: it.partition, Bound: index.Bound{Key: r.keys[i], ID: it.ID}, Any: true}
	if _, tied := r.plan.Index.Definition.Run(&r.keys[i]); tied && r.plan.Ties {
		p.Values = string(index.AppendValues(nil, r.valuesOf(&it.Item)))
	}
	return p
}

// Examined returns the number of entries that were examined for the last slice, and of look-ups in vain.
func (r *indexReader) Examined() int { return r.examined + r.slice.Missed }

// Dead returns the dead entries that were met in the last slice. An item may have several.
func (r *indexReader) Dead() []deadEntry { return r.dead }

// Read reads the next slice. All partitions must be locked.
func (r *indexReader) Read() error {
	r.limits = r.source.Policy().DeadLimits(r.source.Now())
	r.slice = Slice{Items: r.slice.Items[:0]}
	r.keys, r.dead, r.examined = r.keys[:0], r.dead[:0], 0
	read := r.readPartitions
	if r.plan.Ordered {
		read = r.readOrdered
	}
	end, err := read()
	r.examineFound()
	r.slice.Last = end
	r.size = nextSlice(r.size)
	return err
}

// Slice returns the slice that was read. Its items are valid until the next is read.
func (r *indexReader) Slice() Slice {
	r.sortRuns()
	return r.slice
}

// readPartitions reads one partition after the other. end says that nothing follows.
func (r *indexReader) readPartitions() (end bool, err error) {
	for ; r.at.Partition < r.source.Partitions(); r.at = (Place{Partition: r.at.Partition + 1}) {
		if more, err := r.readPartition(r.at.Partition); more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readPartition reads the rest of a partition, or as much as a slice holds; more says that it has not read
// all.
func (r *indexReader) readPartition(number int) (more bool, err error) {
	t, tree, err := r.tree(number)
	if tree == nil {
		return false, err
	}
	living, before := t.NoneWithin(r.limits), r.examined
	for i := range r.plan.Spans {
		if r.missed(&r.plan.Spans[i]) {
			return true, nil
		}
		cursor, ok := r.open(tree, &r.plan.Spans[i])
		for ; ok; ok = cursor.Next() {
			if r.full() {
				if r.examined > before { // else the last entry is of another partition
					r.pause()
				}
				return true, nil
			}
			r.add(number, t, living, &cursor)
		}
	}
	return false, nil
}

// tree returns the tree of the plan's index in a partition, nil if the container has no items there.
func (r *indexReader) tree(partition int) (*memtable.Table, *index.Tree, error) {
	items, trees := r.source.Part(partition)
	if items == nil {
		return nil, nil, nil
	}
	tree := trees.Tree(r.plan.Index)
	if tree == nil || !r.plan.Index.Ready() {
		return nil, nil, ErrIndexGone
	}
	return items, tree, nil
}

// open returns a cursor over the part of a range behind the place.
func (r *indexReader) open(tree *index.Tree, s *index.Span) (c index.Cursor, ok bool) {
	low, high := &s.Low, &s.High
	if r.at.Any {
		behind := r.at.Bound
		if !r.at.at {
			behind = behind.Behind(r.plan.Desc)
		}
		if run, tied := r.plan.Index.Definition.Run(&r.at.Bound.Key); tied && r.plan.Ties && r.at.Values != "" {
			if behind = run.Low; r.plan.Desc {
				behind = run.High
			}
		}
		switch {
		case !r.plan.Desc && low.Compare(&behind) < 0:
			low = &behind
		case r.plan.Desc && high.Compare(&behind) > 0:
			high = &behind
		}
		if low.Compare(high) >= 0 {
			return c, false
		}
	}
	if c, ok = tree.Range(low, high, r.plan.Desc); !ok {
		r.slice.Missed++
	}
	return c, ok
}

// missed reports whether look-ups that found nothing have filled the slice. If so, the next goes on with a
// range.
func (r *indexReader) missed(s *index.Span) bool {
	if r.slice.Missed < Entries {
		return false
	}
	r.at = Place{Partition: r.at.Partition, Bound: s.Low, Any: true, at: true}
	if r.plan.Desc {
		r.at.Bound = s.High
	}
	return true
}

// full reports whether the slice holds as much as it may.
func (r *indexReader) full() bool {
	switch {
	case r.examined >= r.size || len(r.dead)+len(r.found) >= sliceDead:
		r.examineFound()
		return r.examined >= r.size || len(r.dead) >= sliceDead
	case len(r.found) == foundTogether:
		r.examineFound()
	}
	return false
}

// add adds the current entry of a tree to those found. living says that no item of its table is dead: then an
// entry that is only counted is not read.
func (r *indexReader) add(partition int, t *memtable.Table, living bool, c *index.Cursor) {
	r.examined++
	r.behindRun = false
	r.last = foundEntry{partition, t, memtable.Handle(c.Handle()), c.Key()}
	if living && r.counts(&r.last.key) {
		r.slice.Counted++
	} else {
		r.found = append(r.found, r.last)
	}
}

// counts reports whether an entry under a key is only counted if it lives.
func (r *indexReader) counts(k *index.Key) bool { return r.plan.Count && r.plan.Proven && !k.Cut }

// examineFound adds the items of the entries found to the slice, or to the dead. It reads all entries first:
// no read waits for another, so the cache misses overlap.
func (r *indexReader) examineFound() {
	for i := range r.found {
		f := &r.found[i]
		r.touched += f.t.At(f.handle).Version()
	}
	for i := range r.found {
		f := &r.found[i]
		switch e := f.t.At(f.handle); {
		case e.Within(r.limits):
			r.dead = append(r.dead, deadEntry{f.partition, e})
		case r.counts(&f.key):
			r.slice.Counted++
		default:
			it := Item{partition: f.partition, Proven: !f.key.Cut}
			it.ID, it.Item = f.t.IDAndItem(e)
			r.slice.Items = append(r.slice.Items, it)
			r.keys = append(r.keys, f.key)
		}
	}
	r.found = r.found[:0]
}

// pause notes where the next slice goes on.
func (r *indexReader) pause() {
	if r.behindRun {
		return
	}
	r.at = Place{Partition: r.at.Partition, Any: true, Bound: index.Bound{Key: r.last.key, ID: r.last.t.ID(r.last.t.At(r.last.handle))}}
}

// readOrdered merges the trees of all partitions.
func (r *indexReader) readOrdered() (end bool, err error) {
	ties := r.plan.Ties && r.plan.Index.Cut() > 0
	spans := r.plan.Spans
	if ties {
		spans = joinRuns(&r.plan.Index.Definition, spans)
	}
	if r.plan.Desc {
		spans = slices.Clone(spans)
		slices.Reverse(spans)
	}
	for i := range spans {
		if r.missed(&spans[i]) {
			return false, nil
		}
		m := merge{desc: r.plan.Desc, list: make([]mergeCursor, 0, r.source.Partitions())}
		for number := range r.source.Partitions() {
			t, tree, err := r.tree(number)
			if err != nil {
				return true, err
			}
			if tree == nil {
				continue
			}
			if cursor, ok := r.open(tree, &spans[i]); ok {
				m.add(mergeCursor{partition: number, t: t, living: t.NoneWithin(r.limits), cursor: cursor})
			}
		}
		for heap.Init(&m); m.Len() > 0; {
			if r.full() {
				r.pause()
				return false, nil
			}
			first := m.first()
			if ties {
				k := first.cursor.Key()
				if run, tied := r.plan.Index.Definition.Run(&k); tied {
					if more, err := r.readRun(&m, &run); more || err != nil {
						return false, err
					}
					continue
				}
			}
			r.add(first.partition, first.t, first.living, &first.cursor)
			m.next()
		}
	}
	return true, nil
}

// merge reads cursors over the trees of partitions in the order of their entries. It implements
// [heap.Interface].
type merge struct {
	list []mergeCursor
	heap []int32 // indexes in list, the first in order at the top
	desc bool
}

type mergeCursor struct {
	partition int
	t         *memtable.Table
	living    bool // no item of the table is dead
	cursor    index.Cursor
}

// add adds a cursor that is at its first entry.
func (m *merge) add(c mergeCursor) {
	c.cursor.ReadAhead()
	m.Push(int32(len(m.list)))
	m.list = append(m.list, c)
}

// first returns the cursor of the first entry.
func (m *merge) first() *mergeCursor { return &m.list[m.heap[0]] }

// next moves behind the first entry.
func (m *merge) next() {
	if m.first().cursor.Next() {
		heap.Fix(m, 0)
	} else {
		heap.Pop(m)
	}
}

func (m *merge) Len() int { return len(m.heap) }

func (m *merge) Less(i, j int) bool {
	if m.desc {
		i, j = j, i
	}
	return m.list[m.heap[i]].cursor.Less(&m.list[m.heap[j]].cursor)
}

func (m *merge) Swap(i, j int) { m.heap[i], m.heap[j] = m.heap[j], m.heap[i] }
func (m *merge) Push(x any)    { m.heap = append(m.heap, x.(int32)) }

func (m *merge) Pop() any {
	last := len(m.heap) - 1
	x := m.heap[last]
	m.heap = m.heap[:last]
	return x
}
