package expiry

import (
	"testing"

	"mayfly/test/drill"
)

// deathOf simulates a life step by step: it looks at every moment before and after each change, and asks
// nothing but whether the rule of that moment has ended the item.
func deathOf(ts, own int64, eras []HistoryEntry, now, step int64) (at int64, cause Cause, policy uint64) {
	ended := func(p Policy, at int64) (Cause, bool) {
		switch {
		case p.Default == Off || own == Never:
		case own > Inherit:
			return ByDocument, own <= at
		case own < Never && -own <= at:
			return ByDocument, true
		case p.Default > 0:
			return ByContainer, ts+int64(p.Default)*1000 <= at
		}
		return "", false
	}
	rule := -1
	for at := eras[0].At; at <= now; at += step {
		if rule >= 0 && at >= ts {
			if cause, dead := ended(eras[rule].Policy, at); dead {
				return at, cause, eras[rule].Etag
			}
		}
		for rule+1 < len(eras) && eras[rule+1].At == at {
			rule++
			if at < ts {
				continue
			}
			if _, dead := ended(eras[rule].Policy, at); dead {
				return at, ByChange, eras[rule].Etag
			}
		}
	}
	return 0, "", 0
}

// TestDeath compares Death with a simulation, and with Policy.Dead, which knows marks only.
func TestDeath(t *testing.T) {
	t.Parallel()
	const step, start = 250, 1_000_000
	rounds := drill.Pick(5000, 15_000, 5_000_000)
	rng := drill.Rand(t)
	rule := func() TTL { return []TTL{Off, Forever, 1, 2, 3, 5, 8}[rng.IntN(7)] }
	causes := map[Cause]int{}
	for range rounds {
		history := []HistoryEntry{{At: start, What: Created, Policy: Policy{Default: rule()}, Etag: 1}}
		eras := append([]HistoryEntry(nil), history...) // without what was undone
		at := int64(start)
		for n := rng.IntN(6); n > 0; n-- {
			at += step * rng.Int64N(12)
			e := HistoryEntry{At: at, Etag: uint64(len(history) + 1)}
			last := len(history) - 1
			if e.What = Set; len(eras) > 1 && history[last].What == Set && rng.IntN(4) == 0 {
				history[last].Undone, e.What = true, Undone
				eras = eras[:len(eras)-1]
				e.Policy = eras[len(eras)-1].Policy
				history = append(history, e)
				continue
			}
			e.Policy = eras[len(eras)-1].Policy.Change(rule(), Strict, at)
			history, eras = append(history, e), append(eras, e)
		}
		now := at + step*rng.Int64N(30)
		ts := start + step*rng.Int64N((now-start)/step+1)
		own := []int64{Inherit, Inherit, Never, ts + 1000*(1+rng.Int64N(6)), CapAt(ts + 500*(1+rng.Int64N(12)))}[rng.IntN(5)]

		gotAt, gotCause, gotPolicy := Death(ts, own, history, now)
		wantAt, wantCause, wantPolicy := deathOf(ts, own, eras, now, step)
		if dead := eras[len(eras)-1].Policy.Dead(ts, own, now); dead != (wantCause != "") {
			t.Fatalf("Policy.Dead is %v, simulated is %q: ts %d own %d now %d history %+v", dead, wantCause, ts, own, now, history)
		}
		if gotCause == ByContainer || gotCause == ByDocument {
			// an undone change may have begun another entry of the same rule
			gotPolicy, wantPolicy = policyAt(history, gotPolicy), policyAt(history, wantPolicy)
		}
		if gotAt != wantAt || gotCause != wantCause || gotPolicy != wantPolicy {
			t.Fatalf("died at %d of %q by %d, simulated %d of %q by %d: ts %d own %d now %d history %+v",
				gotAt, gotCause, gotPolicy, wantAt, wantCause, wantPolicy, ts, own, now, history)
		}
		causes[gotCause]++
	}
	for _, c := range []Cause{"", ByDocument, ByContainer, ByChange} {
		if causes[c] < rounds/100 {
			t.Errorf("only %d of %d histories end with cause %q", causes[c], rounds, c)
		}
	}
}

// policyAt returns the default in seconds of the entry with an etag.
func policyAt(history []HistoryEntry, etag uint64) uint64 {
	for _, h := range history {
		if h.Etag == etag {
			return uint64(h.Policy.Default + 1)
		}
	}
	return 0
}

// TestDeathByMarks holds what counts as the death of items that died before the history begins.
func TestDeathByMarks(t *testing.T) {
	t.Parallel()
	began := HistoryEntry{At: 5000, What: Set, Policy: Policy{Default: Forever, InheritDeadTo: 1000, OwnDeadTo: 4000}, Etag: 7}
	swapped := HistoryEntry{At: 9000, What: Swapped, Policy: Policy{Default: 100, InheritDeadTo: 2000, OwnDeadTo: 9000}, Etag: 7}
	for _, tc := range []struct {
		history []HistoryEntry
		ts, own int64
		at      int64
		cause   Cause
	}{
		{[]HistoryEntry{began}, 1000, Inherit, 5000, ByChange},
		{[]HistoryEntry{began}, 1001, Inherit, 0, ""},
		{[]HistoryEntry{began}, 500, 4000, 5000, ByChange},
		{[]HistoryEntry{began}, 500, 6000, 6000, ByDocument},
		{[]HistoryEntry{began, swapped}, 1500, Inherit, 9000, ByChange}, // of the other container's rule
		{[]HistoryEntry{began, swapped}, 500, 6000, 9000, ByChange},
		{[]HistoryEntry{began, swapped}, 500, Never, 0, ""},
	} {
		if at, cause, _ := Death(tc.ts, tc.own, tc.history, 20_000); at != tc.at || cause != tc.cause {
			t.Errorf("ts %d, own %d, %d entries: died at %d of %q", tc.ts, tc.own, len(tc.history), at, cause)
		}
	}
}

// TestCleared: the deaths of what lives when a history is cleared are as with the whole history.
func TestCleared(t *testing.T) {
	t.Parallel()
	history := []HistoryEntry{
		{At: 1000, What: Created, Policy: Policy{Default: 60}, Etag: 1, By: "ann", Kills: -1},
		{At: 2000, What: Set, Policy: Policy{Default: 5, InheritDeadTo: -58_000, OwnDeadTo: 2000}, Etag: 2, By: "bob", Kills: 3},
		{At: 9000, What: Held, Policy: Policy{Default: 5, InheritDeadTo: 4000, OwnDeadTo: 9000, Hold: "case"}, Etag: 3, By: "ann", Kills: -1, Reason: "case"},
		{At: 9500, What: Released, Policy: Policy{Default: 5, InheritDeadTo: 4500, OwnDeadTo: 9500}, Etag: 4, By: "ann", Kills: -1, Reason: "case"},
	}
	want := HistoryEntry{At: 2000, What: Set, Policy: history[3].Policy, Etag: 4, Kills: -1}
	if got := Cleared(history); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, own := range []int64{Inherit, 9501, 20_000} {
		at, cause, _ := Death(6000, own, history, 50_000)
		is, by, policy := Death(6000, own, []HistoryEntry{want}, 50_000)
		if is != at || by != cause || policy != 4 {
			t.Errorf("%d: at %d, %s by %d, want %d, %s", own, is, by, policy, at, cause)
		}
	}
}
