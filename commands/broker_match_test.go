package commands

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// hardPatterns returns patterns that take long to match with hardChannel. The last one matches it.
func hardPatterns() []string {
	var list []string
	for i := range 10 {
		list = append(list, "*"+strings.Repeat("?", 1000)+fmt.Sprint("b", i)+"*")
	}
	return append(list, "*")
}

var hardChannel = strings.Repeat("a", admin.MaxChannel)

// While a message is matched, nothing is locked: others subscribe, publish, and change the items of the
// publisher's transaction.
func TestMatchingHoldsNoLock(t *testing.T) {
	t.Parallel()
	for _, inTransaction := range []bool{false, true} {
		t.Run(fmt.Sprint("transaction ", inTransaction), func(t *testing.T) {
			w := newHarness(t)
			w.do(2, append([]string{"PSUBSCRIBE"}, hardPatterns()...)...)
			w.received(2)
			publisher := w.session(1)
			publisher.AbandonInterval = 0
			looks := 0
			publisher.Abandoned = func() bool {
				looks++
				w.do(3, "SUBSCRIBE", fmt.Sprint("other", looks))
				w.do(4, "PUBLISH", "cheap", fmt.Sprint(looks))
				w.do(4, "SET", "k", "theirs")
				return false
			}
			if inTransaction {
				w.do(1, "MULTI")
				w.do(1, "SET", "k", "ours")
				w.do(1, "PUBLISH", hardChannel, "m")
				w.expect("1) OK\n2) (integer) 1", "EXEC")
				w.expect(`"ours"`, "GET", "k")
			} else {
				w.expect("(integer) 1", "PUBLISH", hardChannel, "m")
			}
			if looks < 5 {
				t.Errorf("it looks only %d times", looks)
			}
			var channels []string
			for _, m := range w.received(2) {
				channels = append(channels, m.Elems[2].Str)
			}
			want := append(slices.Repeat([]string{"cheap"}, looks), hardChannel)
			if !slices.Equal(channels, want) {
				t.Errorf("received %.100q", channels)
			}
		})
	}
}

// A publisher that leaves ends its matching, and nothing is published. A transaction does nothing at all.
func TestMatchingIsAbandoned(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, append([]string{"PSUBSCRIBE"}, hardPatterns()...)...)
	w.received(2)
	publisher := w.session(1)
	publisher.AbandonInterval = 0
	publisher.Abandoned = func() bool { return true }
	if r := w.do(1, "PUBLISH", hardChannel, "m"); r.Str != engine.ErrAbandoned.Error() || !w.last.Close {
		t.Errorf("%s, close %t", notation(r), w.last.Close)
	}
	w.do(1, "MULTI")
	w.do(1, "SET", "k", "ours")
	w.do(1, "PUBLISH", hardChannel, "m")
	if r := w.do(1, "EXEC"); r.Str != engine.ErrAbandoned.Error() || !w.last.Close || publisher.Multi.Open {
		t.Errorf("%s, close %t, open %t", notation(r), w.last.Close, publisher.Multi.Open)
	}
	if list := w.received(2); len(list) > 0 {
		t.Errorf("received %d messages", len(list))
	}
	w.expect("(nil)", "GET", "k")
}

// A command whose messages take long to match does not run in a loop. Others do.
func TestExpensiveMessagesLeaveTheLoop(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, append([]string{"PSUBSCRIBE"}, hardPatterns()...)...)
	s := w.session(1)
	for _, step := range []struct {
		events   string
		command  []string
		deferred bool
	}{
		{"", []string{"PUBLISH", hardChannel, "m"}, true},
		{"", []string{"PUBLISH", "channel", hardChannel}, false},
		{"", []string{"SET", hardChannel, "m"}, false},
		{"KA", []string{"SET", hardChannel, "m"}, true},
		{"KA", []string{"SET", "k", hardChannel}, false},
		{"KA", []string{"GET", hardChannel}, false},
	} {
		w.do(3, "CONFIG", "SET", "notify-keyspace-events", step.events)
		s.OnLoop = true
		if out := w.engine.Execute(s, step.command); out.Deferred != step.deferred {
			t.Errorf("%.20q: deferred %t", step.command, out.Deferred)
		}
		s.OnLoop = false
	}
	w.do(2, "PUNSUBSCRIBE")
	if cost := w.engine.Broker.Cost(1 << 20); cost != 0 {
		t.Errorf("without patterns a message costs %d", cost)
	}
}

// While a message is matched for long, nothing waits to deliver another one. It is delivered afterwards.
func TestNothingWaitsForMatching(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, "SUBSCRIBE", "c")
	q := &w.engine.Broker.Queue
	if !q.Begin(engine.Matching) {
		t.Fatal("another goroutine delivers")
	}
	w.expect("(integer) 1", "PUBLISH", "c", "m")
	if q.HasDelivered(1) {
		t.Error("two goroutines deliver")
	}
	q.End(0)
	if list := w.received(2); len(list) != 1 {
		t.Errorf("received %d messages", len(list))
	}
}

// All subscribers see all messages in one order, whether or not they take long to match.
func TestOrderOfExpensiveMessages(t *testing.T) {
	t.Parallel()
	const publishers = 4
	messages := drill.Pick(6, 12, 300)
	w := newHarness(t)
	for subscriber := 1; subscriber <= 3; subscriber++ {
		w.do(subscriber, append([]string{"PSUBSCRIBE"}, hardPatterns()...)...)
		w.received(subscriber)
	}
	var publishing sync.WaitGroup
	for p := range publishers {
		s := engine.NewSession(int64(100+p), "", "", testStart)
		publishing.Go(func() {
			for i := range messages {
				channel := "cheap"
				if (i+p)%5 == 0 {
					channel = hardChannel
				}
				w.engine.Execute(s, []string{"PUBLISH", channel, fmt.Sprint(p, " ", i)})
			}
		})
	}
	publishing.Wait()
	var orders [3][]string
	for i := range orders {
		for _, m := range w.received(i + 1) {
			orders[i] = append(orders[i], m.Elems[3].Str)
		}
	}
	if len(orders[0]) != publishers*messages || !slices.Equal(orders[0], orders[1]) || !slices.Equal(orders[0], orders[2]) {
		t.Errorf("%d, %d and %d messages, in different orders", len(orders[0]), len(orders[1]), len(orders[2]))
	}
	next := [publishers]int{}
	for _, text := range orders[0] {
		var p, i int
		if _, err := fmt.Sscan(text, &p, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[p] {
			t.Errorf("message %d of publisher %d comes instead of %d", i, p, next[p])
		}
		next[p]++
	}
}

// A server that stops drops the messages that are not matched yet.
func TestStopEndsMatching(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, append([]string{"PSUBSCRIBE"}, hardPatterns()...)...)
	w.received(2)
	w.engine.Broker.Stop()
	w.do(1, "PUBLISH", hardChannel, "m")
	if list := w.received(2); len(list) > 0 {
		t.Errorf("received %d messages", len(list))
	}
}
