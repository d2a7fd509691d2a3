package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/test/drill"
)

// waiting is a registry of clients that wait, for tests.
type waiting struct {
	*waiters
	t    *testing.T
	last int64
}

// add adds a client that waits for containers, as a reader if group is empty.
func (ws *waiting) add(group string, ms int64, containers ...string) *wait {
	ws.last++
	var lines []LineKey
	for _, c := range containers {
		lines = append(lines, LineKey{Container: c, Group: group, Grouped: group != ""})
	}
	w := newWait(&Session{ID: ws.last}, lines, nil)
	w.minIdle = -1
	ws.join(w, ms, new(Engine))
	return w
}

// expect compares which of the clients are woken, one letter for each: w or -.
func (ws *waiting) expect(want string, clients ...*wait) {
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
func (ws *waiting) checkEmpty() {
	ws.t.Helper()
	synctest.Wait()
	if n := len(ws.lines) + len(ws.groups) + len(ws.sessions) + len(ws.signaled); n > 0 || ws.waiters.Waiting.Load() != 0 || ws.running {
		ws.t.Errorf("%d are left: %+v", n, ws.waiters)
	}
}

func withWaiters(t *testing.T, f func(ws *waiting)) {
	drill.Bubble(t, func(t *testing.T) {
		ws := &waiting{waiters: new(waiters), t: t}
		f(ws)
		ws.checkEmpty()
	})
}

// A log wakes all its readers, and of each group the first.
func TestWhoIsWoken(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		a, b, both := ws.add("", 0, "a"), ws.add("", 0, "b"), ws.add("", 0, "a", "b", "a")
		g1, g2, other := ws.add("g", 0, "a"), ws.add("g", 0, "a", "b"), ws.add("h", 0, "a")
		all := []*wait{a, b, both, g1, g2, other}
		ws.signal("c")
		ws.expect("------", all...)
		ws.signal("a")
		ws.expect("w-ww-w", all...)
		ws.signal("b")
		ws.expect("wwwwww", all...) // g2 is the first that waits for b
		for _, w := range all {
			ws.leave(w, false)
		}
	})
}

// The next of a group is woken when the first leaves with entries, or without having looked.
func TestGroupsAreServedInTurn(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		w := []*wait{ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a"), ws.add("g", 0, "a")}
		ws.signal("a")
		ws.expect("w----", w...)
		ws.again(w[0])
		ws.expect("-----", w...)
		ws.leave(w[0], true)
		ws.expect("w---", w[1:]...)
		ws.again(w[1]) // it finds nothing and goes on waiting, as the first
		ws.leave(w[2], false)
		ws.expect("---", w[1], w[3], w[4])
		ws.signal("a")
		ws.expect("w--", w[1], w[3], w[4])
		ws.leave(w[1], false) // its connection has ended
		ws.expect("w-", w[3:]...)
		ws.again(w[3])
		ws.leave(w[3], false) // nothing came since it looked
		ws.expect("-", w[4])
		ws.leave(w[4], false)
	})
}

// A signal that comes together with the end of the first one's time is not lost.
func TestTheEndOfAWaitLosesNoSignal(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		first, next := ws.add("g", 10, "a"), ws.add("g", 0, "a")
		drill.Pass(10 * time.Millisecond)
		ws.expect("w-", first, next)
		ws.signal("a")
		synctest.Wait()
		if why := ws.again(first); why != WaitTimeout {
			t.Errorf("the wait ends for %d", why)
		}
		ws.leave(first, false)
		ws.expect("w", next)
		ws.leave(next, false)
	})
}

func TestWaitsEnd(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		short, long, forever := ws.add("", 10, "a"), ws.add("", 1<<62, "a"), ws.add("", 0, "a")
		drill.Pass(10*time.Millisecond - 1)
		ws.expect("---", short, long, forever)
		drill.Pass(1)
		ws.expect("w--", short, long, forever)
		for _, c := range []struct {
			id   int64
			why  waitEnd
			want bool
		}{
			{long.session.ID, WaitError, true},
			{long.session.ID, WaitTimeout, false}, // it is over already
			{short.session.ID, WaitError, false},
			{99, WaitTimeout, false},
		} {
			if got := ws.Unblock(c.id, c.why); got != c.want {
				t.Errorf("unblock %d: %v", c.id, got)
			}
		}
		drill.Pass(100 * 365 * 24 * time.Hour)
		ws.expect("ww-", short, long, forever)
		if a, b, c := ws.again(short), ws.again(long), ws.again(forever); a != WaitTimeout || b != WaitError || c != waitGoesOn {
			t.Errorf("the waits end for %d, %d, %d", a, b, c)
		}
		for _, w := range []*wait{short, long, forever} {
			ws.leave(w, false)
		}
		if ws.Unblock(long.session.ID, WaitError) {
			t.Error("a client that does not wait is unblocked")
		}
	})
}

// Signals that come while the clients are woken are one.
func TestManySignals(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		var all []*wait
		for i := range 1000 {
			all = append(all, ws.add("", 0, fmt.Sprint(i%10)), ws.add("g", 0, fmt.Sprint(i%10)))
		}
		for i := range 5000 {
			ws.signal(fmt.Sprint(i % 9))
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
			ws.leave(w, false)
		}
		if readers != 900 || groups != 9 {
			t.Errorf("%d readers and %d of groups are woken, want 900 and 9", readers, groups)
		}
	})
}

// Waits end, and look for something to claim, in the order of their moments of a clock that clients move, and
// those of one moment in the order in which they came.
func TestMomentsOfWaits(t *testing.T) {
	withWaiters(t, func(ws *waiting) {
		const n, start = 500, 1_000_000
		e := &Engine{Clock: clock.NewManual(start)}
		random := drill.Rand(t)
		group := LineKey{Container: "a", Group: "g", Grouped: true}
		at := map[*wait]int64{} // what each waits for
		var all []*wait
		for i := range n {
			w := newWait(&Session{ID: int64(i)}, []LineKey{group}, nil)
			ms := 1 + random.Int64N(100)
			if w.minIdle = -1; i%2 == 0 {
				w.minIdle = random.Int64N(100)
			}
			ws.join(w, ms, e)
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
		slices.SortStableFunc(all, func(a, b *wait) int { return cmp.Compare(at[a], at[b]) })
		for i, w := range all {
			if next := ws.NextEnd(); next != at[w] || ws.EndUntil(next-1) || !ws.EndUntil(next) || !drill.Done(w.wake) {
				t.Fatalf("wait %d: the next moment is %d, want %d", i, next, at[w])
			}
			ws.leave(w, false)
		}
		if ws.NextEnd() != expiry.NeverDue {
			t.Error("something is left")
		}
	})
}
