package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/streams"
	"mayfly/test/drill"
)

// claimArgs are the arguments of XREADGROUP with CLAIM.
func claimArgs(group, consumer string, idle int64, options ...string) []string {
	args := append([]string{"XREADGROUP", "GROUP", group, consumer, "CLAIM", fmt.Sprint(idle)}, options...)
	return append(args, "STREAMS", streamKey, ">")
}

// claim sends XREADGROUP with CLAIM and returns an entry a line: id, idle time and deliveries.
func (w *harness) claim(group, consumer string, idle int64, options ...string) (lines []string) {
	w.t.Helper()
	r := w.do(1, claimArgs(group, consumer, idle, options...)...)
	if r.Kind == engine.KindNullArray {
		return nil
	}
	if r.Kind != engine.KindArray {
		w.t.Fatalf("XREADGROUP replies %s", notation(r))
	}
	for _, e := range r.Elems[0].Elems[1].Elems {
		lines = append(lines, fmt.Sprint(e.Elems[0].Str, " ", e.Elems[2].Int, " ", e.Elems[3].Int))
	}
	return lines
}

// TestClaimsInPieces: CLAIM 0 takes more than fits into a piece of work, each entry once, and looks past
// entries that are gone.
func TestClaimsInPieces(t *testing.T) {
	t.Parallel()
	const n = 2*streams.GroupPiece + 7
	w, ids := newGroupHarness(t, n)
	w.readGroup("g", "a", ">", "COUNT", fmt.Sprint(n-3))
	want := func(ids []string, after string) (lines []string) {
		for _, id := range ids {
			lines = append(lines, id+after)
		}
		return lines
	}
	if got := w.claim("g", "a", 0); !slices.Equal(got, append(want(ids[:n-3], " 0 1"), want(ids[n-3:], " 0 0")...)) {
		t.Errorf("CLAIM 0 returns %d entries: %.300q", len(got), got)
	}
	w.do(1, append([]string{"XDEL", streamKey}, ids[:n-10]...)...)
	w.clock.Advance(time.Second)
	if got := w.claim("g", "b", 1000, "COUNT", "4"); !slices.Equal(got, want(ids[n-10:n-6], " 1000 2")) {
		t.Errorf("after %d deleted entries: %q", n-10, got)
	}
	if got := w.claim("g", "b", 1, "COUNT", "100"); !slices.Equal(got, append(want(ids[n-6:n-3], " 1000 2"), want(ids[n-3:], " 1000 1")...)) {
		t.Errorf("the rest: %q", got)
	}
	if got := w.claim("g", "b", 1); got != nil {
		t.Errorf("nothing is left, but %q", got)
	}
	if got := w.do(1, "XPENDING", streamKey, "g").Elems[0].Int; got != 10 {
		t.Errorf("%d are pending, want the 10 that the log has", got)
	}
}

// TestRandomClaims compares CLAIM with what XPENDING, XCLAIM and XREADGROUP do, on two groups that are in the
// same state.
func TestRandomClaims(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	w, _ := newGroupHarness(t, 0)
	w.expect("OK", "XGROUP", "CREATE", streamKey, "h", "0")
	name := func() string { return string(rune('a' + random.IntN(3))) }
	for range drill.Pick(300, 1000, 20_000) {
		w.clock.Advance(time.Duration(random.IntN(4)) * time.Millisecond)
		switch consumer := name(); random.IntN(8) {
		case 0, 1:
			w.dieOne("c", name())
		case 2:
			for _, g := range []string{"g", "h"} {
				w.do(1, "XREADGROUP", "GROUP", g, consumer, "COUNT", "1", "STREAMS", streamKey, ">")
			}
		case 3:
			if all := idsIn(w.do(1, "XRANGE", streamKey, "-", "+")); len(all) > 0 {
				id, idle := all[random.IntN(len(all))], fmt.Sprint(random.IntN(20))
				if random.IntN(3) == 0 {
					w.do(1, "XDEL", streamKey, id)
					continue
				}
				for _, g := range []string{"g", "h"} {
					w.do(1, "XCLAIM", streamKey, g, consumer, "0", id, "IDLE", idle, "FORCE")
					if idle == "3" {
						w.do(1, "XACK", streamKey, g, id)
					}
				}
			}
		default:
			w.clock.Advance(time.Millisecond) // what is claimed sorts behind all that was pending
			idle, count, options := int64(random.IntN(15)), 1+random.IntN(6), []string(nil)
			if random.IntN(3) == 0 {
				options = []string{"NOACK"}
			}
			got := w.claim("g", consumer, idle, append(options, "COUNT", fmt.Sprint(count))...)
			if want := w.claimByHand("h", consumer, idle, count, options); !slices.Equal(got, want) {
				t.Fatalf("CLAIM %d COUNT %d %q returns %q, want %q", idle, count, options, got, want)
			}
		}
		g, h := notation(w.do(1, "XPENDING", streamKey, "g", "-", "+", "100000")), notation(w.do(1, "XPENDING", streamKey, "h", "-", "+", "100000"))
		if g != h {
			t.Fatalf("pending with CLAIM:\n%s\nby hand:\n%s", g, h)
		}
	}
}

// claimByHand does what CLAIM does with the commands that came before it.
func (w *harness) claimByHand(group, consumer string, idle int64, count int, options []string) (lines []string) {
	w.t.Helper()
	pending := w.do(1, "XPENDING", streamKey, group, "-", "+", "100000").Elems
	slices.SortStableFunc(pending, func(a, b engine.Reply) int { return cmp.Compare(b.Elems[2].Int, a.Elems[2].Int) })
	for _, p := range pending {
		id := p.Elems[0].Str
		gone := len(w.do(1, "XRANGE", streamKey, id, id).Elems) == 0
		if !gone && (len(lines) == count || p.Elems[2].Int < idle) {
			break
		}
		w.do(1, "XCLAIM", streamKey, group, consumer, fmt.Sprint(idle), id)
		if gone { // XCLAIM has removed it
			continue
		}
		lines = append(lines, fmt.Sprint(id, " ", p.Elems[2].Int, " ", p.Elems[3].Int))
	}
	if len(lines) == count {
		return lines
	}
	args := append([]string{"XREADGROUP", "GROUP", group, consumer, "COUNT", fmt.Sprint(count - len(lines))}, options...)
	if r := w.do(1, append(args, "STREAMS", streamKey, ">")...); r.Kind == engine.KindArray {
		for _, id := range idsIn(r.Elems[0].Elems[1]) {
			lines = append(lines, id+" 0 0")
		}
	}
	return lines
}

// TestClaimWaits: a reader with BLOCK and CLAIM wakes in the millisecond in which something that is pending
// has been so for long enough, also if it became pending while the reader waited.
func TestClaimWaits(t *testing.T) {
	t.Parallel()
	const entry = `"1767225610000-0"`
	for name, pend := range map[string]func(w *harness) (at int64){
		"before": nil,
		"meanwhile": func(w *harness) int64 {
			w.do(1, "CLOCK", "ADVANCE", "2")
			w.do(1, "XREADGROUP", "GROUP", "g", "a", "STREAMS", streamKey, ">")
			return 2
		},
		"forced": func(w *harness) int64 {
			w.do(1, "CLOCK", "ADVANCE", "2")
			w.do(1, "XCLAIM", streamKey, "g", "a", "0", "1767225610000-0", "FORCE")
			return 2
		},
		"made older": func(w *harness) int64 {
			w.do(1, "XCLAIM", streamKey, "g", "a", "0", "1767225610000-0", "FORCE")
			w.do(1, "CLOCK", "ADVANCE", "3")
			w.do(1, "XCLAIM", streamKey, "g", "a", "0", "1767225610000-0", "IDLE", "4000")
			return -1
		},
		"given to another": func(w *harness) int64 {
			w.do(1, "XCLAIM", streamKey, "g", "a", "0", "1767225610000-0", "FORCE")
			w.do(1, "CLOCK", "ADVANCE", "3")
			w.do(1, "XCLAIM", streamKey, "g", "b", "0", "1767225610000-0")
			return 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSteppedHarness(t)
			w.do(1, "CONTAINER.CREATE", "c", "TTL", "10", "LOG", "3600")
			w.expect("OK", "XGROUP", "CREATE", streamKey, "g", "0")
			w.do(1, "DOC.PUT", "c", "x", "{}")
			w.do(1, "CLOCK", "ADVANCE", "10")
			from := int64(0)
			if pend == nil {
				w.do(1, "XREADGROUP", "GROUP", "g", "a", "STREAMS", streamKey, ">")
			} else {
				w.expect("OK", "XGROUP", "SETID", streamKey, "g", "$")
			}
			other := w.wait(3, "XREADGROUP", "GROUP", "g", "other", "BLOCK", "0", "STREAMS", streamKey, ">")
			reply := w.wait(2, claimArgs("g", "b", 5000, "BLOCK", "60000")...)
			next := w.wait(4, claimArgs("g", "c", 5000, "BLOCK", "60000")...)
			if pend != nil {
				if name == "meanwhile" {
					w.expect("OK", "XGROUP", "SETID", streamKey, "g", "0")
				}
				from = pend(w)
			}
			due := testStart + 10_000 + from*1000 + 5000
			w.do(1, "CLOCK", "SET", fmt.Sprint(due-1))
			select {
			case got := <-reply:
				t.Fatalf("a reply before the time: %s", got)
			default:
			}
			w.do(1, "CLOCK", "SET", fmt.Sprint(due))
			var got string
			drill.Await(t, "a reply when the entry can be claimed", func() bool {
				select {
				case got = <-reply:
					return true
				default:
					return false
				}
			})
			if !strings.Contains(got, entry) || !strings.Contains(got, "3) (integer) 5000\n") {
				t.Errorf("the reader gets %s", got)
			}
			w.do(1, "CLOCK", "ADVANCE", "5")
			if got := <-next; !strings.Contains(got, entry) {
				t.Errorf("the next reader gets %s", got)
			}
			w.engine.Waiters.Unblock(3, false)
			if got := <-other; got != "(nil)" {
				t.Errorf("a reader without CLAIM gets %s", got)
			}
		})
	}
}
