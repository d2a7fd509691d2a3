package tables

import (
	"math/rand/v2"
	"testing"
)

// TestRotation adds and removes tables at random and compares the list with a set.
func TestRotation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var r rotation[*container]
	there := make(map[*Table[*container]]bool)
	for i := range 10_000 {
		grow := i < 6000
		if grow != (random.IntN(4) == 0) {
			m := new(Table[*container])
			r.add(m)
			there[m] = true
		} else {
			for m := range there {
				r.remove(m)
				delete(there, m)
				break
			}
		}
		if r.Len() != len(there) {
			t.Fatalf("%d tables, want %d", r.Len(), len(there))
		}
	}
	seen := make(map[*Table[*container]]int)
	const n = 7
	for from := 0; from < len(there); from += n {
		for _, m := range r.Some(nil, from, min(n, len(there)-from)) {
			seen[m]++
			if !there[m] {
				t.Fatal("a removed table is there")
			}
		}
	}
	for m := range there {
		if seen[m] != 1 {
			t.Fatalf("a table came %d times in a turn", seen[m])
		}
	}
	if got := len(r.Some(nil, 5, 1<<30)); got != len(there) {
		t.Errorf("%d tables of %d", got, len(there))
	}
}
