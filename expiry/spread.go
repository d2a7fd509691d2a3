package expiry

import "math/bits"

// Spread picks positions in a list for [Pool.Sample]: each in its turn, but in an order that jumps
// about so that any run of picks lies evenly over the whole list. The zero value is ready. Not safe
// for concurrent use.
//
// Such a run is as good a sample as a random one, whatever the order of the list. But a random draw
// may return to a position just looked at, whereas here all others come up before; an item that dies
// waits for half a round on average, not for a whole one.
//
// The picks are the multiples of an odd number modulo a power of two, 2^b: they visit all numbers
// below it before the first comes again, and those outside the list are passed over. With the odd
// number next to 2^b over the golden ratio they fall into the largest gaps left by earlier ones
// (Knuth, The Art of Computer Programming, volume 3, 6.4, theorem S). As b only changes when the
// list doubles or halves, the round stays in step while items come and go.
type Spread struct{ at uint64 }

// Next gives a position in a list of n, 0 to n-1. n is at least 1 and may differ from call to call.
func (s *Spread) Next(n int) int {
	const golden uint64 = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	b := bits.Len(uint(n - 1))
	step := golden>>(64-b) | 1
	for {
		s.at = (s.at + step) & (1<<b - 1)
		if s.at < uint64(n) {
			return int(s.at)
		}
	}
}
