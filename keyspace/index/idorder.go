package index

import (
	"encoding/binary"
	"strings"
)

// idOrder maps ids to numbers of idBits bits that grow with them. Entries of equal keys hold the number of
// their id, so most of them are in order without a look at the ids. Ids that share a number are compared.
//
// Ids of one kind begin alike, so the common beginning is left out. A number that follows it is held as a
// floating-point number is: ids like order:000000123456 differ in the last digits.
type idOrder struct {
	common string // what ids begin with
	digits bool   // a digit follows in all of them
}

const (
	idBits    = 28
	lastOrder = 1<<idBits - 1

	mostZeros      = 15
	symbols        = 6  // of a number that are held
	symbolsOfDigit = 12 // the digits, what is below them, and what is above
)

// of returns the number of an id.
func (o *idOrder) of(id string) uint32 {
	if !strings.HasPrefix(id, o.common) {
		if id < o.common {
			return 0
		}
		return lastOrder
	}
	rest := id[len(o.common):]
	if !o.digits {
		var bytes [4]byte
		copy(bytes[:], rest)
		return binary.BigEndian.Uint32(bytes[:]) >> (32 - idBits)
	}
	zeros := 0
	for zeros < len(rest) && rest[zeros] == '0' {
		zeros++
	}
	rest = rest[zeros:]
	// An id of zeros only is below all others, and the more zeros an id has, the smaller it is.
	if rest == "" || rest[0] < '0' || zeros >= mostZeros {
		return 0
	}
	n := uint32(0)
	for i := range symbols {
		n *= symbolsOfDigit
		if i >= len(rest) {
			continue
		}
		switch c := rest[i]; {
		case c > '9':
			n += symbolsOfDigit - 1
			rest = rest[:i] // what follows does not count
		case c < '0':
			rest = rest[:i]
		default:
			n += uint32(c-'0') + 1
		}
	}
	return uint32(mostZeros-zeros)<<24 | n
}

// idOrderOf returns an order that tells ids apart which are like those that each visits.
func idOrderOf(each func(visit func(id string))) (o idOrder) {
	begun := false
	each(func(id string) {
		if !begun {
			o.common, begun = id, true
		}
		n := 0
		for n < len(o.common) && n < len(id) && o.common[n] == id[n] {
			n++
		}
		o.common = o.common[:n]
	})
	o.common = strings.Clone(strings.TrimRight(o.common, "0123456789")) // other numbers will follow
	o.digits = begun
	each(func(id string) {
		if next := id[len(o.common):]; next == "" || next[0] < '0' || next[0] > '9' {
			o.digits = false
		}
	})
	return o
}
