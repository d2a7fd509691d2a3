package commands

import (
	"strings"
	"testing"
	"time"

	"mayfly/keyspace/eviction"
	"mayfly/test/drill"
)

// held reports whether a command of a session would have to wait.
func (w *harness) held(session int, args ...string) bool {
	return w.engine.PausedUntil(w.session(session), args) != nil
}

func TestPauseHoldsBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args        []string
		write, rest bool // held back by CLIENT PAUSE WRITE, by ALL
	}{
		{[]string{"SET", "k", "v"}, true, true},
		{[]string{"DOC.PUT", "c", "1", "{}"}, true, true},
		{[]string{"PUBLISH", "c", "m"}, true, true},
		{[]string{"SPUBLISH", "c", "m"}, true, true},
		{[]string{"EVAL", "return 1", "0"}, true, true},
		{[]string{"EVAL", "#!lua\nreturn 1", "0"}, true, true},
		{[]string{"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}, false, true},
		{[]string{"EVAL_RO", "return 1", "0"}, false, true},
		{[]string{"EVALSHA", "0000000000000000000000000000000000000000", "0"}, true, true},
		{[]string{"GET", "k"}, false, true},
		{[]string{"MULTI"}, false, true},
		{[]string{"EXEC"}, false, true},
		{[]string{"CLIENT", "LIST"}, false, true},
		{[]string{"CLIENT", "UNPAUSE"}, false, true}, // as in Redis
		{[]string{"SET", "k"}, false, false},         // answered at once: it cannot run
		{[]string{"NOSUCH"}, false, false},
	}
	w := newHarness(t)
	for _, test := range tests {
		if w.held(2, test.args...) {
			t.Errorf("%q: held back without a pause", test.args)
		}
	}
	w.expect("OK", "CLIENT", "PAUSE", "10000", "WRITE")
	for _, test := range tests {
		if got := w.held(2, test.args...); got != test.write {
			t.Errorf("%q: held back by WRITE: %v", test.args, got)
		}
	}
	w.expect("OK", "CLIENT", "PAUSE", "5000")
	for _, test := range tests {
		if got := w.held(2, test.args...); got != test.rest {
			t.Errorf("%q: held back by ALL: %v", test.args, got)
		}
	}

	// It ends with the longer one.
	w.clock.Advance(9999 * time.Millisecond)
	if !w.held(2, "GET", "k") {
		t.Error("the pause has become shorter")
	}
	w.clock.Advance(time.Millisecond)
	if w.held(2, "GET", "k") {
		t.Error("the pause does not end")
	}
	w.expect("OK", "CLIENT", "PAUSE", "1000", "WRITE")
	if w.held(2, "GET", "k") {
		t.Error("what the last pause held back is held back by the next")
	}
}

// The queued commands decide whether an EXEC is held back.
func TestPauseHoldsTransactionsBack(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for session, queued := range map[int]string{2: "GET", 3: "DEL"} {
		w.do(session, "MULTI")
		w.do(session, queued, "k")
	}
	w.do(4, "MULTI")
	w.do(4, "CLIENT", "PAUSE", "10000", "WRITE")
	w.do(4, "SET", "k", "v")
	if got, want := notation(w.do(4, "EXEC")), "1) OK\n2) OK"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w.held(2, "EXEC") {
		t.Error("a transaction that reads is held back")
	}
	if !w.held(3, "EXEC") {
		t.Error("a transaction that writes is not held back")
	}
	w.do(4, "CLIENT", "UNPAUSE")
	if w.held(3, "EXEC") {
		t.Error("a transaction is held back after UNPAUSE")
	}
}

// A script whose first line says no-writes does not hold a transaction back.
func TestPauseHoldsTransactionsWithScriptsBack(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for session, script := range map[int]string{2: "#!lua flags=no-writes\nreturn 1", 3: "#!lua\nreturn 1", 4: "return 1"} {
		w.do(session, "MULTI")
		w.do(session, "EVAL", script, "0")
	}
	w.expect("OK", "CLIENT", "PAUSE", "10000", "WRITE")
	for session, want := range map[int]bool{2: false, 3: true, 4: true} {
		if got := w.held(session, "EXEC"); got != want {
			t.Errorf("session %d: held back %v, want %v", session, got, want)
		}
	}
}

// UNPAUSE wakes waiting commands, and so does another pause, to check whether it concerns them.
func TestPauseWakes(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, waker := range [][]string{{"CLIENT", "PAUSE", "60000"}, {"CLIENT", "UNPAUSE"}} {
		w.expect("OK", "CLIENT", "PAUSE", "60000", "WRITE")
		over := w.engine.PausedUntil(w.session(2), []string{"SET", "k", "v"})
		if over == nil {
			t.Fatal("a write is not held back")
		}
		w.expect("OK", waker...)
		if !drill.Done(over) {
			t.Errorf("%q does not wake the client", waker)
		}
		if waker[1] == "PAUSE" {
			w.engine.Pause.Finish(nil) // it pauses all commands
		}
	}
	if w.held(2, "SET", "k", "v") {
		t.Error("a write is held back after UNPAUSE")
	}
}

// As in Redis, dead items are absent while clients are paused, but they are removed only afterwards.
func TestPauseKeepsTheDead(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "Ex")
	w.do(2, "SUBSCRIBE", "__keyevent@0__:expired")
	w.received(2)
	expired := func() string { return infoFields(t, w.do(1, "INFO", "stats"))["expired_keys"] }
	for _, key := range []string{"read", "purged", "counted"} {
		w.expect("OK", "SET", key, "v", "PX", "10")
	}
	w.expect("OK", "SET", "lives", "v")
	w.expect("OK", "CLIENT", "PAUSE", "50000", "WRITE")
	w.clock.Advance(10 * time.Millisecond)
	for _, tt := range []struct{ want, command string }{
		{"(nil)", "GET read"}, {"(integer) 0", "EXISTS read purged"}, {"(integer) -2", "TTL read"}, {"(nil)", "OBJECT IDLETIME read"},
		{"(nil)", "MEMORY USAGE read"}, {"(integer) 1", "DBSIZE"}, {`"lives"`, "RANDOMKEY"}, {`1) "lives"`, "KEYS *"},
		{"(integer) 0", "DOC.COUNT 0"},
	} {
		w.expect(tt.want, strings.Fields(tt.command)...)
	}
	w.engine.Keyspace().PurgeOnce()
	if got := field(w.do(1, "CONTAINER.GET", "0"), "items").Int; got > 1 {
		t.Errorf("CONTAINER.GET counts %d items", got)
	}
	if got := infoFields(t, w.do(1, "INFO", "keyspace"))["db0"]; !strings.HasPrefix(got, "keys=1,expires=0,") {
		t.Errorf("INFO keyspace: %s", got)
	}
	if got, events := expired(), w.received(2); got != "0" || len(events) > 0 {
		t.Errorf("%s keys are expired, %d events came", got, len(events))
	}
	w.engine.Pause.Finish(nil)
	w.expect("(nil)", "GET", "read")
	if got := expired(); got != "1" {
		t.Errorf("%s keys are expired after a read", got)
	}
	w.engine.Keyspace().PurgeOnce()
	if got, events := expired(), w.received(2); got != "3" || len(events) != 3 {
		t.Errorf("%s keys are expired after the purge, %d events came", got, len(events))
	}
}

// The transaction that pauses goes on with its writes. One of them may meet a dead item.
func TestAWriteReplacesADeadItemThatAPauseKeeps(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "k", "old", "PX", "10")
	w.clock.Advance(10 * time.Millisecond)
	w.expect("OK", "MULTI")
	w.do(1, "CLIENT", "PAUSE", "50000", "WRITE")
	w.do(1, "GET", "k")
	w.do(1, "SET", "k", "new")
	w.expect("1) OK\n2) (nil)\n3) OK", "EXEC")
	w.expect(`"new"`, "GET", "k")
	w.expect("(integer) 1", "DBSIZE")
	w.engine.Pause.Finish(nil)
	w.restart()
	w.expect(`"new"`, "GET", "k")
}

// A pause ends by itself, at the time of the server's clock.
func TestThePauseOfDeathsEnds(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"WRITE", "ALL"} {
		w := newHarness(t)
		removed := func() int64 {
			w.engine.Keyspace().PurgeOnce()
			return w.engine.Keyspace().Stats().Expiry.RemovedActively
		}
		w.expect("OK", "SET", "k", "v", "PX", "10")
		w.expect("OK", "CLIENT", "PAUSE", "1000", mode)
		w.clock.Advance(999 * time.Millisecond)
		if got := removed(); got != 0 {
			t.Errorf("%s: %d removed before the end", mode, got)
		}
		w.clock.Advance(time.Millisecond)
		if got := removed(); got != 1 {
			t.Errorf("%s: %d removed after the end", mode, got)
		}
	}
}

func TestPauseHoldsEvictionBack(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.fill()
	w.expect("OK", "CLIENT", "PAUSE", "50000", "WRITE")
	w.limit(1, eviction.AllKeysRandom)
	w.expect("OK", "MULTI") // the queue takes memory
	w.expect("QUEUED", "GET", "k")
	w.expect("1) (nil)", "EXEC")
	if got := infoFields(t, w.do(1, "INFO", "stats"))["evicted_keys"]; got != "0" {
		t.Errorf("%s keys are evicted", got)
	}
	w.engine.Pause.Finish(nil)
	w.limit(0, eviction.None)
}
