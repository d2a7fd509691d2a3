package selection

import (
	"cmp"
	"slices"

	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/query"
)

// mostCut is how many strings an index may cut and yet give the order of values: a run of keys that tie is
// read within one slice, and sorted by its documents.
const mostCut = Entries

// longestRun bounds the entries of a run: strings may come while a query reads.
const longestRun = 8 * mostCut

// gives reports whether an index gives the order of values.
func gives(x *index.Index) bool { return x.Cut() <= mostCut }

// runEntry is a living item of a run, or a dead one without values.
type runEntry struct {
	foundEntry
	id     string
	item   record.Item
	values []query.Value
}

// compareRun is the order of two items of a run.
func compareRun(a, b []query.Value, idA, idB string) int {
	if c := slices.CompareFunc(a, b, query.Compare); c != 0 {
		return c
	}
	return cmp.Compare(idA, idB)
}

// joinRuns returns the ascending spans, with those joined that lie in one run: a run is read as a whole. What
// else it has between them is left to the filter.
func joinRuns(d *index.Definition, spans []index.Span) []index.Span {
	joined := make([]index.Span, 0, len(spans))
	for _, s := range spans {
		if run, tied := d.Run(&s.Low.Key); tied && len(joined) > 0 && run.Holds(&joined[len(joined)-1].High.Key) {
			joined[len(joined)-1].High = s.High
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// readRun adds the items of a run, which begins with the first entry of m, in the order of their documents.
// more says that the slice has no room for it.
func (r *indexReader) readRun(m *merge, run *index.Span) (more bool, err error) {
	r.examineFound()
	var entries []runEntry
	for m.Len() > 0 {
		first := m.first()
		k := first.cursor.Key()
		if !run.Holds(&k) {
			break
		}
		if len(entries) == longestRun {
			return false, ErrLongRun
		}
		entries = append(entries, runEntry{foundEntry: foundEntry{first.partition, first.t, memtable.Handle(first.cursor.Handle()), k}})
		m.next()
	}
	if r.examined > 0 && r.examined+len(entries) > Entries {
		r.pause()
		return true, nil
	}
	begin, within := r.runBegin(run)
	living := entries[:0]
	for _, e := range entries {
		r.examined++
		found := e.t.At(e.handle)
		if found.Within(r.limits) {
			r.dead = append(r.dead, deadEntry{e.partition, found})
			continue
		}
		e.id, e.item = e.t.IDAndItem(found)
		e.values = r.valuesOf(&e.item)
		living = append(living, e)
	}
	slices.SortFunc(living, func(a, b runEntry) int {
		if r.plan.Desc {
			a, b = b, a
		}
		return compareRun(a.values, b.values, a.id, b.id)
	})
	for _, e := range living {
		if c := compareRun(e.values, begin, e.id, r.at.Bound.ID); within && (r.plan.Desc && c >= 0 || !r.plan.Desc && c <= 0) {
			continue // of the page before
		}
		r.slice.Items = append(r.slice.Items, Item{ID: e.id, Item: e.item, partition: e.partition})
		r.keys = append(r.keys, e.key)
	}
	r.at = Place{Bound: run.High, Any: true}
	if r.plan.Desc {
		r.at.Bound = run.Low
	}
	r.behindRun = true
	return false, nil
}

// runBegin returns the values behind which a run goes on, if it is that of the place.
func (r *indexReader) runBegin(run *index.Span) (values []query.Value, within bool) {
	if r.at.Values == "" || !run.Holds(&r.at.Bound.Key) {
		return nil, false
	}
	values, _, within = index.ParseValues([]byte(r.at.Values))
	return values, within
}

// valuesOf returns the values of an item at the paths of the index.
func (r *indexReader) valuesOf(it *record.Item) []query.Value {
	if r.values == nil {
		r.values = index.NewReader([]index.Definition{r.plan.Index.Definition})
	}
	return r.values.Load(it.Body, it.TS).Values(0, nil)
}
