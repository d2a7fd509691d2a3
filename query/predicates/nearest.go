package predicates

import (
	"mayfly/query"
	"mayfly/query/geo"
)

// Nearest is ORDER BY ST_DISTANCE(path, point): the documents nearest to a point come first.
type Nearest struct {
	Path []string // names of members
	From geo.Position
}

// NearestOf returns the point from which a query orders documents. ok is false if it does not order them so,
// nearest first and by nothing else.
func NearestOf(q *query.Query) (n Nearest, ok bool) {
	order := q.OrderBy()
	if len(order) != 1 || order[0].Desc || q.Grouped() || q.Distinct() {
		return n, false
	}
	path, v, ok := distanceOf(order[0].Expr)
	if !ok {
		return n, false
	}
	n.Path = path
	n.From, ok = geo.Point(v.Text())
	return n, ok
}
