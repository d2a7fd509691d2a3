package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/test/drill"
)

// longDocument returns a document of SlowBytes or more, with a member n at its end.
func longDocument() string {
	return `{"note":"` + strings.Repeat("x", engine.SlowBytes) + `","n":0}`
}

// A command that walks a long value leaves a loop, and waits for a turn. The same command on a short value
// does not, nor does one that only passes the value on.
func TestLongValuesAreDeferred(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "long", longDocument())
	w.expect("OK", "DOC.PUT", "c", "short", `{"n":0}`)
	w.expect("OK", "SET", "long", strings.Repeat("x", engine.SlowBytes))
	w.expect("OK", "SET", "short", "x")
	before := w.dump()
	type test struct {
		args   []string
		defers bool
	}
	var tests []test
	for _, id := range []string{"long", "short"} {
		for _, line := range []string{
			"DOC.GET c ID PATH /n", "DOC.GET c ID WITHMETA", "DOC.MGET c none ID WITHMETA", "DOC.META c ID",
			"DOC.PATCH c ID INCR /n 1", "DOC.MERGE c ID {\"n\":1}", "DOC.SETTTL c ID 30", "DOC.TOUCH c ID", "DOC.GETTOUCH c ID",
			"APPEND ID y", "SETRANGE ID 0 y", "EXPIRE ID 100", "PEXPIREAT ID 99999999999999", "PERSIST ID",
			"GETEX ID EX 100", "COPY ID other", "RENAME ID other", "RENAMENX ID other", "MOVE ID 1",
		} {
			tests = append(tests, test{strings.Fields(strings.ReplaceAll(line, "ID", id)), id == "long"})
		}
		for _, line := range []string{"DOC.GET c ID", "DOC.MGET c ID", "GET ID", "STRLEN ID", "GETEX ID", "DOC.EXISTS c ID", "DOC.TTL c ID"} {
			tests = append(tests, test{strings.Fields(strings.ReplaceAll(line, "ID", id)), false})
		}
	}
	for _, mode := range []string{"loop", "paced"} {
		for _, c := range tests {
			if !c.defers {
				continue // those that run would change the items
			}
			s := w.session(2)
			s.OnLoop, s.Paced = mode == "loop", mode == "paced"
			if out := w.engine.Execute(s, c.args); !out.Deferred || out.Resume != nil || out.Reply.Kind != engine.KindNone {
				t.Errorf("%s: %q: %+v", mode, c.args, out)
			}
			w.engine.Execute(s, []string{"MULTI"})
			w.engine.Execute(s, c.args)
			if out := w.engine.Execute(s, []string{"EXEC"}); !out.Deferred {
				t.Errorf("%s: MULTI, %q, EXEC: not deferred", mode, c.args)
			}
			w.engine.Execute(s, []string{"DISCARD"})
		}
	}
	if after := w.dump(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("a deferred command has changed something")
	}
	for _, c := range tests {
		if c.defers {
			continue
		}
		for _, mode := range []string{"loop", "paced"} {
			s := w.session(2)
			s.OnLoop, s.Paced = mode == "loop", mode == "paced"
			if out := w.engine.Execute(s, c.args); out.Deferred {
				t.Errorf("%s: %q is deferred", mode, c.args)
			}
		}
	}
	if hits := w.engine.SinceStart().Hits; hits > int64(2*len(tests)) {
		t.Errorf("%d hits: deferred reads count", hits)
	}
}

// Commands that compute for long wait for a turn. Those that wait for the disk or for messages do not.
func TestNeedsTurn(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.session(1)
	s.Paced = true
	many := strings.Fields(strings.Repeat(" k", engine.SlowArgs))
	for _, c := range []struct {
		args   []string
		defers bool
	}{
		{[]string{"KEYS", "*"}, true}, {[]string{"DOC.SCAN", "c", "0"}, true}, {[]string{"DBSIZE"}, false}, {[]string{"LCS", "a", "b"}, true},
		{append([]string{"MGET"}, many...), true}, {append([]string{"MGET"}, many[1:]...), false},
		{[]string{"SET", "k", strings.Repeat("x", engine.SlowArgBytes)}, true}, {[]string{"SET", "k", strings.Repeat("x", engine.SlowArgBytes/2)}, false},
		{[]string{"SAVE"}, false}, {[]string{"INFO"}, false}, {[]string{"SUBSCRIBE", "c"}, false}, {[]string{"UNSUBSCRIBE"}, false},
	} {
		if out := w.engine.Execute(s, c.args); out.Deferred != c.defers {
			t.Errorf("%.80q: deferred is %v", c.args, out.Deferred)
		}
	}
	w.engine.Execute(s, []string{"MULTI"})
	for range engine.SlowQueue + 1 {
		w.engine.Execute(s, []string{"PING"})
	}
	if out := w.engine.Execute(s, []string{"EXEC"}); !out.Deferred {
		t.Error("EXEC of many commands is not deferred")
	}
	s.Paced = false
	if out := w.engine.Execute(s, []string{"EXEC"}); out.Deferred || len(out.Reply.Elems) != engine.SlowQueue+1 {
		t.Error("EXEC with a turn does not run")
	}
}

// begun starts a command on session 1 as the engine does, up to what it leaves for after the transaction.
func (w *harness) begun(args ...string) (s *engine.Session, run engine.Run, out *engine.Outcome) {
	w.t.Helper()
	s, out = w.session(1), new(engine.Outcome)
	r, err := s.Resolve(args)
	if err == nil {
		s.In = engine.Input{Args: args, MaxValue: w.host.MaxValueSize()}
		run, err = r.Parse(&s.In)
	}
	if err == nil {
		err = w.engine.Run(s, r, args, run, out)
	}
	drill.Check(w.t, err)
	if s.Ctx.Outside == nil {
		w.t.Fatalf("%.80q leaves nothing for after the transaction", args)
	}
	return s, run, out
}

// Others change a long document while a command reads it. The command sees one state.
func TestLongValuesAreReadWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	for _, args := range [][]string{
		{"DOC.GET", "c", "d", "PATH", "/n"}, {"DOC.GET", "c", "d", "WITHMETA"}, {"DOC.MGET", "c", "d", "none", "WITHMETA"}, {"DOC.META", "c", "d"},
	} {
		want := notation(w.do(1, args...))
		s, _, _ := w.begun(args...)
		if got := notation(w.do(2, "DOC.PATCH", "c", "d", "INCR", "/n", "1")); got != "OK" {
			t.Fatal(got)
		}
		reply, again := s.Ctx.Outside()
		if again || notation(reply) != want {
			t.Errorf("%q: got %.100s, want %.100s", args, notation(reply), want)
		}
		s.Ctx.Outside = nil
	}
}

// No change by others is lost while an edit is computed without locks, and many changes cannot keep the edit
// from happening.
func TestEditsAreComputedAgain(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	args := []string{"DOC.PATCH", "c", "d", "INCR", "/n", "100"}
	s, run, out := w.begun(args...)
	r, _ := s.Resolve(args)
	tries := 0
	for ; s.Ctx.Outside != nil; tries++ {
		outside := s.Ctx.Outside
		s.Ctx.Outside = nil
		_, again := outside()
		if !again {
			t.Fatal("an edit ends without a transaction")
		}
		if got := notation(w.do(2, "DOC.PATCH", "c", "d", "INCR", "/n", "1")); got != "OK" {
			t.Fatal(got)
		}
		drill.Check(t, w.engine.Run(s, r, args, run, out))
	}
	if got := notation(out.Reply); got != "OK" || tries != items.MaxTries {
		t.Errorf("%s after %d tries, want OK after %d", got, tries, items.MaxTries)
	}
	w.expect(`"103"`, "DOC.GET", "c", "d", "PATH", "/n")
	// A document that others delete is not there any more.
	s, run, out = w.begun(args...)
	_, _ = s.Ctx.Outside()
	w.do(2, "DOC.DEL", "c", "d")
	s.Ctx.Outside = nil
	if err := w.engine.Run(s, r, args, run, out); err != nil || notation(out.Reply) != "(nil)" {
		t.Errorf("a patch of a deleted document: %v, %v", notation(out.Reply), err)
	}
	// DOC.MERGE creates it.
	w.expect("OK", "DOC.MERGE", "c", "d", longDocument())
	w.expect("OK", "DOC.MERGE", "c", "d", `{"n":7}`)
	w.expect(`"7"`, "DOC.GET", "c", "d", "PATH", "/n")
	w.expect("(error) ERR operation 1 (REMOVE /none/x): there is no /none", "DOC.PATCH", "c", "d", "REMOVE", "/none/x")
}

// The replies of a transaction that walk long values come at their places, in the right protocol, and count
// once.
func TestExecComputesAfterItsLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	w.expect("OK", "CONFIG", "SET", "slowlog-log-slower-than", "0")
	w.expect("OK", "SLOWLOG", "RESET")
	calls := func(name string) int64 { return w.engine.StatsOf(engine.Table.Find(name)).Calls }
	before := calls("doc.get")
	for _, args := range [][]string{
		{"MULTI"}, {"DOC.GET", "c", "d", "PATH", "/n"}, {"DOC.PATCH", "c", "d", "INCR", "/n", "5"}, {"DOC.META", "c", "d"},
		{"HELLO", "3"}, {"DOC.GET", "c", "d", "PATH", "/n"}, {"DOC.GET", "c", "d", "PATH", "/n", "/none"}, {"DOC.GET", "c", "none", "PATH", "/n"},
	} {
		w.do(1, args...)
	}
	reply := w.do(1, "EXEC")
	if len(reply.Elems) != 7 {
		t.Fatalf("got %s", notation(reply))
	}
	for i, want := range map[int]string{0: `"0"`, 1: "OK", 4: `"5"`, 6: "(nil)"} {
		elem := reply.Elems[i]
		if wrapped := elem.Kind == engine.KindProtocol; wrapped != (i < 3) {
			t.Errorf("element %d in the protocol before HELLO: %v", i, wrapped)
		} else if wrapped {
			elem = elem.Elems[0]
		}
		if got := notation(elem); got != want {
			t.Errorf("element %d: got %s, want %s", i, got, want)
		}
	}
	if meta := reply.Elems[2].Elems[0]; meta.Kind != engine.KindMap {
		t.Errorf("DOC.META: %s", notation(meta))
	}
	if got := calls("doc.get") - before; got != 4 {
		t.Errorf("%d calls of DOC.GET count, want 4", got)
	}
	if n := &w.session(1).Multi; n.Open || len(n.Commands) > 0 || w.session(1).Queued != engine.NoTransaction {
		t.Error("the transaction is still open")
	}
}

// A transaction that would walk and write too much under its locks is refused, and changes nothing.
func TestExecWorkIsBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = fmt.Sprint(2 << 20)
	w.expect("OK", "SET", "k", strings.Repeat("x", 1<<20))
	w.expect("OK", "SELECT", "0")
	before := w.dump()
	exec := func(n int) string {
		w.do(1, "MULTI")
		w.do(1, "SET", "other", "1")
		w.do(1, "SELECT", "1")
		w.do(1, "SELECT", "0")
		for range n {
			w.do(1, "APPEND", "k", "y")
		}
		w.do(1, "SELECT", "5")
		reply := w.do(1, "EXEC")
		return reply.Str
	}
	want := fmt.Sprintf("EXECABORT Transaction discarded because its commands walk and write more than %d bytes of values", engine.MaxExecWork(2<<20))
	if got := exec(70); got != want {
		t.Errorf("got %.200s, want %s", got, want)
	}
	if got := w.session(1).Database; got != "0" {
		t.Errorf("database %s is selected", got)
	}
	if after := w.dump(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("a refused transaction has changed something")
	}
	if got := exec(10); got != "" {
		t.Errorf("got %s", got)
	}
	w.expect("(nil)", "GET", "k")
	w.expect("OK", "SELECT", "0")
	w.expect(fmt.Sprintf("(integer) %d", 1<<20+10), "STRLEN", "k")
}

// A transaction that goes through too many keys, or takes too long, is refused and changes nothing.
func TestExecScansAreBounded(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its keys are long
	w := newHarness(t)
	w.host.options["max-value-size"] = "1"
	id := strings.Repeat("x", 60_000)
	for i := range 500 {
		w.do(1, "SET", fmt.Sprint(id, i), "v")
	}
	before := w.dump()
	for _, scan := range [][]string{{"KEYS", "none"}, {"SCAN", "0", "COUNT", "1000000", "MATCH", "none"}} {
		w.do(1, "MULTI")
		w.do(1, "SET", "k", "v")
		for range 6 {
			w.do(1, scan...)
		}
		if got := w.do(1, "EXEC").Str; !strings.HasPrefix(got, "EXECABORT Transaction discarded because its commands walk and write") {
			t.Errorf("%q: got %.100q", scan, got)
		}
	}
	w.session(1).ExecTime = 0
	w.do(1, "MULTI")
	w.do(1, "SET", "k", "v")
	w.do(1, "SET", "l", "v")
	if got := w.do(1, "EXEC").Str; got != "EXECABORT Transaction discarded because it takes longer than 0s, while others wait for its keys" {
		t.Errorf("got %.100q", got)
	}
	if after := w.dump(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("a refused transaction has changed something")
	}
	w.session(1).ExecTime = time.Hour
	w.do(1, "MULTI")
	w.do(1, "KEYS", "none")
	if got := w.do(1, "EXEC"); len(got.Elems) != 1 {
		t.Errorf("got %s", notation(got))
	}
}

// A command that goes through many keys lets others have their turn, unless it holds locks.
func TestScansYield(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 1000 {
		w.do(1, "SET", fmt.Sprint("key", i), "v")
	}
	s := w.session(1)
	s.AbandonInterval = 0
	s.Abandoned = func() bool { return false }
	yields := 0
	s.Yield = func() {
		yields++
		if notation(w.do(2, "SET", "other", "v")) != "OK" {
			t.Error("another cannot write")
		}
	}
	w.do(1, "KEYS", "none*")
	if yields == 0 {
		t.Error("KEYS does not yield")
	}
	yields = 0
	w.do(1, "MULTI")
	w.do(1, "KEYS", "none*")
	w.do(1, "EXEC")
	if yields > 0 {
		t.Error("KEYS yields under locks")
	}
	s.Yield, s.Abandoned = nil, nil
}

// A session on a loop does not wait for a transaction that locks an id for long: its command is deferred, and
// those on other ids are not.
func TestLoopsDoNotWaitForLongLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "MSET", "k", "1", "other{x}", "1", "third{y}", "1")
	s := w.session(2)
	s.OnLoop = true
	deferred := func(args ...string) bool { return w.engine.Execute(s, args).Deferred }
	ran := false
	during := func(x *engine.Context) engine.Reply {
		ran = true
		if !deferred("GET", "k") || !deferred("SET", "k", "2") || !deferred("MGET", "third{y}", "k") {
			t.Error("a command on a locked id is not deferred")
		}
		deferred("MULTI")
		deferred("GET", "k")
		if !deferred("EXEC") {
			t.Error("EXEC on a locked id is not deferred")
		}
		deferred("DISCARD")
		if deferred("GET", "third{y}") || deferred("PING") {
			t.Error("a command on another id is deferred")
		}
		return engine.OK
	}
	row := &engine.Row{Command: &engine.Command{Name: "long", Flags: engine.Write, Keys: engine.OneKey}, Items: engine.OneKey}
	args := []string{"LONG", "k", strings.Repeat("x", engine.LongBytes)}
	if err := w.engine.Run(w.session(1), row, args, during, new(engine.Outcome)); err != nil || !ran {
		t.Fatal(err)
	}
	if deferred("GET", "k") {
		t.Error("a command is deferred after the transaction")
	}
	// What locks for long: many ids, many commands, much to write.
	r := engine.Table.Find("mset")
	if many := strings.Fields(strings.Repeat("k v ", engine.LongIDs)); !s.LocksLong(r, many, 0) || s.LocksLong(r, many[:10], 0) {
		t.Error("MSET of many ids")
	}
	if r = engine.Table.Find("setrange"); !s.LocksLong(r, nil, engine.LongBytes) || s.LocksLong(r, nil, engine.LongBytes-1) {
		t.Error("SETRANGE of a long value")
	}
	if r = engine.Table.Find("doc.get"); s.LocksLong(r, nil, engine.LongBytes) {
		t.Error("DOC.GET of a long document")
	}
}
