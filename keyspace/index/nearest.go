package index

import (
	"fmt"
	"slices"

	"mayfly/query/predicates"
)

// FarthestPoint is a distance in metres that reaches all points.
const FarthestPoint = 20_100_000

// Near returns the plan of an index over points that reads those within a distance in metres. ok is false if
// the index is over something else.
func Near(d *Definition, n predicates.Nearest, metres float64) (p Plan, ok bool) {
	if !d.geo || !slices.Equal(d.paths[0], n.Path) {
		return p, false
	}
	return Plan{Spans: cells(n.From.Around(metres)), closed: true, Range: fmt.Sprintf("%s within %.0f m of %g, %g", d.Pointers()[0], metres, n.From.Lon, n.From.Lat)}, true
}
