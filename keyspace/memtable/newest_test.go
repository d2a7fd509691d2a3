package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mayfly/expiry"
)

// TestNewest: Newest returns what Descend visits, in lists of any size, with holes in the insertion order.
func TestNewest(t *testing.T) {
	t.Parallel()
	table, s := newTestTable()
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 3000 {
		putEnd(table, s, fmt.Sprint(i), expiry.Never)
	}
	for range 1400 {
		remove(table, s, fmt.Sprint(random.IntN(3000)))
	}
	for _, size := range []int{1, 7, 512, 5000} {
		for _, below := range []uint64{0, 1, 2, 1500, 3001, 9999} {
			var want, got []Placed
			table.Descend(below, func(seq uint64, e *Entry) (more bool) {
				want = append(want, Placed{seq, e})
				return true
			})
			list := make([]Placed, size)
			for n, at := size, below; n == size; {
				if n = table.Newest(at, list); n > 0 {
					got, at = append(got, list[:n]...), list[n-1].Seq
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("below %d in lists of %d: %d entries, want %d", below, size, len(got), len(want))
			}
		}
	}
}
