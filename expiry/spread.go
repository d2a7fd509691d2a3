package expiry

import "math/bits"

// Spread picks positions in a list for [Pool.Sample], evenly over the whole of it: the fractional
// parts of the multiples of the golden ratio, scaled to the list's length. The zero value is ready.
// Not safe for concurrent use.
//
// Any run of picks lies about equidistant in the list, so that it is as good a sample as a random
// one, whatever the order of the list. But a random draw returns to a place it has just looked at
// as likely as to one not seen for long, whereas these go round: each position comes up once every
// n picks or so. An item that dies therefore waits for n/2 picks on average, not for n. See Knuth,
// The Art of Computer Programming, volume 3, 6.4, theorem S.
type Spread struct {
	at uint64 // the fraction in units of 2^-64
}

// Next gives a position in a list of n, 0 to n-1. n is at least 1 and may differ from call to call.
func (s *Spread) Next(n int) int {
	s.at += 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	position, _ := bits.Mul64(s.at, uint64(n))
	return int(position)
}
