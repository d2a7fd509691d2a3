package query

import "mayfly/query/geo"

// Nearest is ORDER BY ST_DISTANCE(path, point): the documents nearest to a point come first.
type Nearest struct {
	Path []string // names of members
	From geo.Position
}

// Nearest returns the point from which the query orders documents. ok is false if it does not order them so, nearest
// first and by nothing else.
func (q *Query) Nearest() (n Nearest, ok bool) {
	if len(q.orderBy) != 1 || q.orderBy[0].desc || q.grouped || q.distinct {
		return n, false
	}
	c, isCall := q.orderBy[0].expr.(*call)
	if !isCall || c.function.name != "ST_DISTANCE" {
		return n, false
	}
	path, point := c.args[0], c.args[1]
	if _, isLiteral := path.(*literal); isLiteral {
		path, point = point, path
	}
	centre, isLiteral := point.(*literal)
	if n.Path, ok = namesOf(path); !ok || !isLiteral || centre.value.kind != Object || OfID(n.Path) {
		return n, false
	}
	n.From, ok = geo.Point(centre.value.text)
	return n, ok
}
