package query

import (
	"math"

	"mayfly/query/jsontext"
)

// earthRadius is the mean radius in metres.
const earthRadius = 6371008.8

// position is a longitude and a latitude in degrees.
type position struct{ lon, lat float64 }

// pointOf reads a GeoJSON point.
func pointOf(v Value) (p position, ok bool) {
	if v.kind != Object || v.at(step{"type", -1}).text != "Point" {
		return p, false
	}
	return positionOf(v.at(step{"coordinates", -1}))
}

// positionOf reads [longitude, latitude]. An altitude may follow.
func positionOf(v Value) (p position, ok bool) {
	lon, lat := v.at(step{"", 0}), v.at(step{"", 1})
	if lon.kind != Number || lat.kind != Number || math.Abs(lon.num) > 360 || math.Abs(lat.num) > 90 {
		return p, false
	}
	return position{lon.num, lat.num}, true
}

// distance is ST_DISTANCE of two points in metres, on a sphere.
func distance(e *Evaluator, args []Value) Value {
	if e.work(walkWork * (len(args[0].text) + len(args[1].text))); e.err != nil {
		return Value{}
	}
	p, ok := pointOf(args[0])
	q, ok2 := pointOf(args[1])
	if !ok || !ok2 {
		return Value{}
	}
	return NumberValue(haversine(p, q))
}

// haversine returns the length of the great circle between two positions, in metres.
func haversine(p, q position) float64 {
	const radian = math.Pi / 180
	a := math.Sin((q.lat - p.lat) * radian / 2)
	b := math.Sin((q.lon - p.lon) * radian / 2)
	h := a*a + math.Cos(p.lat*radian)*math.Cos(q.lat*radian)*b*b
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// polygonCache keeps the last polygon, which is most often a constant.
type polygonCache struct {
	text  string
	rings [][]position
}

// polygon reads a GeoJSON polygon: an outer ring and holes. It returns nil for anything else.
func (e *Evaluator) polygon(v Value) [][]position {
	if v.kind != Object {
		return nil
	}
	if v.text == e.polygons.text {
		return e.polygons.rings
	}
	if e.work(walkWork * len(v.text)); e.err != nil {
		return nil
	}
	e.polygons = polygonCache{text: v.text, rings: polygonOf(v)}
	return e.polygons.rings
}

func polygonOf(v Value) (rings [][]position) {
	coordinates := v.at(step{"coordinates", -1})
	if v.at(step{"type", -1}).text != "Polygon" || coordinates.kind != Array {
		return nil
	}
	for w := jsontext.WalkAt(coordinates.text, 0); w.Next(); {
		ring := ValueOf(w.Value())
		if ring.kind != Array {
			return nil
		}
		var positions []position
		for w := jsontext.WalkAt(ring.text, 0); w.Next(); {
			p, ok := positionOf(ValueOf(w.Value()))
			if !ok {
				return nil
			}
			positions = append(positions, p)
		}
		if n := len(positions); n < 4 || positions[0] != positions[n-1] {
			return nil
		}
		rings = append(rings, positions)
	}
	return rings
}

// within is ST_WITHIN(point, polygon), in the plane of longitudes and latitudes. A point on the edge of the
// outer ring is within.
func within(e *Evaluator, args []Value) Value {
	e.work(walkWork * len(args[0].text))
	p, ok := pointOf(args[0])
	rings := e.polygon(args[1])
	if !ok || rings == nil {
		return Value{}
	}
	for _, ring := range rings {
		e.work(len(ring) * evalWork)
	}
	// A ring may go on beyond the meridian of 180 degrees.
	for _, lon := range []float64{p.lon, p.lon + 360, p.lon - 360} {
		if inPolygon(position{lon, p.lat}, rings) {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

// inPolygon reports whether p is within the outer ring and in none of the holes.
func inPolygon(p position, rings [][]position) bool {
	for i, ring := range rings {
		inside, edge := inRing(p, ring)
		if i == 0 && !inside && !edge || i > 0 && inside && !edge {
			return false
		}
	}
	return true
}

// inRing reports whether p is inside of the closed ring by the even-odd rule, or on its edge.
func inRing(p position, ring []position) (inside, edge bool) {
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		cross := (b.lon-a.lon)*(p.lat-a.lat) - (b.lat-a.lat)*(p.lon-a.lon)
		if cross == 0 && p.lon >= min(a.lon, b.lon) && p.lon <= max(a.lon, b.lon) && p.lat >= min(a.lat, b.lat) && p.lat <= max(a.lat, b.lat) {
			return false, true
		}
		if (a.lat > p.lat) != (b.lat > p.lat) && p.lon < a.lon+(b.lon-a.lon)*(p.lat-a.lat)/(b.lat-a.lat) {
			inside = !inside
		}
	}
	return inside, false
}

// box is ST_BOX(west, south, east, north), a polygon. With west > east it crosses the meridian of 180 degrees.
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
	if west > east {
		east += 360
	}
	out := []byte(`{"type":"Polygon","coordinates":[[`)
	for i, p := range []position{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}} {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendNumber(append(out, '['), p.lon), ',')
		out = append(appendNumber(out, p.lat), ']')
	}
	return Value{kind: Object, text: string(append(out, "]]}"...))}
}
