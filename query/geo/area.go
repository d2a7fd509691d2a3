package geo

import "math"

// Area is a box around all points that a condition can select, in degrees. One that crosses the meridian of
// 180 degrees goes on beyond it.
type Area struct{ West, South, East, North float64 }

// Area returns the box around the polygon's outer ring.
func (polygon Polygon) Area() *Area {
	ring := polygon[0]
	a := &Area{West: ring[0].Lon, East: ring[0].Lon, South: ring[0].Lat, North: ring[0].Lat}
	for _, p := range ring {
		a.West, a.East = min(a.West, p.Lon), max(a.East, p.Lon)
		a.South, a.North = min(a.South, p.Lat), max(a.North, p.Lat)
	}
	return a
}

// Around returns a box around the circle of a radius in metres. It has all longitudes if a pole is in the
// circle.
func (p Position) Around(metres float64) *Area {
	const spare = 1.000001 // covers what rounding cuts off
	degrees := metres / earthRadius * 180 / math.Pi * spare
	a := &Area{West: -180, East: 180, South: max(-90, p.Lat-degrees), North: min(90, p.Lat+degrees)}
	if a.South > -90 && a.North < 90 {
		// The widest parallel of the circle is not that of its centre.
		if s := math.Sin(degrees*math.Pi/180) / math.Cos(p.Lat*math.Pi/180); s < 1 {
			wide := math.Asin(s) * 180 / math.Pi * spare
			a.West, a.East = p.Lon-wide, p.Lon+wide
		}
	}
	return a
}
