package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/test/drill"
)

// newSteppedHarness returns a harness whose clients move the clock.
func newSteppedHarness(t *testing.T) *harness {
	w := newHarness(t)
	drill.Check(t, w.engine.Keyspace().Close())
	w.stepped = true
	w.open()
	return w
}

// wait begins a command of a session that waits, and returns the channel of its reply.
func (w *harness) wait(session int, args ...string) <-chan string {
	w.t.Helper()
	s, reply := w.session(session), make(chan string, 1)
	out := w.engine.Execute(s, args)
	if !out.Deferred {
		w.t.Errorf("%q does not wait: %s", args, notation(out.Reply))
	}
	go func() {
		for out.Deferred {
			<-out.Resume
			out = w.engine.Execute(s, args)
		}
		s.Answered()
		reply <- notation(out.Reply)
	}()
	return reply
}

// TestClockMistakes: the clock goes forward only, up to its end, for clients that may move it.
func TestClockMistakes(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect(fmt.Sprintf("(integer) %d", testStart), "CLOCK", "NOW")
	w.expect("(error) ERR CLOCK ADVANCE needs the option clock manual, which is for tests", "CLOCK", "ADVANCE", "1")
	w.expect("(error) ERR CLOCK SET needs the option clock manual, which is for tests", "CLOCK", "SET", "1")
	w = newSteppedHarness(t)
	for _, tt := range []struct{ want, command string }{
		{"(error) ERR wrong number of arguments for 'clock' command; usage: CLOCK <NOW | ADVANCE seconds | SET moment>", "CLOCK"},
		{"(integer) 1767225600000", "CLOCK ADVANCE 0"},
		{"(integer) 1767225601001", "CLOCK ADVANCE 1.001"},
		{"(integer) 1767225601501", "CLOCK ADVANCE 0.5"},
		{"(integer) 1767225601501", "CLOCK SET 1767225601501"},
		{"(integer) 1767225602000", "CLOCK SET 2026-01-01T00:00:02Z"},
		{"(integer) 1767225602000", "CLOCK NOW"},
		{"(error) ERR the clock never runs backwards: it is at 2026-01-01T00:00:02.000Z", "CLOCK SET 1767225601999"},
		{"(error) ERR the clock ends at 9999-12-31T23:59:59.999Z: it is at 2026-01-01T00:00:02.000Z", "CLOCK ADVANCE 253402300799"},
		{"(error) ERR the clock ends at 9999-12-31T23:59:59.999Z: it is at 2026-01-01T00:00:02.000Z", "CLOCK ADVANCE 99999999999999999999"},
		{"(error) ERR invalid moment 253402300800000: legal are milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z, up to the year 9999", "CLOCK SET 253402300800000"},
		{"(error) ERR invalid moment tomorrow: legal are milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z, up to the year 9999", "CLOCK SET tomorrow"},
	} {
		w.expect(tt.want, strings.Fields(tt.command)...)
	}
	if got := notation(w.do(1, "EVAL", "return redis.call('clock', 'now')", "0")); !strings.Contains(got, "not allowed from script") {
		t.Errorf("a script: %s", got)
	}
	for _, seconds := range []string{"", ".", "1.", "-1", "+1", "1.0001", "1e3", "0x1", "1_0", "a", "1 "} {
		want := "(error) ERR invalid seconds"
		if got := notation(w.do(1, "CLOCK", "ADVANCE", seconds)); !strings.HasPrefix(got, want) {
			t.Errorf("CLOCK ADVANCE %q: %s", seconds, got)
		}
	}
	w.expect("OK", "MULTI")
	w.expect("(error) ERR Command not allowed inside a transaction", "CLOCK", "ADVANCE", "1")
	w.expect("(error) EXECABORT Transaction discarded because of previous errors.", "EXEC")
}

// TestClockOrder: deaths of one moment come in the order of containers and ids, in events and in logs, and
// each is found in its own millisecond. Those that a change of the rules has killed are found by the next
// advance.
func TestClockOrder(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "Ex")
	w.do(2, "PSUBSCRIBE", "*")
	w.expect("OK", "CONTAINER.CREATE", "b", "TTL", "10", "LOG", "3600")
	w.expect("OK", "CONTAINER.CREATE", "a", "TTL", "10")
	var want []string
	for _, c := range []string{"a", "b"} {
		for i := range 600 { // more than are buried at a time
			id := fmt.Sprintf("%03d", i)
			w.do(1, "DOC.PUT", c, fmt.Sprintf("%03d", (i*7)%600), "{}")
			want = append(want, "__keyevent@"+c+"__:expired "+id)
		}
	}
	w.expect("(integer) 1767225609999", "CLOCK", "ADVANCE", "9.999")
	if got := w.received(2); len(got) != 0 {
		t.Errorf("%d events before a death", len(got))
	}
	w.expect("(integer) 1767225620000", "CLOCK", "ADVANCE", "10.001")
	var got []string
	for _, m := range w.received(2) {
		got = append(got, m.Elems[2].Str+" "+m.Elems[3].Str)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events in another order: %.300q", len(got), got)
	}
	for i, e := range w.do(1, "XRANGE", "__keyevent@b__:expired", "-", "+").Elems {
		if id, of := e.Elems[0].Str, e.Elems[1].Elems[1].Str; id != fmt.Sprintf("1767225610000-%d", i) || of != fmt.Sprintf("%03d", i) {
			t.Fatalf("entry %d has the id %s and is of %s", i, id, of)
		}
	}
	w.expect("OK", "CONFIG", "SET", "undo-window", "0")
	w.do(1, "DOC.PUT", "b", "x", "{}")
	w.clock.Advance(5 * time.Second) // nobody looks
	w.do(1, "CONTAINER.SET", "b", "TTL", "3")
	if got := w.received(2); len(got) != 0 {
		t.Errorf("%d events before the next advance", len(got))
	}
	w.do(1, "CLOCK", "ADVANCE", "0")
	if got := w.received(2); len(got) != 1 {
		t.Errorf("%d events of a death by a change of the rules", len(got))
	}
}

// TestClockElements: each element is found in its own millisecond, those of one in the order of keys and
// fields, and who listens to nothing finds them gone.
func TestClockElements(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.do(1, "CONTAINER.SET", "0", "LOG", "3600")
	var want []string
	for i := range 100 { // more than a page has
		field := fmt.Sprintf("%02d", i*37%100)
		w.do(1, "HSET", "hash", field, "v")
		w.do(1, "SADD", "set", field)
		ms := 1000 + i*37%100/10*500 // ten at a time
		w.do(1, "HPEXPIRE", "hash", fmt.Sprint(ms), "FIELDS", "1", field)
		w.do(1, "EXPIREMEMBER", "set", field, fmt.Sprint(ms), "ms")
	}
	for at := range 10 {
		for _, key := range []string{"hash", "set"} {
			for i := range 10 {
				want = append(want, fmt.Sprintf("%d %s %d%d", testStart+1000+500*at, key, at, i))
			}
		}
	}
	w.do(1, "HSET", "hash", "stays", "v")
	w.do(2, "PSUBSCRIBE", "*expired")
	w.expect(fmt.Sprintf("(integer) %d", testStart+60_000), "CLOCK", "ADVANCE", "60")
	var got []string
	for _, e := range w.do(1, "XRANGE", "__keyevent@0__:expired", "-", "+").Elems {
		f := map[string]string{}
		for i := 0; i < len(e.Elems[1].Elems); i += 2 {
			f[e.Elems[1].Elems[i].Str] = e.Elems[1].Elems[i+1].Str
		}
		if ms, _, _ := strings.Cut(e.Elems[0].Str, "-"); ms != f["at"] {
			t.Errorf("an entry with the id %s is of %s", e.Elems[0].Str, f["at"])
		}
		got = append(got, f["at"]+" "+f["id"]+" "+f["field"])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if n := len(w.received(2)); n != 20 {
		t.Errorf("%d events, want 20", n)
	}
	w.expect("1# \"stays\" => \"v\"", "HGETALL", "hash")
	w.expect("(integer) 0", "EXISTS", "set")
}

// TestClockElementsOfTheDead: what ends in a key that is dead, but may live again, does not die. What ends in
// the living meanwhile has its own millisecond.
func TestClockElementsOfTheDead(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "86400", "LOG", "3600")
	w.expect("OK", "SELECT", "c")
	for _, key := range []string{"dies", "lives"} {
		w.do(1, "HSET", key, "a", "1", "b", "2", "c", "3")
		w.do(1, "HPEXPIRE", key, "20000", "FIELDS", "1", "a")
		w.do(1, "HPEXPIRE", key, "30000", "FIELDS", "1", "b")
	}
	w.do(1, "PERSIST", "lives")
	w.do(1, "EXPIRE", "lives", "1000")
	w.do(1, "CLOCK", "ADVANCE", "15")
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "5")
	w.do(2, "PSUBSCRIBE", "*:hexpired")
	w.received(2)
	w.do(1, "CLOCK", "ADVANCE", "100")
	var got []string
	for _, e := range w.do(1, "XRANGE", "__keyevent@c__:expired", "-", "+").Elems {
		got = append(got, e.Elems[0].Str+" "+e.Elems[1].Elems[1].Str)
	}
	want := []string{fmt.Sprintf("%d-0 lives", testStart+20_000), fmt.Sprintf("%d-0 lives", testStart+30_000)}
	if n := len(w.received(2)); n != 2 || !slices.Equal(got, want) {
		t.Errorf("%d events, the log has %q, want %q", n, got, want)
	}
}

// TestClockEnds: BLOCK ends at its moment, and who is served at one step is back only when the clock stands.
func TestClockEnds(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.do(1, "CONTAINER.CREATE", "c", "TTL", "10", "LOG", "3600")
	w.do(1, "DOC.PUT", "c", "first", "{}")
	w.do(1, "CLOCK", "ADVANCE", "1")
	w.do(1, "DOC.PUT", "c", "second", "{}")
	over := w.wait(2, "XREAD", "BLOCK", "9998", "STREAMS", "__keyevent@c__:expired", "$")
	w.do(1, "CLOCK", "ADVANCE", "8.999")
	served := w.wait(3, "XREAD", "BLOCK", "1000000", "STREAMS", "__keyevent@c__:expired", "$")
	w.do(1, "CLOCK", "ADVANCE", "100")
	if got := <-over; got == "(nil)" || !strings.Contains(got, "first") || strings.Contains(got, "second") {
		t.Errorf("BLOCK 9998 got %s", got)
	}
	if got := <-served; !strings.Contains(got, "first") || strings.Contains(got, "second") {
		t.Errorf("a reader got %s", got)
	}
	over = w.wait(2, "XREAD", "BLOCK", "86400000", "STREAMS", "__keyevent@c__:expired", "$")
	w.do(1, "CLOCK", "ADVANCE", "86399.999")
	select {
	case got := <-over:
		t.Errorf("BLOCK ended too early with %s", got)
	default:
	}
	w.do(1, "CLOCK", "ADVANCE", "0.001")
	if got := <-over; got != "(nil)" {
		t.Errorf("BLOCK ended with %s", got)
	}
}

// dying puts items that die one a second, from the first second on, and makes session 2 hear of them.
func (w *harness) dying(items int) *inbox {
	w.t.Helper()
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "Ex")
	for i := range items {
		w.do(1, "SET", fmt.Sprint("k", i), "v", "EX", fmt.Sprint(i+1))
	}
	b := w.session(2).Receiver.(*inbox)
	w.do(2, "PSUBSCRIBE", "*")
	w.received(2)
	return b
}

// TestClockFull: the clock waits for a subscriber whose queue is full, and goes on when it has read.
func TestClockFull(t *testing.T) {
	t.Parallel()
	const items, looks = 3000, 5
	w := newSteppedHarness(t)
	looked, heard := 0, 0
	b := w.dying(items)
	b.full = func() bool {
		looked++
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case looked == 1:
			heard = len(b.messages)
		case looked <= looks && len(b.messages) != heard:
			t.Errorf("%d events after %d, while the queue is full", len(b.messages), heard)
		}
		return looked < looks
	}
	w.do(1, "CLOCK", "ADVANCE", "3600")
	if looked < looks || heard == 0 || heard >= items {
		t.Errorf("%d looks, the first after %d of %d events", looked, heard, items)
	}
	if got := w.received(2); len(got) != items {
		t.Errorf("%d events, want %d", len(got), items)
	}
}

// TestClockGone: an advance whose client leaves or is killed stops at a step for which all is done. The next
// one goes on there.
func TestClockGone(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *harness, s *engine.Session){
		"leaves": func(_ *harness, s *engine.Session) {
			s.AbandonInterval, s.Abandoned = 0, func() bool { return true }
		},
		"is killed": func(w *harness, s *engine.Session) {
			w.dying(0).onDeliver = func(n int) {
				if n == 10 {
					s.Disconnected.Store(true)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const items = 300
			w := newSteppedHarness(t)
			w.dying(items)
			leave(w, w.session(1))
			if r := w.do(1, "CLOCK", "ADVANCE", "3600"); r.Str != engine.ErrAbandoned.Error() || !w.last.Close {
				t.Errorf("the reply is %s, close %t", notation(r), w.last.Close)
			}
			w.session(1).Disconnected.Store(false)
			w.session(1).Abandoned = nil
			passed := int(w.clock.Now()-testStart) / 1000
			if passed == 0 || passed >= items {
				t.Errorf("the clock stands at second %d", passed)
			}
			if got := len(w.received(2)); got != passed {
				t.Errorf("%d deaths after %d seconds", got, passed)
			}
			w.do(3, "CLOCK", "ADVANCE", "0")
			w.do(3, "CLOCK", "ADVANCE", "3600")
			if got := len(w.received(2)); got != items-passed {
				t.Errorf("%d deaths later, %d before, of %d", got, passed, items)
			}
		})
	}
}

// TestClockWaitsForAnother: one advance at a time. One whose client leaves or is killed waits no longer.
func TestClockWaitsForAnother(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	moves, goOn := make(chan struct{}), make(chan struct{})
	w.dying(1).onDeliver = func(int) {
		close(moves)
		<-goOn
	}
	advance := func(s *engine.Session) <-chan engine.Reply {
		reply := make(chan engine.Reply, 1)
		go func() { reply <- w.engine.Execute(s, []string{"CLOCK", "ADVANCE", "10"}).Reply }()
		return reply
	}
	first := advance(w.session(1))
	<-moves
	leaves, killed, next := w.session(3), w.session(4), w.session(5)
	leaves.AbandonInterval, leaves.Abandoned = 0, func() bool { return true }
	killed.AbandonInterval = 0
	killed.Disconnected.Store(true)
	for name, s := range map[string]*engine.Session{"leaves": leaves, "is killed": killed} {
		if r := <-advance(s); r.Str != engine.ErrAbandoned.Error() {
			t.Errorf("the client %s: %s", name, notation(r))
		}
	}
	second := advance(next)
	close(goOn)
	for i, reply := range []<-chan engine.Reply{first, second} {
		if r := <-reply; r.Int != testStart+int64(i+1)*10_000 {
			t.Errorf("advance %d: %s", i+1, notation(r))
		}
	}
}

// TestClockPause: a pause takes real time. It holds an advance back before its first step, and between two.
func TestClockPause(t *testing.T) {
	t.Parallel()
	const items = 30
	w := newSteppedHarness(t)
	paused, advancer, b := make(chan struct{}), w.session(1), w.dying(items)
	const more = 1000 // that die with the tenth, in several pieces of work
	for i := range more {
		w.do(1, "SET", fmt.Sprint("more", i), "v", "EX", "10")
	}
	b.onDeliver = func(n int) {
		if n == 10 {
			w.engine.Pause.Extend(w.engine.PauseTime(), 3_600_000, false, w.engine.KeepDeadUntil)
			close(paused)
		}
	}
	reply := make(chan string)
	go func() {
		reply <- notation(w.engine.Execute(advancer, []string{"CLOCK", "ADVANCE", "7200"}).Reply)
	}()
	<-paused
	if !w.held(3, "CLOCK", "ADVANCE", "1") || w.held(3, "CLOCK", "NOW") {
		t.Error("a pause of writes holds CLOCK NOW back, or CLOCK ADVANCE does not wait")
	}
	select {
	case got := <-reply:
		t.Errorf("the advance does not wait: %s", got)
	default:
	}
	if passed := (w.clock.Now() - testStart) / 1000; passed != 10 {
		t.Errorf("the clock stands at second %d", passed)
	}
	drill.Await(t, "the deaths of the step in which the pause begins", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.messages) == 10+more
	})
	w.do(3, "CLIENT", "UNPAUSE")
	if got := <-reply; got != fmt.Sprintf("(integer) %d", testStart+7_200_000) {
		t.Errorf("after the pause: %s", got)
	}
	if got := len(w.received(2)); got != items+more {
		t.Errorf("%d events, want %d", got, items+more)
	}
	w.clock.Advance(time.Hour) // takes no time
	w.do(3, "CLIENT", "PAUSE", "3600000")
	w.clock.Advance(2 * time.Hour)
	if !w.held(1, "GET", "k") {
		t.Error("a clock that is moved ends a pause")
	}
	w.do(3, "CLIENT", "UNPAUSE")
}

// TestClockUndo: a window of undo ends at its moment, and what was set aside is gone then.
func TestClockUndo(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.do(1, "CONTAINER.CREATE", "c")
	w.do(1, "DOC.PUT", "c", "1", "{}")
	w.do(1, "CONTAINER.DROP", "c")
	if n := w.engine.Keyspace().NextDue(); n != testStart+300_000 {
		t.Errorf("the next is due at %d", n)
	}
	w.do(1, "CLOCK", "ADVANCE", "300")
	if n := w.engine.Keyspace().NextDue(); n <= clock.End {
		t.Errorf("after the end of the window something is due at %d", n)
	}
}

// TestClockYear: a year with many deaths, events, a log and readers has one transcript, however often it is
// played.
func TestClockYear(t *testing.T) {
	t.Parallel()
	items, runs := drill.Pick(1000, 10_000, 10_000), drill.Pick(2, 3, 100)
	first, _ := clockYear(t, items)
	for run := 2; run <= runs; run++ {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			got, took := clockYear(t, items)
			t.Logf("a year with %d deaths takes %v", items, took)
			for i := range max(len(first), len(got)) {
				if i >= len(first) || i >= len(got) || first[i] != got[i] {
					t.Fatalf("line %d of %d and %d differs:\n%.300s\n%.300s", i, len(first), len(got), first[min(i, len(first)-1)], got[min(i, len(got)-1)])
				}
			}
		})
	}
}

// clockYear plays a year with items that die in it. It returns what clients saw, and the real time of the
// advances.
func clockYear(t *testing.T, items int) (seen []string, took time.Duration) {
	const log = "__keyevent@c__:expired"
	w := newSteppedHarness(t)
	do := func(args ...string) {
		seen = append(seen, notation(w.do(1, args...)))
	}
	do("CONFIG", "SET", "notify-keyspace-events", "KEx")
	w.do(2, "PSUBSCRIBE", "*")
	do("CONTAINER.CREATE", "c", "TTL", "-1", "LOG", "86400")
	do("XGROUP", "CREATE", log, "g", "0")
	do("SELECT", "c")
	for i := range items {
		ttl := 1 + i*7919%31_536_000
		name, after, many := fmt.Sprint(i), fmt.Sprint(ttl), fmt.Sprint("many", i%7)
		switch i % 6 {
		case 0, 1, 2:
			do("DOC.PUT", "c", "d"+name, `{"ttl":`+after+`}`)
		case 3:
			do("SET", "k"+name, "v", "EX", after)
		case 4:
			do("HSET", "h"+many, name, "v")
			do("HEXPIRE", "h"+many, fmt.Sprint(ttl/1000*1000), "FIELDS", "1", name) // several at a time
		case 5:
			do("SADD", "s"+many, name)
			do("EXPIREMEMBER", "s"+many, name, after)
		}
	}
	for month := range 12 {
		one := w.wait(3, "XREAD", "BLOCK", "0", "STREAMS", log, "$")
		worker := w.wait(4, "XREADGROUP", "GROUP", "g", "a", "BLOCK", "100000000", "STREAMS", log, ">")
		other := w.wait(5, "XREADGROUP", "GROUP", "g", "b", "BLOCK", "200000000", "STREAMS", log, ">")
		third := w.wait(6, "XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "BLOCK", "300000000", "CLAIM", "150000000", "STREAMS", log, ">")
		began := clock.Monotonic()
		do("CLOCK", "ADVANCE", "2628000")
		took += clock.Monotonic() - began
		w.engine.Waiters.Unblock(3, false)
		w.engine.Waiters.Unblock(6, false)
		seen = append(seen, fmt.Sprint("month ", month), <-one, <-worker, <-other, <-third)
		do("XREVRANGE", log, "+", "-", "COUNT", "3")
		do("XPENDING", log, "g")
		do("XREADGROUP", "GROUP", "g", "a", "STREAMS", log, ">") // the rest
		do("DBSIZE")
		do("SCAN", "0", "COUNT", "50")
		do("HGETALL", "hmany0")
		do("SSCAN", "smany0", "0")
	}
	for _, m := range w.received(2) {
		seen = append(seen, notation(m))
	}
	return seen, took
}
