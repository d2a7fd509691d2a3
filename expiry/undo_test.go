package expiry

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOldest makes histories at random. What goes from a full one ends no window as long as something says
// nothing any more, and then changes no death.
func TestOldest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 2))
	spared, lost := 0, 0
	for range 300 {
		now, etag := int64(1000), uint64(1)
		history := []HistoryEntry{{At: now, What: Created, Policy: Policy{Default: 600}, Etag: etag}}
		for range 100 {
			now += rng.Int64N(4000)
			newest := history[len(history)-1]
			next := HistoryEntry{At: now, What: Flushed, Policy: newest.Policy, Etag: newest.Etag}
			switch windows := Windows(history, now); {
			case newest.Policy.Hold != "": // nothing else changes
				etag++
				next.What, next.Etag, next.Policy = Released, etag, newest.Policy.WithHold("", now)
			case rng.IntN(2) == 0 && len(windows) > 0:
				w := windows[len(windows)-1]
				history, etag = TakeBack(history, w.Entry), etag+1
				next.What, next.Policy, next.Etag = Undone, w.Former, etag
			case rng.IntN(20) > 0 && len(windows) < MostWindows:
				etag++
				next.What, next.Etag, next.Undo = Set, etag, now+100_000
				next.Policy = newest.Policy.Change(TTL(1+rng.IntN(600)), Strict, now)
			case rng.IntN(2) == 0:
				etag++
				next.What, next.Etag, next.Policy = Held, etag, newest.Policy.WithHold("case", now)
			}
			if len(history) < MostHistory {
				history = append(history, next)
				continue
			}
			at, before := Oldest(history, &next), Windows(history, now)
			redundant := slices.ContainsFunc(history[1:], func(h HistoryEntry) bool { return h.Undone })
			history = append(history, next)
			left := slices.Delete(slices.Clone(history), at, at+1)
			switch after := Windows(left[:len(left)-1], now); { // those of a flushed container are set aside with it
			case len(after) < len(before):
				lost++
				if at != 0 || redundant {
					t.Fatalf("without entry %d a window ends: %+v", at, history)
				}
			case !slices.EqualFunc(after, before, func(a, b Window) bool { return a.Former == b.Former && a.Until == b.Until }):
				t.Fatalf("without entry %d the windows are %+v, not %+v", at, after, before)
			}
			if at > 0 && history[0].Etag != next.Etag && history[at].What != Held { // what died at the end of a hold has gone by then
				spared++
				for range 10 {
					ts := history[0].At + rng.Int64N(now-history[0].At+1)
					own := []int64{Inherit, Never, ts + 1 + rng.Int64N(600_000), CapAt(ts + 1 + rng.Int64N(600_000))}[rng.IntN(4)]
					wantAt, want, _ := Death(ts, own, history, now)
					if gotAt, got, _ := Death(ts, own, left, now); gotAt != wantAt || got != want {
						t.Fatalf("without entry %d %d,%d dies at %d of %q, not at %d of %q: %+v", at, ts, own, gotAt, got, wantAt, want, history)
					}
				}
			}
			history = left
		}
	}
	if spared < 300 {
		t.Errorf("%d times another entry than the oldest went, %d times a window ended", spared, lost)
	}
}
