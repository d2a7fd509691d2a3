package geo

import (
	"math"
	"strconv"

	"mayfly/json/jsontext"
)

// earthRadius is the mean radius in metres.
const earthRadius = 6371008.8

// Position is a longitude and a latitude in degrees.
type Position struct{ Lon, Lat float64 }

// Polygon is an outer ring and holes, each closed.
type Polygon [][]Position

// member returns the text of a member of a JSON object; "" if it is missing or repeated.
func member(object, name string) (value string) {
	times := 0
	for w := jsontext.WalkAt(object, 0); w.Next(); {
		if w.Name() == name {
			times++
			value = w.Value()
		}
	}
	if times != 1 {
		return ""
	}
	return value
}

// coordinates returns the array of coordinates of a GeoJSON object of a type; "" if it is no such object.
func coordinates(object, kind string) string {
	if object == "" || object[0] != '{' {
		return ""
	}
	if t := member(object, "type"); t == "" || t[0] != '"' || jsontext.Unquote(t) != kind {
		return ""
	}
	if c := member(object, "coordinates"); c != "" && c[0] == '[' {
		return c
	}
	return ""
}

// Point reads a GeoJSON point.
func Point(object string) (p Position, ok bool) {
	c := coordinates(object, "Point")
	if c == "" {
		return p, false
	}
	return position(c)
}

// position reads [longitude, latitude]. An altitude may follow.
func position(text string) (p Position, ok bool) {
	if text[0] != '[' {
		return p, false
	}
	var numbers [2]float64
	w := jsontext.WalkAt(text, 0)
	for i := range numbers {
		if !w.Next() {
			return p, false
		}
		n, err := strconv.ParseFloat(w.Value(), 64)
		if c := w.Value()[0]; err != nil || c != '-' && (c < '0' || c > '9') {
			return p, false
		}
		numbers[i] = n
	}
	p = Position{numbers[0], numbers[1]}
	return p, math.Abs(p.Lon) <= 360 && math.Abs(p.Lat) <= 90
}

// Distance returns the length of the great circle between two positions, in metres.
func Distance(p, q Position) float64 {
	const radian = math.Pi / 180
	a := math.Sin((q.Lat - p.Lat) * radian / 2)
	b := math.Sin((q.Lon - p.Lon) * radian / 2)
	h := a*a + math.Cos(p.Lat*radian)*math.Cos(q.Lat*radian)*b*b
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// PolygonOf reads a GeoJSON polygon. It returns nil for anything else.
func PolygonOf(object string) (polygon Polygon) {
	c := coordinates(object, "Polygon")
	if c == "" {
		return nil
	}
	for w := jsontext.WalkAt(c, 0); w.Next(); {
		ring := w.Value()
		if ring[0] != '[' {
			return nil
		}
		var positions []Position
		for w := jsontext.WalkAt(ring, 0); w.Next(); {
			p, ok := position(w.Value())
			if !ok {
				return nil
			}
			positions = append(positions, p)
		}
		if n := len(positions); n < 4 || positions[0] != positions[n-1] {
			return nil
		}
		polygon = append(polygon, positions)
	}
	return polygon
}

// Contains reports whether p is in the polygon, in the plane of longitudes and latitudes. A point on the edge
// of a ring is. A ring may go on beyond the meridian of 180 degrees.
func (polygon Polygon) Contains(p Position) bool {
	for _, lon := range []float64{p.Lon, p.Lon + 360, p.Lon - 360} {
		if inPolygon(Position{lon, p.Lat}, polygon) {
			return true
		}
	}
	return false
}

// inPolygon reports whether p is within the outer ring and in none of the holes.
func inPolygon(p Position, rings Polygon) bool {
	for i, ring := range rings {
		inside, edge := inRing(p, ring)
		if i == 0 && !inside && !edge || i > 0 && inside && !edge {
			return false
		}
	}
	return true
}

// inRing reports whether p is inside of the closed ring by the even-odd rule, or on its edge.
func inRing(p Position, ring []Position) (inside, edge bool) {
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		cross := (b.Lon-a.Lon)*(p.Lat-a.Lat) - (b.Lat-a.Lat)*(p.Lon-a.Lon)
		if cross == 0 && p.Lon >= min(a.Lon, b.Lon) && p.Lon <= max(a.Lon, b.Lon) && p.Lat >= min(a.Lat, b.Lat) && p.Lat <= max(a.Lat, b.Lat) {
			return false, true
		}
		if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon < a.Lon+(b.Lon-a.Lon)*(p.Lat-a.Lat)/(b.Lat-a.Lat) {
			inside = !inside
		}
	}
	return inside, false
}
