package queries

import (
	"math"

	"mayfly/keyspace/index"
	"mayfly/keyspace/selection"
	"mayfly/query/page"
	"mayfly/query/predicates"
)

// Rings around a point that readNearest reads.
const (
	firstRing   = 100.0 // metres
	mostNearest = 100   // rows; more are sorted
)

// chooseNearest plans to read the documents in growing rings around a point, if the query wants few in that
// order and an index over points is there.
func (r *queryRun) chooseNearest() {
	n, ok := predicates.NearestOf(r.query)
	if !ok {
		return
	}
	if plan, ok := selection.Near(r.c.IndexSet(), n, firstRing); ok {
		r.plan, r.indexed, r.nearest = plan, true, &n
	}
}

// readNearest reads the documents near a point, and doubles the distance at least until the page is full of
// documents within it.
func (r *queryRun) readNearest(newResults func() (*page.Page, error)) error {
	for metres := float64(firstRing); ; {
		plan, ok := selection.Near(r.c.IndexSet(), *r.nearest, metres)
		if !ok {
			return errQueryIndexGone
		}
		r.plan = plan
		err := r.x.Tx.Reader(r.c).Index(&plan, selection.Place{}, func(s selection.Slice, _ func(i int) selection.Place) bool {
			return r.examine(s, func(int) string { return "" })
		})
		found, wanted := r.results.Within(metres), r.results.Wanted()
		if err != nil || r.err != nil || r.over || r.x.Abandoned || found >= wanted || metres >= index.FarthestPoint {
			return cursorError(err)
		}
		grow := 4.0
		if found > 0 {
			grow = min(max(1.3*math.Sqrt(float64(wanted)/float64(found)), 2), 8)
		}
		metres = min(metres*grow, index.FarthestPoint)
		if r.results, err = newResults(); err != nil {
			return err
		}
	}
}
