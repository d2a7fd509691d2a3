package commands

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

const insideFailed = "(error) ERR internal error; the server's log has the details"

// addHalfway adds commands that do a lot and then panic: halfway with all locks, and halfway-keys with
// those of its keys.
func addHalfway(t *testing.T) {
	t.Helper()
	write := func(x *engine.Context, ids []string) {
		c, err := x.Database()
		if err != nil {
			panic(err)
		}
		for _, id := range ids {
			x.Put(c, id, keyspace.Plain, strings.Repeat("x", 1000), expiry.Never, events.Set)
		}
		x.Remove(c, ids[0])
		x.Put(c, ids[1], keyspace.Document, `{"ttl":1}`, x.Now()+1000, events.DocPut)
	}
	addRow(t, engine.Command{
		Name: "halfway-keys", Arity: -3, Keys: engine.AllKeys, Flags: engine.Write,
		Parse: func(in *engine.Input) (engine.Run, error) {
			ids := in.Args[1:]
			return func(x *engine.Context) engine.Reply { write(x, ids); panic("half way") }, nil
		},
	})
	addRow(t, engine.Command{
		Name: "halfway", Arity: 1, Scope: engine.ScopeAll, Flags: engine.Write,
		Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
			write(x, []string{"a", "b", "c", "new"})
			x.Tx.SetPolicy(x.Tx.Container("orders"), 1, expiry.Lenient)
			x.Tx.Drop(x.Tx.Container("gone"))
			x.Tx.CreateContainer("made", 5, expiry.Strict)
			x.Tx.Flush(x.Tx.Container("0"))
			x.Tx.Swap(x.Tx.Container("1"), x.Tx.Container("2"))
			panic("half way")
		}),
	})
}

// TestPanicInATransactionRollsItBack: commands, alone and in EXEC, write to several partitions, change
// and drop containers, and panic. No trace is left for clients, watchers and subscribers, in the
// statistics and after a restart.
func TestPanicInATransactionRollsItBack(t *testing.T) {
	w := newHarness(t)
	var log bytes.Buffer
	w.engine.Log = zerolog.New(&log)
	addHalfway(t)
	for _, args := range [][]string{
		{"CONTAINER.SET", "orders", "TTL", "100"}, {"CONTAINER.SET", "gone", "TTL", "-1"},
		{"DOC.PUT", "orders", "1", `{"n":1}`}, {"DOC.PUT", "gone", "1", `{"n":2}`},
		{"SET", "a", "1"}, {"SET", "b", "2", "EX", "1000"}, {"SET", "n", "41"},
		{"SELECT", "1"}, {"SET", "one", "1"}, {"SELECT", "0"},
	} {
		if r := w.do(1, args...); r.Kind == engine.KindError {
			t.Fatalf("%q: %s", args, notation(r))
		}
	}
	look := func() (all string) {
		for _, args := range [][]string{
			{"KEYS", "*"}, {"DBSIZE"}, {"GET", "a"}, {"GET", "b"}, {"PTTL", "b"}, {"GET", "n"}, {"CONTAINER.LIST"},
			{"CONTAINER.GET", "orders"}, {"CONTAINER.GET", "gone"}, {"CONTAINER.GET", "0"}, {"CONTAINER.GET", "1"}, {"CONTAINER.GET", "2"},
			{"CONTAINER.HISTORY", "orders"}, {"CONTAINER.HISTORY", "0"}, {"CONTAINER.HISTORY", "1"},
			{"DOC.GET", "orders", "1", "WITHMETA"}, {"DOC.GET", "gone", "1", "WITHMETA"}, {"MEMORY", "USAGE", "b"}, {"CLIENT", "ID"}, {"SCAN", "0"},
		} {
			all += fmt.Sprintf("%q: %s\n", args, notation(w.do(1, args...)))
		}
		return all + fmt.Sprint(w.engine.Keyspace().Used())
	}
	w.do(9, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	before := look()
	cases := map[string]struct {
		queue [][]string
		last  []string
		reply string
	}{
		"all locks":    {nil, []string{"halfway"}, insideFailed},
		"several keys": {nil, []string{"halfway-keys", "a", "b", "c"}, insideFailed},
		"in EXEC": {[][]string{
			{"SET", "a", "9"}, {"INCR", "n"}, {"SELECT", "1"}, {"DEL", "one"}, {"PUBLISH", "news", "nothing"},
			{"CONTAINER.SET", "late", "TTL", "7"}, {"SELECT", "0"}, {"halfway"}, {"SET", "a", "10"},
		}, []string{"EXEC"}, "(error) " + string(engine.ErrExecInternal)},
		"in EXEC, of keys": {[][]string{
			{"MSET", "a", "9", "b", "8"}, {"SELECT", "3"}, {"halfway-keys", "a", "b", "c"},
		}, []string{"EXEC"}, "(error) " + string(engine.ErrExecInternal)},
	}
	for name, test := range cases {
		for _, id := range []string{"a", "b", "c", "new"} { // there and not there
			w.do(2, "WATCH", id)
		}
		if test.queue != nil {
			w.queueAll(1, test.queue...)
		}
		log.Reset()
		if r := notation(w.do(1, test.last...)); r != test.reply {
			t.Errorf("%s: %s", name, r)
		}
		if !strings.Contains(log.String(), "half way") || !strings.Contains(log.String(), "rollback_test.go") {
			t.Errorf("%s: the log lacks the stack: %s", name, &log)
		}
		if after := look(); after != before {
			t.Errorf("%s left\n%s\nwhere there was\n%s", name, after, before)
		}
		// A watcher sees no change, and sees the next one.
		w.do(2, "MULTI")
		w.do(2, "PING")
		if r := notation(w.do(2, "EXEC")); r != "1) PONG" {
			t.Errorf("%s: EXEC of a watcher: %s", name, r)
		}
	}
	w.expect("OK", "SET", "a", "3")
	w.expect("(integer) 42", "INCR", "n")
}

// Rolled-back events reach no subscriber, and later messages arrive.
func TestPanicPublishesNothing(t *testing.T) {
	w := newHarness(t)
	w.engine.Log = zerolog.Nop()
	addHalfway(t)
	w.do(1, "CONTAINER.SET", "orders", "TTL", "-1")
	w.do(1, "DOC.PUT", "orders", "lives", "{}")
	w.clock.Advance(5 * time.Second)
	w.do(9, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.do(5, "PSUBSCRIBE", "*")
	w.received(5)
	w.do(1, "halfway-keys", "a", "b", "c")
	w.queueAll(1, []string{"SET", "a", "1"}, []string{"PUBLISH", "news", "nothing"}, []string{"halfway-keys", "a", "b", "c"})
	w.do(1, "EXEC")
	w.queueAll(1, []string{"CONTAINER.SET", "orders", "TTL", "3"}, []string{"DOC.GET", "orders", "lives"}, []string{"halfway-keys", "a", "b", "c"})
	w.do(1, "EXEC")
	w.do(1, "SET", "z", "1")
	var heard []string
	for _, r := range w.received(5) {
		heard = append(heard, r.Elems[2].Str+" "+r.Elems[3].Str)
	}
	want := []string{"__keyspace@0__:z set", "__keyevent@0__:set z"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q", heard)
	}
}

// The event of a death that a command causes leaves only after that command is committed, in order.
func TestDeathEventsWaitForTheirCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queue [][]string
		last  []string
		want  []string
	}{
		"a default": {
			queue: [][]string{{"CONTAINER.SET", "orders", "TTL", "3"}, {"DOC.GET", "orders", "1"}, {"DOC.PUT", "orders", "1", "{}"}},
			last:  []string{"EXEC"}, want: []string{"expired", "doc.put"},
		},
		"a default, by a count": {
			queue: [][]string{{"CONTAINER.SET", "orders", "TTL", "3"}, {"DOC.COUNT", "orders"}},
			last:  []string{"EXEC"}, want: []string{"expired"},
		},
		"an end in the past": {
			last: []string{"SET", "k", "v", "PXAT", "1"}, want: []string{"set", "expire", "expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			w.expect("OK", "CONFIG", "SET", "undo-window", "0") // what can be taken back is told later
			w.do(1, "CONTAINER.SET", "orders", "TTL", "-1")
			w.do(1, "DOC.PUT", "orders", "1", "{}")
			w.clock.Advance(5 * time.Second)
			w.do(9, "CONFIG", "SET", "notify-keyspace-events", "KA")
			w.do(5, "PSUBSCRIBE", "*")
			w.received(5)
			if test.queue != nil {
				w.queueAll(1, test.queue...)
			}
			w.do(1, test.last...)
			written := w.last.LSN
			var heard []string
			for _, r := range w.received(5) {
				heard = append(heard, r.Elems[3].Str)
			}
			if !slices.Equal(heard, test.want) {
				t.Errorf("heard %q, want %q", heard, test.want)
			}
			lsns := w.session(5).Receiver.(*inbox).lsns
			for _, lsn := range lsns[len(lsns)-len(heard):] {
				if lsn < written {
					t.Errorf("the message waits for %d, its change for %d", lsn, written)
				}
			}
		})
	}
}
