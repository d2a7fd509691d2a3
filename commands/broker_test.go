package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// A subscriber to all events always knows which items exist: a created item did not exist before, a
// deleted or dead one did. Many sessions and the purge work on a few keys to provoke a wrong order.
func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	const workers, commands, keys = 8, 2000, 4
	w := newHarness(t)
	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "Kngx")
	w.do(1, "PSUBSCRIBE", "__keyspace@0__:*")
	var working sync.WaitGroup
	for worker := range workers {
		s := engine.NewSession(int64(100+worker), "", "", testStart)
		working.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for i := range commands {
				if i%50 == 0 { // time passes even if the purge does not run
					w.clock.Advance(time.Millisecond)
				}
				key := strconv.Itoa(random.IntN(keys))
				command := [][]string{
					{"SET", key, "v"}, {"SET", key, "v", "PX", "3"}, {"DEL", key}, {"DEL", "0", "1", "2"}, {"GET", key},
					{"RENAME", key, strconv.Itoa(random.IntN(keys))}, {"DBSIZE"},
				}[random.IntN(7)]
				w.engine.Execute(s, command)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			w.clock.Advance(time.Millisecond)
			w.engine.Keyspace().PurgeOnce()
		}
	}
	w.do(2, "SET", "0", "v", "PX", "1") // one expires for certain
	w.clock.Advance(time.Second)
	w.do(2, "GET", "0")
	lives := map[string]bool{}
	seen := map[string]int{}
	overwritten := map[string]bool{} // by a rename whose last event follows; those of other keys may come between
	for _, m := range w.received(1) {
		key, event := m.Elems[2].Str, m.Elems[3].Str
		seen[event]++
		if overwritten[key] && event != "rename_to" {
			t.Fatalf("%s is created although it exists, then comes %s", key, event)
		}
		delete(overwritten, key)
		switch event {
		case "new":
			if lives[key] {
				overwritten[key] = true
			}
			lives[key] = true
		case "del", "expired", "rename_from":
			if !lives[key] {
				t.Fatalf("%s is gone (%s) although it did not exist", key, event)
			}
			lives[key] = false
		}
	}
	if len(overwritten) != 0 {
		t.Errorf("created although they exist: %v", overwritten)
	}
	for _, event := range []string{"new", "del", "expired", "rename_from", "expire"} {
		if seen[event] == 0 {
			t.Errorf("there was no event %s", event)
		}
	}
	for key := range keys {
		reply := w.do(2, "EXISTS", strconv.Itoa(key))
		for _, m := range w.received(1) { // the key was dead, but not removed
			lives[m.Elems[2].Str] = m.Elems[3].Str != "expired"
		}
		if name := fmt.Sprintf("__keyspace@0__:%d", key); lives[name] != (reply.Int == 1) {
			t.Errorf("%s: the events say %v, EXISTS %d", name, lives[name], reply.Int)
		}
	}
}

// Deaths that outrun delivery wait in a queue of bounded length. Each is published once.
func TestManyDeaths(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	broker := &w.engine.Broker
	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "Ex")
	w.do(1, "SUBSCRIBE", "__keyevent@0__:expired")
	var tx keyspace.Tx
	w.engine.Keyspace().BeginNone(&tx)
	c := tx.Container("0")
	tx.Close()
	const deaths = 4 * engine.LongQueue
	longest := 0
	for i := range deaths {
		broker.OnDeath(c, strconv.Itoa(i), 0)
		longest = max(longest, broker.Queue.Len())
	}
	if longest > engine.LongQueue+1 {
		t.Errorf("%d deaths waited", longest)
	}
	told := w.received(1)
	if len(told) != deaths {
		t.Fatalf("told of %d deaths out of %d", len(told), deaths)
	}
	for i, m := range told {
		if m.Elems[2].Str != strconv.Itoa(i) {
			t.Fatalf("death %d is that of %s", i, m.Elems[2].Str)
		}
	}
}

// Subscriptions leave nothing behind, whatever the order of their ends.
func TestSubscriptionsEnd(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	broker := &w.engine.Broker
	random := rand.New(rand.NewPCG(3, 4))
	subscribed := map[string]bool{}
	words := map[engine.SubscriptionKind]string{engine.SubChannel: "SUBSCRIBE", engine.SubPattern: "PSUBSCRIBE", engine.SubShard: "SSUBSCRIBE"}
	for range 5000 {
		session, kind, name := 1+random.IntN(5), engine.SubscriptionKind(random.IntN(3)), strconv.Itoa(random.IntN(6))
		word := words[kind]
		on := random.IntN(2) == 0
		if !on {
			word = word[:len(word)-len("SUBSCRIBE")] + "UNSUBSCRIBE"
		}
		subscribed[fmt.Sprint(session, kind, name)] = on
		w.do(session, word, name)
		want := 0
		for s := range 5 {
			if subscribed[fmt.Sprint(s+1, kind, name)] {
				want++
			}
		}
		if got := broker.CountSubscribers(kind, name); got != want {
			t.Fatalf("%s has %d subscribers, want %d", name, got, want)
		}
	}
	for n := range 5 {
		w.engine.CloseSession(w.session(n + 1))
	}
	for kind := range words {
		if n := broker.CountNames(kind); n != 0 || broker.SubscribedSessions.Load() != 0 {
			t.Errorf("%d subscriptions of kind %d are left, of %d sessions", n, kind, broker.SubscribedSessions.Load())
		}
	}
}

// Events without a selected class or without subscribers cost nothing.
func TestUnwantedEvents(t *testing.T) {
	w := newHarness(t)
	x := &engine.Context{Engine: w.engine}
	for _, classes := range []events.Classes{0, events.ClassAll | events.ClassNew | events.ToKeyspace | events.ToKeyevent, events.ClassExpired | events.ToKeyevent} {
		w.engine.Broker.SetEventClasses(classes)
		if n := testing.AllocsPerRun(100, func() { x.Notify(events.Set, nil, "k") }); n != 0 || x.Batch != nil {
			t.Errorf("%s: %v allocations", classes, n)
		}
	}
}

// Every change of an item by a command of the transcripts has an event of that item. Commands on whole
// containers have no events of their items. A call that fails changes nothing, and says why in one line.
func TestEveryChangeHasAnEvent(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // plays all transcripts once more
	wholesale := []string{"flushall", "flushdb", "swapdb", "container.set", "container.drop", "container.undo", "exec"}
	changes, failed := map[string]bool{}, 0 // by command
	eachTranscript(t, func(t *testing.T, steps []step) {
		const listener = 999
		p := &transcriptPlayer{t: t, harness: newHarness(t), session: 1}
		w := p.harness
		play := func(s *step) {
			before, reply := w.dump(), p.play(s)
			if reply.Kind != engine.KindError {
				return
			}
			failed++
			if after := w.dump(); !slices.Equal(before, after) {
				t.Errorf("line %d: %s failed, but changed %q to %q", s.line, s.text, before, after)
			}
			if strings.ContainsAny(reply.Str, "\r\n") {
				t.Errorf("line %d: %s: not one line: %q", s.line, s.text, reply.Str)
			}
		}
		for i := range steps {
			s := &steps[i]
			if !s.isCommand() {
				if s.directive() != "received" {
					p.play(s)
				}
				continue
			}
			name := strings.ToLower(s.args(t)[0])
			s.want = []string{"~ .*"} // what it replies is another test's concern
			if slices.Contains(wholesale, name) {
				play(s)
				continue
			}
			if w.sessions[listener] == nil {
				w.do(listener, "PSUBSCRIBE", "__keyspace@*")
			}
			w.engine.Broker.SetEventClasses(events.ClassAll | events.ToKeyspace)
			before := w.items()
			w.received(listener)
			play(s)
			told := map[string]bool{}
			for _, m := range w.received(listener) {
				told[strings.Replace(strings.TrimPrefix(m.Elems[2].Str, "__keyspace@"), "__:", "/", 1)] = true
			}
			after := w.items()
			for _, items := range []map[string]string{before, after} {
				for id := range items {
					if before[id] == after[id] {
						continue
					}
					if changes[name] = true; !told[id] {
						t.Errorf("line %d: %s: no event of %s", s.line, s.text, id)
					}
				}
			}
		}
	})
	if len(changes) < 20 || failed < 100 {
		t.Errorf("only %d commands have changed anything, and %d calls have failed", len(changes), failed)
	}
}

// items describes the living items by container and id.
func (w *harness) items() map[string]string {
	all := map[string]string{}
	var tx keyspace.Tx
	w.engine.Keyspace().BeginSweep(&tx)
	defer tx.Close()
	for _, c := range tx.Containers() {
		for cursor, next := uint64(0), true; next; next = cursor != 0 {
			cursor = tx.Scan(c, cursor, 100, func(id string, it keyspace.Item) {
				all[c.Name()+"/"+id] = fmt.Sprintf("%c %q ts=%d own=%d", it.Kind, it.Body, it.TS, it.ExpireAt)
			})
		}
	}
	return all
}

// Deaths are heard while their class and a channel are selected and a session subscribes.
func TestDeathsAreHeard(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, step := range []struct {
		command []string
		heard   bool
	}{
		{[]string{"SUBSCRIBE", "news"}, false},
		{[]string{"CONFIG", "SET", "notify-keyspace-events", "x"}, false},
		{[]string{"CONFIG", "SET", "notify-keyspace-events", "E$"}, false},
		{[]string{"CONFIG", "SET", "notify-keyspace-events", "Kx"}, true},
		{[]string{"UNSUBSCRIBE"}, false},
		{[]string{"PSUBSCRIBE", "__key*"}, true},
		{[]string{"CONFIG", "SET", "notify-keyspace-events", ""}, false},
	} {
		session := 1
		if step.command[0] == "CONFIG" {
			session = 2
		}
		w.do(session, step.command...)
		if got := w.engine.Broker.DeathsHeard(); got != step.heard {
			t.Errorf("after %v: %t", step.command, got)
		}
	}
}
