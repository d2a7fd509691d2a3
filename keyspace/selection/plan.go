package selection

import (
	"fmt"

	"mayfly/keyspace/index"
	"mayfly/query"
	"mayfly/query/predicates"
)

// Plan is how a query reads a container: through an index.
type Plan struct {
	index.Plan
	Index *index.Index
	Count bool // entries that prove all conditions are counted, and their documents not read
	First int  // entries of the first slice: see firstSlice
}

// Choose returns the plan of the index that serves a query best, of those with a definition unless that is
// "". ok is false if none does; then the query scans.
func Choose(set *index.Set, q *query.Query, definition string) (p Plan, ok bool) {
	var ready []*index.Index
	var definitions []index.Definition
	for _, x := range set.List() {
		if x.Ready() && (definition == "" || definition == x.Definition.String()) {
			ready = append(ready, x)
			definitions = append(definitions, x.Definition)
		}
	}
	exact := func(i int) bool { return gives(ready[i]) || definition != "" } // a cursor goes on in the order it has begun
	if p.Plan, ok = index.Choose(definitions, exact, q); ok {
		p.Index = ready[p.Plan.Index]
	}
	return p, ok
}

// Unfit returns why an index with a definition does not serve, although its paths are those of the query. ok
// is false if there is no such index.
func Unfit(set *index.Set, definition string) (why string, ok bool) {
	for _, x := range set.List() {
		switch {
		case x.Definition.String() != definition:
		case !x.Ready():
			return fmt.Sprintf("the index %s is being built", definition), true
		case !gives(x):
			return fmt.Sprintf("the index %s does not give ORDER BY: it has %d strings that it cuts at %d bytes, and sorts at most %d", definition, x.Cut(), index.MaxText, mostCut), true
		default:
			return "", true
		}
	}
	return "", false
}

// Near returns the plan of an index that reads the documents within a distance in metres. ok is false if no
// index serves.
func Near(set *index.Set, n predicates.Nearest, metres float64) (p Plan, ok bool) {
	for _, x := range set.List() {
		if p.Plan, ok = index.Near(&x.Definition, n, metres); ok && x.Ready() {
			p.Index = x
			return p, true
		}
	}
	return p, false
}

// Advise returns the paths of an index that would serve a query better than its plan, as INDEX.CREATE takes
// them; "" if there is none. p is nil if the query has no plan. few says that the query wants few rows.
func Advise(q *query.Query, p *Plan, few bool) string {
	if p != nil {
		return index.Advise(q, &p.Plan)
	}
	paths := index.Advise(q, nil)
	if paths == "" && few {
		return index.AdviseNearest(q)
	}
	return paths
}
