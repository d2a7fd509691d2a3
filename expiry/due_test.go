package expiry

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDueIsTheFirstMoment compares Due with what Purgeable selects, for random policies and retentions.
func TestDueIsTheFirstMoment(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	seconds := func(n int64) int64 { return 1000 * (1 + rng.Int64N(n)) }
	policy := func() Policy {
		p := Policy{Default: []TTL{Off, Forever, 1, 2, 5, 20, MaxTTL}[rng.IntN(7)]}
		if rng.IntN(3) == 0 {
			p.InheritDeadTo = seconds(20)
		}
		if rng.IntN(3) == 0 {
			p.OwnDeadTo = seconds(20)
		}
		if rng.IntN(5) == 0 {
			p.Hold = "case 1"
		}
		return p
	}
	kinds := map[string]int{}
	for range 20_000 {
		p := policy()
		var r Retention
		for range rng.IntN(4) {
			r = append(r, Retained{policy(), seconds(40)})
		}
		ts := seconds(30)
		expireAt := []int64{Inherit, Never, ts + seconds(20), CapAt(ts + seconds(20))}[rng.IntN(4)]
		due := r.Due(&p, ts, expireAt)
		for now := int64(500); now < 70_000; now += 500 {
			if got := r.Purgeable(&p, now).Select(ts, expireAt); got != (now >= due) {
				t.Fatalf("due at %d, and at %d removable is %t\npolicy %+v\nretention %+v\nts %d, expireAt %d",
					due, now, got, p, r, ts, expireAt)
			}
		}
		switch {
		case due == NeverDue:
			kinds["never"]++
		case due <= 0:
			kinds["passed"]++
		default:
			kinds["once"]++
		}
		const none = NeverDue
		earliest := none
		switch expireAt {
		case Inherit:
			earliest = r.EarliestDue(&p, ts, none)
		case Never:
			earliest = r.EarliestDue(&p, none, none)
		default:
			earliest = r.EarliestDue(&p, none, expireAt)
			if end, ok := Cap(expireAt); ok {
				earliest = r.EarliestDue(&p, ts, end)
			}
		}
		if earliest != due {
			t.Fatalf("due at %d, and alone in its queue at %d", due, earliest)
		}
	}
	for _, kind := range []string{"never", "passed", "once"} {
		if kinds[kind] < 200 {
			t.Errorf("%v: few cases of %s", kinds, kind)
		}
	}
}

// TestEarliestDueOfBothQueues: the earlier of the two kinds of items decides, and moments far away do not
// wrap around.
func TestEarliestDueOfBothQueues(t *testing.T) {
	t.Parallel()
	p := Policy{Default: 10}
	var r Retention
	for _, tc := range []struct{ byDefault, byOwnTTL, want int64 }{
		{NeverDue, NeverDue, NeverDue},
		{5000, NeverDue, 15_000},
		{NeverDue, 7000, 7000},
		{5000, 7000, 7000},
		{5000, 20_000, 15_000},
		{math.MaxInt64 - 1, NeverDue, NeverDue},
		{math.MaxInt64 - 1, math.MaxInt64 - 1, math.MaxInt64 - 1},
	} {
		if got := r.EarliestDue(&p, tc.byDefault, tc.byOwnTTL); got != tc.want {
			t.Errorf("%d, %d: due at %d, want %d", tc.byDefault, tc.byOwnTTL, got, tc.want)
		}
	}
}
