package predicates

import (
	"fmt"
	"slices"

	"mayfly/query"
)

// IDs are the ids of which WHERE selects some, so that those can be looked up.
type IDs struct {
	List    []string // in the order in which they are read
	Ordered bool     // ORDER BY is this order
	Proves  []int    // the numbers of the conditions that the ids prove
	Range   string   // in words, for EXPLAIN
}

// IDsOf returns the ids that a query demands. ok is false if it does not demand some of a list.
func IDsOf(q *query.Query) (ids IDs, ok bool) {
	terms := termsOf(q)
	i := slices.IndexFunc(terms, func(t Term) bool { return IsID(t.Path) && t.Equal != nil })
	if i < 0 {
		return ids, false
	}
	values := terms[i].Equal
	for _, v := range values {
		if v.Kind() == query.String {
			ids.List = append(ids.List, v.Text())
		}
	}
	slices.Sort(ids.List)
	ids.Proves = terms[i].Proves
	if ids.Range = fmt.Sprintf("_id of %d values", len(ids.List)); len(values) == 1 {
		ids.Range = "_id = " + query.Short(values[0])
	}
	if order := q.OrderBy(); len(order) > 0 {
		names, isPath := pathOf(order[0].Expr)
		if ids.Ordered = isPath && IsID(names); ids.Ordered && order[0].Desc {
			slices.Reverse(ids.List)
		}
	}
	return ids, true
}

// After returns the ids that are read behind one.
func (i *IDs) After(id string) []string {
	desc := len(i.List) > 1 && i.List[0] > i.List[1]
	at := slices.IndexFunc(i.List, func(next string) bool { return next != id && next > id != desc })
	if at < 0 {
		return nil
	}
	return i.List[at:]
}
