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

// run is a run among the items of a slice.
type run struct {
	from, to int // its items

	// Of the page before, if it has ended within the run.
	within bool
	values []query.Value
	id     string
}

// runItem is an item of a run.
type runItem struct {
	Item
	key    index.Key
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

// readRun adds the items of a run, which begins with the first entry of m, for sortRuns. more says that the
// slice has no room for it.
func (r *indexReader) readRun(m *merge, span *index.Span) (more bool, err error) {
	r.examineFound()
	var entries []foundEntry
	for m.Len() > 0 {
		first := m.first()
		k := first.cursor.Key()
		if !span.Holds(&k) {
			break
		}
		if len(entries) == longestRun {
			return false, ErrLongRun
		}
		entries = append(entries, foundEntry{first.partition, first.t, memtable.Handle(first.cursor.Handle()), k})
		m.next()
	}
	if r.examined > 0 && r.examined+len(entries) > Entries {
		r.pause()
		return true, nil
	}
	added := run{from: len(r.slice.Items)}
	if r.at.Values != "" && span.Holds(&r.at.Bound.Key) {
		added.id = r.at.Bound.ID
		added.values, _, added.within = index.ParseValues([]byte(r.at.Values))
	}
	r.examined += len(entries)
	r.found = append(r.found, entries...)
	r.examineFound()
	added.to = len(r.slice.Items)
	r.runs = append(r.runs, added)
	r.at = Place{Bound: span.High, Any: true}
	if r.plan.Desc {
		r.at.Bound = span.Low
	}
	r.behindRun = true
	return false, nil
}

// sortRuns brings the items of runs into the order of their documents, and leaves out those of the page
// before. It reads whole documents, so no partition need be locked.
func (r *indexReader) sortRuns() {
	if len(r.runs) == 0 {
		return
	}
	items, keys, read := r.slice.Items, r.keys, 0
	r.slice.Items, r.keys = items[:0], keys[:0]
	keep := func(to int) {
		r.slice.Items, r.keys = append(r.slice.Items, items[read:to]...), append(r.keys, keys[read:to]...)
	}
	for _, run := range r.runs {
		keep(run.from)
		read = run.to
		sorted := make([]runItem, 0, run.to-run.from)
		for i := run.from; i < run.to; i++ {
			sorted = append(sorted, runItem{items[i], keys[i], r.valuesOf(&items[i].Item)})
			r.slice.Walked += len(items[i].Item.Body)
		}
		slices.SortFunc(sorted, func(a, b runItem) int {
			if r.plan.Desc {
				a, b = b, a
			}
			return compareRun(a.values, b.values, a.ID, b.ID)
		})
		for _, it := range sorted {
			if c := compareRun(it.values, run.values, it.ID, run.id); run.within && (r.plan.Desc && c >= 0 || !r.plan.Desc && c <= 0) {
				r.slice.Ordered++ // it is of the page before
				continue
			}
			r.slice.Items, r.keys = append(r.slice.Items, it.Item), append(r.keys, it.key)
		}
	}
	keep(len(items))
	r.runs = r.runs[:0]
}

// valuesOf returns the values of an item at the paths of the index.
func (r *indexReader) valuesOf(it *record.Item) []query.Value {
	if r.values == nil {
		r.values = index.NewReader([]index.Definition{r.plan.Index.Definition})
	}
	return r.values.Load(it.Body, it.TS).Values(0, nil)
}
