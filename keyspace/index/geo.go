package index

import (
	"math"
	"slices"

	"mayfly/query"
	"mayfly/query/geo"
)

// cellOf returns the place of a position on the Z-order curve over longitude and latitude: 32 bits of each,
// interleaved.
func cellOf(lon, lat float64) uint64 {
	return spread(scaled(lon, 180))<<1 | spread(scaled(lat, 90))
}

// scaled maps -limit to limit to 32 bits. What lies beyond is at the border.
func scaled(degrees, limit float64) uint32 {
	for degrees > limit && limit == 180 {
		degrees -= 360
	}
	for degrees < -limit && limit == 180 {
		degrees += 360
	}
	return uint32(min(max((degrees+limit)/(2*limit)*(1<<32), 0), math.MaxUint32))
}

// spread puts a zero before each bit.
func spread(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000FFFF0000FFFF
	x = (x | x<<8) & 0x00FF00FF00FF00FF
	x = (x | x<<4) & 0x0F0F0F0F0F0F0F0F
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// cellKey is the key of a cell.
func cellKey(cell uint64) Key { return Key{kind: query.Number, prefix: cell, Cut: true} }

// maxCells bounds the ranges of cells that cover an area.
const maxCells = 16

// cells returns ranges of cells that cover an area, ascending and apart.
func cells(a *geo.Area) (spans []Span) {
	type box struct{ west, south, east, north float64 }
	boxes := []box{{a.West, a.South, a.East, a.North}}
	switch {
	case a.East-a.West >= 360:
		boxes[0].west, boxes[0].east = -180, 180
	case a.East >= 180: // the meridian of 180 degrees is on both borders
		boxes = []box{{a.West, a.South, 180, a.North}, {-180, a.South, a.East - 360, a.North}}
	case a.West <= -180:
		boxes = []box{{a.West + 360, a.South, 180, a.North}, {-180, a.South, a.East, a.North}}
	}
	var ranges []cellRange
	for _, b := range boxes {
		ranges = append(ranges, cover(scaled(b.west, 180), scaled(b.south, 90), scaled(b.east, 180), scaled(b.north, 90), maxCells/len(boxes))...)
	}
	slices.SortFunc(ranges, func(a, b cellRange) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	last := uint64(0) // of the spans
	for i, r := range ranges {
		switch {
		case i > 0 && r.last <= last:
			continue
		case i > 0 && r.first <= last+1 && last < math.MaxUint64:
			spans[len(spans)-1].High.Key = cellKey(r.last)
		default:
			spans = append(spans, Span{Low: Bound{Key: cellKey(r.first)}, High: Bound{Key: cellKey(r.last), After: true}})
		}
		last = r.last
	}
	return spans
}

// cellRange is a range of cells, both ends included.
type cellRange struct{ first, last uint64 }

// square is a square of the map with the cells of one prefix of the curve.
type square struct {
	lon, lat uint32 // of the corner
	bits     int    // that are free in each direction
}

// cover returns at most most ranges of cells that cover a box: squares that touch the box, split while there
// is room, the largest first.
func cover(west, south, east, north uint32, most int) (ranges []cellRange) {
	open := []square{{0, 0, 32}}
	for {
		var next []square
		for _, s := range open {
			if s.bits == 0 || s.inside(west, south, east, north) {
				next = append(next, s)
				continue
			}
			half := s.bits - 1
			for _, corner := range [4][2]uint32{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
				part := square{s.lon + corner[0]<<half, s.lat + corner[1]<<half, half}
				if part.touches(west, south, east, north) {
					next = append(next, part)
				}
			}
		}
		if len(next) > most || slices.Equal(next, open) {
			break
		}
		open = next
	}
	for _, s := range open {
		first := spread(s.lon)<<1 | spread(s.lat)
		last := uint64(math.MaxUint64)
		if s.bits < 32 {
			last = first + 1<<(2*s.bits) - 1
		}
		ranges = append(ranges, cellRange{first, last})
	}
	return ranges
}

// ends returns the last column and row of the square.
func (s square) ends() (lon, lat uint32) {
	width := uint32(1<<s.bits - 1)
	if s.bits == 32 {
		width = math.MaxUint32
	}
	return s.lon + width, s.lat + width
}

func (s square) inside(west, south, east, north uint32) bool {
	lon, lat := s.ends()
	return s.lon >= west && lon <= east && s.lat >= south && lat <= north
}

func (s square) touches(west, south, east, north uint32) bool {
	lon, lat := s.ends()
	return s.lon <= east && lon >= west && s.lat <= north && lat >= south
}
