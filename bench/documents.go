package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
)

// anyID is an id in the notation of redis-benchmark, which puts a random number of twelve digits for
// __rand_int__.
const anyID = "key:__rand_int__"

// id returns the i-th id of a set, in the form that redis-benchmark gives ids of the set "key".
func id(set string, i int) string {
	b := make([]byte, 0, 32)
	b = append(b, set...)
	b = append(b, ':')
	digits := strconv.Itoa(i)
	for range 12 - len(digits) {
		b = append(b, '0')
	}
	return string(append(b, digits...))
}

// bodySize is the length of the documents in bytes.
const bodySize = 285

// body returns a document of bodySize bytes. A negative ttl is left out.
func body(i, ttl int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%d,"customer":"c-%05d","total":%d.%02d,`, i, i%99991, i%900, i%100)
	if ttl >= 0 {
		fmt.Fprintf(&b, `"ttl":%d,`, ttl)
	}
	b.WriteString(`"note":"`)
	for b.Len() < bodySize-2 {
		b.WriteByte("lorem ipsum dolor sit amet "[b.Len()%27])
	}
	b.WriteString(`"}`)
	return b.String()
}

// zipfIDs draws ids by Zipf's law with an exponent just above one, as the workloads of YCSB do: few
// ids are drawn often and most rarely.
type zipfIDs struct {
	zipf *rand.Zipf
	n    uint64
}

func newZipfIDs(rng *rand.Rand, n int) *zipfIDs {
	return &zipfIDs{rand.NewZipf(rng, 1.01, 1, uint64(n-1)), uint64(n)}
}

// next returns a number below n. The popular numbers are spread over the whole range.
func (p *zipfIDs) next() int {
	const odd = 0x9e3779b97f4a7c15 // derived from the golden ratio
	high, _ := bits.Mul64((p.zipf.Uint64()+1)*odd, p.n)
	return int(high)
}
