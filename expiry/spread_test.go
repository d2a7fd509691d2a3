package expiry

import "testing"

// Each position comes up once a round, whatever the length.
func TestSpreadGoesRound(t *testing.T) {
	for n := 1; n <= 300; n++ {
		var s Spread
		for round := range 3 {
			seen := make([]bool, n)
			for range n {
				i := s.Next(n)
				if i < 0 || i >= n || seen[i] {
					t.Fatalf("length %d, round %d: position %d is out of range or came twice", n, round, i)
				}
				seen[i] = true
			}
		}
	}
}

// Any run of picks is a fair sample of the list: of both halves, of every second and every tenth
// item, of a block anywhere.
func TestSpreadIsFair(t *testing.T) {
	const n, run = 100_000, 200
	var s Spread
	for name, member := range map[string]struct {
		of    func(i int) bool
		share float64
	}{
		"first half":   {func(i int) bool { return i < n/2 }, 0.5},
		"every second": {func(i int) bool { return i%2 == 0 }, 0.5},
		"every fourth": {func(i int) bool { return i%4 == 3 }, 0.25},
		"every tenth":  {func(i int) bool { return i%10 == 0 }, 0.1},
		"a block":      {func(i int) bool { return i >= 33_000 && i < 43_000 }, 0.1},
	} {
		for range 100 {
			hits := 0
			for range run {
				if member.of(s.Next(n)) {
					hits++
				}
			}
			if share := float64(hits) / run; share < member.share-0.08 || share > member.share+0.08 {
				t.Errorf("%s: %.3f of a run of %d, expected %.2f", name, share, run, member.share)
			}
		}
	}
}

// Items that come and go do not keep others from being picked: in four rounds of picks with one
// removal in ten, as [simPool] does it, every item is seen.
func TestSpreadWhileItemsComeAndGo(t *testing.T) {
	const start = 10_000
	var s Spread
	list := make([]int, start)
	for i := range list {
		list[i] = i
	}
	seen := make([]bool, start)
	for pick := range 4 * start {
		i := s.Next(len(list))
		if list[i] < start {
			seen[list[i]] = true
		}
		if pick%10 == 0 {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
		}
		if pick%20 == 0 {
			list = append(list, start+pick)
		}
	}
	for i, ok := range seen {
		if !ok {
			t.Errorf("item %d was never picked", i)
		}
	}
}
