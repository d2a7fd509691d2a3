package rotation

import (
	"math/rand/v2"
	"testing"

	_ "mayfly/test/drill" // its flags
)

type member struct{ place int }

func (m *member) Place() *int { return &m.place }

// TestList adds and removes members at random and compares the list with a set.
func TestList(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var l List[*member]
	there := make(map[*member]bool)
	for i := range 10_000 {
		grow := i < 6000
		if grow != (random.IntN(4) == 0) {
			m := new(member)
			l.Add(m)
			there[m] = true
		} else {
			for m := range there {
				l.Remove(m)
				delete(there, m)
				break
			}
		}
		if l.Len() != len(there) {
			t.Fatalf("%d members, want %d", l.Len(), len(there))
		}
	}
	seen := make(map[*member]int)
	const n = 7
	for from := 0; from < len(there); from += n {
		for _, m := range l.Some(nil, from, min(n, len(there)-from)) {
			seen[m]++
			if !there[m] {
				t.Fatal("a removed member is there")
			}
		}
	}
	for m := range there {
		if seen[m] != 1 {
			t.Fatalf("a member came %d times in a turn", seen[m])
		}
	}
	if got := len(l.Some(nil, 5, 1<<30)); got != len(there) {
		t.Errorf("%d members of %d", got, len(there))
	}
}
