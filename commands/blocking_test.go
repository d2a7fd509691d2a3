package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/test/drill"
)

// pushed returns the reply of a command that takes one entry.
func pushed(key, value string) string {
	return notation(engine.Bulks(key, value))
}

// Who waits for a key is served in the order in which they came, also if one push brings several entries.
func TestTakersAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var takers []*blocked
	for session := 2; session < 6; session++ {
		takers = append(takers, w.block(session, "BLPOP", "other", "q", "0"))
	}
	w.expect("(integer) 3", "RPUSH", "q", "a", "b", "c")
	for i, want := range []string{"a", "b", "c"} {
		takers[i].expect(pushed("q", want))
	}
	for drill.Done(takers[3].out.Resume) { // who is served wakes the next, in case there is more
		takers[3].again()
	}
	w.expect("(integer) 0", "EXISTS", "q")
	w.expect("(integer) 1", "LPUSH", "other", "d")
	takers[3].expect(pushed("other", "d"))
}

// Who comes after an entry was pushed, but before those that it woke have run, waits behind them. A command
// that does not wait takes at once, and so does one in a transaction.
func TestWhoComesLateWaitsBehind(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "SET", "text", "x")
	first := w.block(2, "BRPOPLPUSH", "q", "text", "0")
	w.expect("(integer) 1", "LPUSH", "q", "a")
	second, third := w.block(3, "BLPOP", "free", "q", "0"), w.block(4, "BRPOPLPUSH", "q", "to", "0")
	fourth := w.block(5, "BLPOP", "q", "0")
	first.expect("(error) " + string(engine.ErrWrongType))
	second.expect(pushed("q", "a"))
	w.expect("(integer) 1", "LPUSH", "free", "b")
	w.expect(pushed("free", "b"), "BLPOP", "q", "free", "0")
	w.expect("(integer) 2", "RPUSH", "q", "c", "d")
	w.expect(notation(engine.Array(engine.Bulk("q"), engine.Bulks("c"))), "LMPOP", "1", "q", "LEFT")
	third.expect(`"d"`)
	w.expect("OK", "MULTI")
	w.expect("QUEUED", "RPUSH", "q", "e")
	w.expect("QUEUED", "BLPOP", "q", "0")
	w.expect(notation(engine.Array(engine.Integer(1), engine.Bulks("q", "e"))), "EXEC")
	w.expect("(integer) 1", "RPUSH", "q", "f")
	fourth.expect(pushed("q", "f"))
}

// Who waits for another kind, or for another key first, changes nothing of the order.
func TestTakersOfSeveralKeysAndKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takers []string
		calls  []string
		want   []string // the value that each takes; empty: it goes on waiting
	}{
		{[]string{"BZPOPMIN q 0", "BLPOP q 0"}, []string{"RPUSH q a"}, []string{"", "a"}},
		{[]string{"BLPOP q 0", "BZPOPMIN q 0"}, []string{"ZADD q 1 a"}, []string{"", "a"}},
		{[]string{"BRPOPLPUSH q to 0", "BZMPOP 0 1 q MAX"}, []string{"ZADD q 1 a"}, []string{"", "a"}},
		{[]string{"BZPOPMIN q 0", "BLPOP q 0"}, []string{"MULTI", "RPUSH q x", "DEL q", "ZADD q 1 a", "EXEC"}, []string{"a", ""}},
		{[]string{"BLPOP q r 0", "BLPOP q 0", "BLPOP r q 0"}, []string{"RPUSH q a b"}, []string{"a", "b", ""}},
		{[]string{"BZPOPMIN q r 0", "BZPOPMIN q 0", "BZPOPMIN r q 0"}, []string{"ZADD q 1 a 2 b"}, []string{"a", "b", ""}},
		{[]string{"BLPOP q r 0", "BLPOP q 0", "BLPOP r q 0"}, []string{"RPUSH q a b c"}, []string{"a", "b", "c"}},
		{[]string{"BLMOVE r q LEFT LEFT 0", "BLPOP q 0", "BLPOP r q 0"}, []string{"RPUSH r a"}, []string{"a", "a", ""}},
	} {
		w := newHarness(t)
		var takers []*blocked
		for i, take := range c.takers {
			takers = append(takers, w.block(2+i, strings.Fields(take)...))
		}
		for _, call := range c.calls {
			w.do(1, strings.Fields(call)...)
		}
		for i, b := range takers {
			if c.want[i] != "" && !strings.Contains(notation(b.woken()), strconv.Quote(c.want[i])) {
				t.Errorf("%q of %q takes %s, want %q", c.takers[i], c.takers, notation(b.out.Reply), c.want[i])
			}
			for _, b := range slices.Backward(takers) { // who waits longest looks last
				if b.out.Deferred && drill.Done(b.out.Resume) {
					b.again()
				}
			}
		}
		for i, b := range takers {
			if c.want[i] == "" && !b.out.Deferred {
				t.Errorf("%q of %q takes %s", c.takers[i], c.takers, notation(b.out.Reply))
			}
		}
	}
}

// Whatever brings a collection under a key wakes who waits for it.
func TestWhatWakesTakers(t *testing.T) {
	t.Parallel()
	list, zset := pushed("q", "v"), notation(engine.Array(engine.Bulk("q"), engine.Bulk("v"), engine.Double(1)))
	for _, c := range []struct {
		calls []string
		take  string
		want  string
	}{
		{[]string{"LPUSH q v"}, "BLPOP q 0", list},
		{[]string{"RPUSH q v"}, "BRPOP q 0", list},
		{[]string{"ZADD q 1 v"}, "BZPOPMIN q 0", zset},
		{[]string{"ZINCRBY q 1 v"}, "BZPOPMAX q 0", zset},
		{[]string{"RPUSH from v", "RENAME from q"}, "BLPOP q 0", list},
		{[]string{"RPUSH from v", "COPY from q"}, "BLPOP q 0", list},
		{[]string{"RPUSH from v", "LMOVE from q LEFT LEFT"}, "BLPOP q 0", list},
		{[]string{"SADD from v", "ZUNIONSTORE q 1 from"}, "BZPOPMIN q 0", zset},
		{[]string{"ZADD from 1 v", "ZRANGESTORE q from 0 0"}, "BZPOPMIN q 0", zset},
		{[]string{"SET q x", "SADD from v", "ZUNIONSTORE q 1 from"}, "BZPOPMIN q 0", zset},
		{[]string{"RPUSH q x", "ZADD from 1 v", "ZRANGESTORE q from 0 0"}, "BZPOPMIN q 0", zset},
		{[]string{"SET q x", "RPUSH from v", "RENAME from q"}, "BLPOP q 0", list},
		{[]string{"SELECT 1", "RPUSH q v", "MOVE q 0", "SELECT 0"}, "BLPOP q 0", list},
		{[]string{"SELECT 1", "RPUSH q v", "SWAPDB 0 1", "SELECT 0"}, "BLPOP q 0", list},
		{[]string{"MULTI", "RPUSH q x", "DEL q", "RPUSH q v", "EXEC"}, "BLPOP q 0", list},
		{[]string{"EVAL redis.call('RPUSH',KEYS[1],'v') 1 q"}, "BLPOP q 0", list},
		// What is there for a moment, or of another type, does not.
		{[]string{"MULTI", "RPUSH q x", "DEL q", "EXEC", "SADD q v", "DEL q", "ZADD q 1 v", "DEL q", "RPUSH q v"}, "BLPOP q 0", list},
		{[]string{"MULTI", "ZADD q 1 x", "DEL q", "SET q x", "EXEC", "DEL q", "ZADD q 1 v"}, "BZPOPMIN q 0", zset},
	} {
		w := newHarness(t)
		b := w.block(2, strings.Fields(c.take)...)
		for _, call := range c.calls {
			if r := w.do(1, strings.Fields(call)...); r.Kind == engine.KindError {
				t.Fatalf("%s: %s", call, r.Str)
			}
		}
		b.expect(c.want)
	}
}

// Who comes to a key of another kind gets an error, although others wait there since before.
func TestOtherKindBehindATaker(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	first := w.block(2, "BLPOP", "q", "0")
	w.expect("OK", "SET", "q", "x")
	w.expect("(error) "+string(engine.ErrWrongType), "BLPOP", "free", "q", "0")
	w.expect("(error) "+string(engine.ErrWrongType), "BZPOPMIN", "q", "0")
	w.expect("(integer) 1", "RPUSH", "free", "v")
	w.expect(pushed("free", "v"), "BLPOP", "free", "q", "0")
	w.expect("(integer) 1", "DEL", "q")
	w.expect("(integer) 1", "RPUSH", "q", "v")
	first.expect(pushed("q", "v"))
}

// What CONTAINER.UNDO brings back wakes them too.
func TestUndoWakesTakers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "undo-window", "300")
	w.expect("(integer) 1", "RPUSH", "q", "v")
	w.expect("OK", "FLUSHDB")
	b := w.block(2, "BLPOP", "q", "0")
	w.do(1, "CONTAINER.UNDO", "0")
	b.expect(pushed("q", "v"))
}

// A chain of those who move entries ends where it should, and the error of one is not that of the next.
func TestTakersThatMove(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	first := w.block(2, "BLMOVE", "a", "b", "LEFT", "LEFT", "0")
	second := w.block(3, "BRPOPLPUSH", "b", "c", "0")
	w.expect("(integer) 1", "RPUSH", "a", "v")
	first.expect(`"v"`)
	second.expect(`"v"`)
	w.expect(`1) "v"`, "LRANGE", "c", "0", "-1")

	w.expect("OK", "SET", "text", "x")
	first = w.block(2, "BLMOVE", "a", "text", "LEFT", "LEFT", "0")
	second = w.block(3, "BLPOP", "a", "0")
	w.expect("(integer) 1", "RPUSH", "a", "v")
	first.expect("(error) " + string(engine.ErrWrongType))
	second.expect(pushed("a", "v"))
}

// TestQueueExactlyOnce: each entry that producers push is taken by one of those who wait, and by no one else.
func TestQueueExactlyOnce(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const workers = 4
	each := drill.Pick(50, 300, 5000)
	push := [...]string{"LPUSH", "RPUSH", "ZADD"}
	take := [...]string{"BLPOP", "BRPOP", "BZPOPMIN"}
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for kind := range push {
		key := fmt.Sprint("q", kind)
		for n := range workers {
			producer, consumer := w.session(10+2*(kind*workers+n)), w.session(11+2*(kind*workers+n))
			wg.Go(func() {
				for i := range each {
					args := []string{push[kind], key}
					if kind == 2 {
						args = append(args, fmt.Sprint(i))
					}
					if r := w.engine.Execute(producer, append(args, fmt.Sprint(kind, n, i))).Reply; r.Kind == engine.KindError {
						t.Errorf("%q: %s", args, r.Str)
						return
					}
				}
			})
			wg.Go(func() {
				for range each {
					args := []string{take[kind], "none", key, "0"}
					out := w.engine.Execute(consumer, args)
					for out.Deferred {
						<-out.Resume
						out = w.engine.Execute(consumer, args)
					}
					if out.Reply.Kind != engine.KindArray {
						t.Errorf("%q: %s", args, notation(out.Reply))
						return
					}
					mu.Lock()
					got = append(got, strings.Clone(out.Reply.Elems[1].Str))
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(got)
	if n := len(got); n != len(push)*workers*each || len(slices.Compact(got)) != n {
		t.Errorf("%d entries were taken, %d different ones, of %d", n, len(slices.Compact(got)), len(push)*workers*each)
	}
	if n := w.engine.Waiters.Waiting.Load(); n != 0 {
		t.Errorf("%d clients wait", n)
	}
}

// TestSeconds: times to wait in seconds, as Redis rounds them.
func TestSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "-0": 0, "-0.0005": 0, "-0.001": 0, "0.0001": 1, "0.001": 1, "1.0005": 1001, "2": 2000} {
		if ms, err := items.ParseSeconds(text); ms != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, ms, err, want)
		}
	}
	for _, text := range []string{"-0.0015", "-1", "1e30", "x", ""} {
		if ms, err := items.ParseSeconds(text); err == nil {
			t.Errorf("%s: %d", text, ms)
		}
	}
}
