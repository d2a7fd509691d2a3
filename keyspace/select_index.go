package keyspace

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/query"
)

// Plan is how a query reads a container: through an index.
type Plan struct {
	index.Plan
	Index *Index
	Count bool // entries that prove all conditions are counted, and their documents not read
	First int  // entries of the first slice: see firstSlice
}

// Plan returns the plan of the index that serves a query best, of those with a definition unless that is "". ok is
// false if none does; then the query scans.
func (c *Container) Plan(q *query.Query, definition string) (p Plan, ok bool) {
	var ready []*Index
	var definitions []index.Definition
	for _, ix := range c.Indexes() {
		if ix.Ready() && (definition == "" || definition == ix.Definition.String()) {
			ready = append(ready, ix)
			definitions = append(definitions, ix.Definition)
		}
	}
	exact := func(i int) bool { return ready[i].Exact() }
	if p.Plan, ok = index.Choose(definitions, exact, q); ok {
		p.Index = ready[p.Plan.Index]
	}
	return p, ok
}

// AdviseIndex returns the paths of an index that would serve a query better than its plan, as INDEX.CREATE takes them;
// "" if there is none.
func AdviseIndex(q *query.Query, indexed bool, p *Plan) string {
	if !indexed {
		return index.Advise(q, nil)
	}
	return index.Advise(q, &p.Plan)
}

// ErrIndexGone is the error of a query whose index was dropped since it was planned.
var ErrIndexGone = errors.New("the index of the query is gone")

// Place is where a query goes on in an index.
type Place struct {
	Partition int         // that is read; an ordered plan reads all at a time
	Bound     index.Bound // behind the last entry
	Any       bool        // false for the beginning
}

// Text returns the place for a cursor. [ParsePlace] reads it.
func (p Place) Text() string {
	out := binary.AppendUvarint(nil, uint64(p.Partition))
	if !p.Any {
		return string(append(out, 0))
	}
	return string(append(p.Bound.Key.AppendBinary(append(out, 1)), p.Bound.ID...))
}

// ParsePlace reads what [Place.Text] has written.
func ParsePlace(text string) (p Place, ok bool) {
	n, size := binary.Uvarint([]byte(text))
	if size <= 0 || len(text) == size || n >= record.MaxPartitions {
		return p, false
	}
	p.Partition = int(n)
	if p.Any = text[size] == 1; !p.Any {
		return p, len(text) == size+1
	}
	k, id, ok := index.ParseKey([]byte(text[size+1:]))
	p.Bound = index.Bound{Key: k, ID: string(id)}
	return p, ok
}

// SelectIndex passes the living items in the ranges of a plan to visit in slices, from a place on, until visit returns
// false. The items of an ordered plan come in its order, those of another by partition. SelectIndex removes the dead
// that it meets.
//
// All partitions are locked while a slice is gathered, and no partition is while visit runs, but those that the
// transaction has locked. An item comes once, unless its keys change meanwhile.
func (tx *Tx) SelectIndex(c *Container, p *Plan, from Place, visit func(s Slice, place func(i int) Place) (more bool)) error {
	r := indexReader{tx: tx, c: c, plan: p, at: from, size: firstSlice(p.First)}
	for {
		end, err := r.gather()
		if err != nil {
			return err
		}
		if r.examined > 0 && !visit(Slice{Items: r.items, Dead: r.dead, Last: end, Counted: r.counted}, r.place) || end {
			return nil
		}
		r.size = nextSlice(r.size)
	}
}

// sliceDead bounds the dead of a slice: to remove one from all indexes takes longer than to examine an entry.
const sliceDead = 128

// indexReader is the state of SelectIndex.
type indexReader struct {
	tx   *Tx
	c    *Container
	plan *Plan
	at   Place

	policy *expiry.Policy // of the slice

	items    []Selected
	keys     []index.Key // of items
	deadOnes []deadEntry
	dead     int
	examined int
	counted  int
	size     int // entries of the slice

	last    deadEntry // the entry examined last, and its key
	lastKey index.Key
}

// deadEntry is a dead entry that was met.
type deadEntry struct {
	t *table
	e *memtable.Entry
}

// place returns the place behind an item of the last slice.
func (r *indexReader) place(i int) Place {
	return Place{Partition: r.items[i].partition, Bound: index.Bound{Key: r.keys[i], ID: r.items[i].ID}, Any: true}
}

// gather reads the next slice, with all partitions locked. end says that nothing follows.
func (r *indexReader) gather() (end bool, err error) {
	r.items, r.keys, r.deadOnes = r.items[:0], r.keys[:0], r.deadOnes[:0]
	r.dead, r.examined, r.counted = 0, 0, 0
	for _, p := range r.tx.ks.partitions {
		if !r.tx.holds(p) {
			p.mu.Lock()
			defer p.mu.Unlock()
			defer p.cleanLocked()
		}
	}
	defer r.removeDead()
	r.policy = r.c.Policy()
	if r.plan.Ordered {
		return r.gatherOrdered()
	}
	for ; r.at.Partition < len(r.tx.ks.partitions); r.at = (Place{Partition: r.at.Partition + 1}) {
		if more, err := r.readPartition(r.tx.ks.partitions[r.at.Partition]); more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readPartition reads the rest of a partition, or as much as a slice holds; more says that it has not read all.
func (r *indexReader) readPartition(p *partition) (more bool, err error) {
	t, tree, err := r.tree(p)
	if tree == nil {
		return false, err
	}
	for i := range r.plan.Spans {
		cursor, ok := r.open(tree, &r.plan.Spans[i])
		for ; ok; ok = cursor.Next() {
			if r.examined == r.size || len(r.deadOnes) == sliceDead {
				r.pause()
				return true, nil
			}
			r.examine(t, &cursor)
		}
	}
	return false, nil
}

// tree returns the tree of the plan's index in a partition, nil if the container has no items there.
func (r *indexReader) tree(p *partition) (*table, *index.Tree, error) {
	r.tx.saw(p.lastWrite)
	t := r.c.tables[p.number]
	if t == nil {
		return nil, nil, nil
	}
	tree := t.indexed.Tree(r.plan.Index)
	if tree == nil || !r.plan.Index.Ready() {
		return nil, nil, ErrIndexGone
	}
	return t, tree, nil
}

// open returns a cursor over the part of a range behind the place.
func (r *indexReader) open(tree *index.Tree, s *index.Span) (c index.Cursor, ok bool) {
	low, high := &s.Low, &s.High
	if r.at.Any {
		behind := r.at.Bound.Behind(r.plan.Desc)
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
	return tree.Range(low, high, r.plan.Desc)
}

// examine adds the item of an entry to the slice, or to the dead.
func (r *indexReader) examine(t *table, c *index.Cursor) {
	r.examined++
	e := t.At(memtable.Handle(c.Handle()))
	r.last, r.lastKey = deadEntry{t, e}, c.Key()
	switch proven := r.plan.Proven && !r.lastKey.Cut; {
	case e.Dead(r.policy, r.tx.now):
		r.deadOnes = append(r.deadOnes, r.last)
	case proven && r.plan.Count:
		r.counted++
	default:
		r.items = append(r.items, Selected{ID: t.ID(e), Item: t.Item(e), partition: t.p.number, Proven: proven})
		r.keys = append(r.keys, r.lastKey)
	}
}

// pause notes where the next slice goes on.
func (r *indexReader) pause() {
	r.at.Any, r.at.Bound = true, index.Bound{Key: r.lastKey, ID: r.last.t.ID(r.last.e)}
}

// removeDead removes the dead that were met. An item may have several entries.
func (r *indexReader) removeDead() {
	if r.tx.ks.keepsDead(r.tx.now) {
		r.dead = len(r.deadOnes)
		return
	}
	for _, v := range r.deadOnes {
		if v.e.Present() {
			r.tx.removeDead(v.t, []*memtable.Entry{v.e})
			r.dead++
		}
	}
	r.deadOnes = r.deadOnes[:0]
}

// gatherOrdered is gather for an ordered plan: it merges the trees of all partitions.
func (r *indexReader) gatherOrdered() (end bool, err error) {
	spans := r.plan.Spans
	if r.plan.Desc {
		spans = slices.Clone(spans)
		slices.Reverse(spans)
	}
	for i := range spans {
		m := merge{desc: r.plan.Desc}
		for _, p := range r.tx.ks.partitions {
			t, tree, err := r.tree(p)
			if err != nil {
				return true, err
			}
			if tree == nil {
				continue
			}
			if cursor, ok := r.open(tree, &spans[i]); ok {
				m.list = append(m.list, mergeCursor{t, cursor})
			}
		}
		heap.Init(&m)
		for len(m.list) > 0 {
			if r.examined == r.size || len(r.deadOnes) == sliceDead {
				r.pause()
				return false, nil
			}
			first := &m.list[0]
			r.examine(first.t, &first.cursor)
			if first.cursor.Next() {
				heap.Fix(&m, 0)
			} else {
				heap.Pop(&m)
			}
		}
	}
	return true, nil
}

// merge is a heap of cursors over the trees of partitions.
type merge struct {
	list []mergeCursor
	desc bool
}

type mergeCursor struct {
	t      *table
	cursor index.Cursor
}

func (m *merge) Len() int { return len(m.list) }
func (m *merge) Less(i, j int) bool {
	if m.desc {
		i, j = j, i
	}
	return m.list[i].cursor.Less(&m.list[j].cursor)
}
func (m *merge) Swap(i, j int) { m.list[i], m.list[j] = m.list[j], m.list[i] }
func (m *merge) Push(x any)    { m.list = append(m.list, x.(mergeCursor)) }
func (m *merge) Pop() any {
	last := m.list[len(m.list)-1]
	m.list = m.list[:len(m.list)-1]
	return last
}

// PlanNear returns the plan of an index that reads the documents within a distance in metres. ok is false if no index
// serves.
func (c *Container) PlanNear(n query.Nearest, metres float64) (p Plan, ok bool) {
	for _, ix := range c.Indexes() {
		if p.Plan, ok = index.Near(&ix.Definition, n, metres); ok && ix.Ready() {
			p.Index = ix
			return p, true
		}
	}
	return p, false
}
