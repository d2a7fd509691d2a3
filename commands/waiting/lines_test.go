package waiting

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// registry is a registry of clients that wait, for tests.
type registry struct {
	*Lines
	t    *testing.T
	last int64
}

// add adds a client that waits for containers, as a reader if group is empty.
func (ws *registry) add(group string, ms int64, containers ...string) *Wait {
	ws.last++
	var lines []Key
	for _, c := range containers {
		lines = append(lines, Key{Container: c, Group: group, Grouped: group != ""})
	}
	w := New(ws.last, lines, -1)
	ws.Join(w, ms, nil, nil)
	return w
}

// expect compares which of the clients are woken, one letter for each: w or -.
func (ws *registry) expect(want string, clients ...*Wait) {
	ws.t.Helper()
	synctest.Wait()
	got := ""
	for _, w := range clients {
		if drill.Done(w.wake) {
			got += "w"
		} else {
			got += "-"
		}
	}
	if got != want {
		ws.t.Errorf("woken: %s, want %s", got, want)
	}
}

// checkEmpty checks that nothing is left of clients that have left.
func (ws *registry) checkEmpty() {
	ws.t.Helper()
	synctest.Wait()
	if n := len(ws.lines) + len(ws.groups) + len(ws.sessions) + len(ws.signaled); n > 0 || ws.Lines.Waiting.Load() != 0 || ws.running {
		ws.t.Errorf("%d are left: %+v", n, ws.Lines)
	}
}

func withWaiters(t *testing.T, f func(ws *registry)) {
	drill.Bubble(t, func(t *testing.T) {
		ws := &registry{Lines: new(Lines), t: t}
		f(ws)
		ws.checkEmpty()
	})
}

// A log wakes all its readers, and of each group the first.
func TestWhoIsWoken(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		a, b, both := ws.add("", 0, "a"), ws.add("", 0, "b"), ws.add("", 0, "a", "b", "a")
		g1, g2, other := ws.add("g", 0, "a"), ws.add("g", 0, "a", "b"), ws.add("h", 0, "a")
		all := []*Wait{a, b, both, g1, g2, other}
		ws.Signal("c")
		ws.expect("------", all...)
		ws.Signal("a")
		ws.expect("w-ww-w", all...)
		ws.Signal("b")
		ws.expect("wwwwww", all...) // g2 is the first that waits for b
		for _, w := range all {
			ws.Leave(w, false)
		}
	})
}

// The next of a group is woken when the first leaves with entries, or without having looked.
func TestGroupsAreServedInTurn(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		w := []*Wait{ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a")}
		ws.Signal("a")
		ws.expect("w----", w...)
		ws.Again(w[0])
		ws.expect("-----", w...)
		ws.Leave(w[0], true)
		ws.expect("w---", w[1:]...)
		ws.Again(w[1]) // it finds nothing and goes on waiting, as the first
		ws.Leave(w[2], false)
		ws.expect("---", w[1], w[3], w[4])
		ws.Signal("a")
		ws.expect("w--", w[1], w[3], w[4])
		ws.Leave(w[1], false) // its connection has ended
		ws.expect("w-", w[3:]...)
		ws.Again(w[3])
		ws.Leave(w[3], false) // nothing came since it looked
		ws.expect("-", w[4])
		ws.Leave(w[4], false)
	})
}

// The next is woken too when the first leaves without having looked once, or looks at no key as it is not the
// first.
func TestWhoIsBehindLooks(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		list, other := LineOfKey("0", "q", keyspace.ListKind), LineOfKey("0", "r", keyspace.ListKind)
		first, next := New(1, []Key{list}, -1), New(2, []Key{other, list}, -1)
		ws.Join(first, 0, nil, nil)
		ws.Join(next, 0, nil, nil)
		ws.Again(next)
		if turns := ws.Turns(next, "0"); !slices.Equal(turns, []string{"r"}) {
			t.Errorf("the second takes from %q", turns)
		}
		ws.Leave(first, false)
		ws.expect("w", next)
		ws.Again(next)
		if turns := ws.Turns(next, "0"); !slices.Equal(turns, []string{"r", "q"}) {
			t.Errorf("the first takes from %q", turns)
		}
		zset := New(3, []Key{LineOfKey("0", "q", keyspace.ZSetKind)}, -1)
		ws.Join(zset, 0, nil, nil)
		ws.Filled("1", "q")
		ws.expect("--", next, zset)
		ws.Filled("0", "q")
		ws.expect("ww", next, zset)
		ws.Leave(next, true)
		ws.Leave(zset, false)
	})
}

// A signal that comes together with the end of the first one's time is not lost.
func TestTheEndOfAWaitLosesNoSignal(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		first, next := ws.add("g", 10, "a"), ws.add("g", 0, "a")
		drill.Pass(10 * time.Millisecond)
		ws.expect("w-", first, next)
		ws.Signal("a")
		synctest.Wait()
		if why := ws.Again(first); why != Timeout {
			t.Errorf("the wait ends for %d", why)
		}
		ws.Leave(first, false)
		ws.expect("w", next)
		ws.Leave(next, false)
	})
}

func TestWaitsEnd(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		short, long, forever := ws.add("", 10, "a"), ws.add("", 1<<62, "a"), ws.add("", 0, "a")
		drill.Pass(10*time.Millisecond - 1)
		ws.expect("---", short, long, forever)
		drill.Pass(1)
		ws.expect("w--", short, long, forever)
		for _, c := range []struct {
			id        int64
			withError bool
			want      bool
		}{
			{long.session, true, true},
			{long.session, false, false}, // it is over already
			{short.session, true, false},
			{99, false, false},
		} {
			if got := ws.Unblock(c.id, c.withError); got != c.want {
				t.Errorf("unblock %d: %v", c.id, got)
			}
		}
		drill.Pass(100 * 365 * 24 * time.Hour)
		ws.expect("ww-", short, long, forever)
		if a, b, c := ws.Again(short), ws.Again(long), ws.Again(forever); a != Timeout || b != Refused || c != GoesOn {
			t.Errorf("the waits end for %d, %d, %d", a, b, c)
		}
		for _, w := range []*Wait{short, long, forever} {
			ws.Leave(w, false)
		}
		if ws.Unblock(long.session, true) {
			t.Error("a client that does not wait is unblocked")
		}
	})
}

// Signals that come while the clients are woken are one.
func TestManySignals(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		var all []*Wait
		for i := range 1000 {
			all = append(all, ws.add("", 0, fmt.Sprint(i%10)), ws.add("g", 0, fmt.Sprint(i%10)))
		}
		for i := range 5000 {
			ws.Signal(fmt.Sprint(i % 9))
		}
		synctest.Wait()
		readers, groups := 0, 0
		for i, w := range all {
			if drill.Done(w.wake) {
				if i%2 == 0 {
					readers++
				} else {
					groups++
				}
			}
		}
		for _, w := range all {
			ws.Leave(w, false)
		}
		if readers != 900 || groups != 9 {
			t.Errorf("%d readers and %d of groups are woken, want 900 and 9", readers, groups)
		}
	})
}

// Waits end, and look for something to claim, in the order of their moments of a clock that clients move, and
// those of one moment in the order in which they came.
func TestMomentsOfWaits(t *testing.T) {
	withWaiters(t, func(ws *registry) {
		const n, start = 500, 1_000_000
		manual := clock.NewManual(start)
		random := drill.Rand(t)
		group := Key{Container: "a", Group: "g", Grouped: true}
		at := map[*Wait]int64{} // what each waits for
		var all []*Wait
		for i := range n {
			ms, minIdle := 1+random.Int64N(100), int64(-1)
			if i%2 == 0 {
				minIdle = random.Int64N(100)
			}
			w := New(int64(i), []Key{group}, minIdle)
			ws.Join(w, ms, manual, manual.Now)
			at[w] = start + ms
			all = append(all, w)
		}
		ws.NotePending(group, start, false)
		ws.NotePending(group, start+50, false) // they know of an older one
		for _, w := range all {
			if w.minIdle >= 0 {
				at[w] = min(at[w], start+w.minIdle)
			}
		}
		slices.SortStableFunc(all, func(a, b *Wait) int { return cmp.Compare(at[a], at[b]) })
		for i, w := range all {
			if next := ws.NextEnd(); next != at[w] || ws.EndUntil(next-1) || !ws.EndUntil(next) || !drill.Done(w.wake) {
				t.Fatalf("wait %d: the next moment is %d, want %d", i, next, at[w])
			}
			ws.Leave(w, false)
		}
		if ws.NextEnd() != expiry.NeverDue {
			t.Error("something is left")
		}
	})
}
