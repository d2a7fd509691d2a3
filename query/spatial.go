package query

import (
	"math"

	"mayfly/json/jsontext"
	"mayfly/query/geo"
)

// distance is ST_DISTANCE of two points in metres, on a sphere.
func distance(e *Evaluator, args []Value) Value {
	p, ok := e.point(args[0])
	q, ok2 := e.point(args[1])
	if !ok || !ok2 {
		return Value{}
	}
	return NumberValue(geo.Distance(p, q))
}

// point reads a GeoJSON point.
func (e *Evaluator) point(v Value) (p geo.Position, ok bool) {
	if e.work(walkWork * len(v.text)); v.kind != Object || e.err != nil {
		return p, false
	}
	return geo.Point(v.text)
}

// polygonCache keeps the last polygon, which is most often a constant.
type polygonCache struct {
	text    string
	polygon geo.Polygon
}

// polygon reads a GeoJSON polygon: an outer ring and holes. It returns nil for anything else.
func (e *Evaluator) polygon(v Value) geo.Polygon {
	if v.kind != Object {
		return nil
	}
	if v.text == e.polygons.text {
		e.work(len(v.text) / 16) // compared by words
		return e.polygons.polygon
	}
	if e.work(walkWork * len(v.text)); e.err != nil {
		return nil
	}
	e.polygons = polygonCache{text: v.text, polygon: geo.PolygonOf(v.text)}
	return e.polygons.polygon
}

// cornerWork is the work on a corner of a polygon, in bytes.
const cornerWork = 4

// within is ST_WITHIN(point, polygon).
func within(e *Evaluator, args []Value) Value {
	p, ok := e.point(args[0])
	polygon := e.polygon(args[1])
	if !ok || polygon == nil {
		return Value{}
	}
	for _, ring := range polygon {
		e.work(len(ring) * cornerWork)
	}
	return BoolValue(polygon.Contains(p))
}

// box is ST_BOX(west, south, east, north), a polygon. With west > east it crosses the meridian of 180
// degrees.
func box(e *Evaluator, args []Value) Value {
	for i, v := range args {
		if v.kind != Number || math.Abs(v.num) > []float64{180, 90, 180, 90}[i] {
			return Value{}
		}
	}
	west, south, east, north := args[0].num, args[1].num, args[2].num, args[3].num
	if south > north {
		return Value{}
	}
	switch { // longitudes of a polygon lie within ±360
	case west > east && east > 0:
		west -= 360
	case west > east:
		east += 360
	}
	out := []byte(`{"type":"Polygon","coordinates":[[`)
	for i, p := range [][2]float64{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}} {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendNumber(append(out, '['), p[0]), ',')
		out = append(jsontext.AppendNumber(out, p[1]), ']')
	}
	return Value{kind: Object, text: string(append(out, "]]}"...))}
}
