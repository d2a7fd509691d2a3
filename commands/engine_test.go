package commands

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// addRow adds a command to the table during a test.
func addRow(t *testing.T, c engine.Command) {
	t.Helper()
	if engine.Table[c.Name] != nil {
		t.Fatal(c.Name, "exists")
	}
	engine.Table[c.Name] = &engine.Row{Command: &c, FullName: c.Name, Items: c.Keys}
	t.Cleanup(func() { delete(engine.Table, c.Name) })
}

// addPanics adds panic-early, whose Parse panics, and panic-late key, whose Run panics.
func addPanics(t *testing.T) {
	t.Helper()
	addRow(t, engine.Command{Name: "panic-early", Arity: 1, Parse: func(*engine.Input) (engine.Run, error) { panic("early") }})
	addRow(t, engine.Command{
		Name: "panic-late", Arity: 2, Keys: engine.OneKey, Flags: engine.Write,
		Parse: engine.NoParse(func(*engine.Context) engine.Reply { panic("late") }),
	})
}

func TestPanicIsAnErrorReply(t *testing.T) {
	w := newHarness(t)
	var log bytes.Buffer
	w.engine.Log = zerolog.New(&log)
	addPanics(t)
	addRow(t, engine.Command{
		Name: "panic-locked", Arity: 1, Scope: engine.ScopeAll, Flags: engine.Write,
		Parse: engine.NoParse(func(*engine.Context) engine.Reply { panic("locked") }),
	})
	w.expect("OK", "SET", "k", "v")
	for _, args := range [][]string{{"panic-early"}, {"panic-late", "k"}, {"panic-locked"}} {
		w.expect("(error) ERR internal error; the server's log has the details", args...)
		// The locks are free again for all sessions.
		w.expect(`"v"`, "GET", "k")
		if got := notation(w.do(2, "DBSIZE")); got != "(integer) 1" {
			t.Errorf("DBSIZE of another session: %s", got)
		}
		if s := log.String(); !strings.Contains(s, args[0]) || !strings.Contains(s, "engine_test.go") {
			t.Errorf("the log lacks the command or its stack: %s", s)
		}
		log.Reset()
	}
}

func TestPasswordComesBeforeAnything(t *testing.T) {
	t.Parallel()
	inCluster, _ := newClusterHarness(t, leads())
	for _, w := range []*harness{newHarness(t), inCluster} {
		w.expect("OK", "SET", "k", "v")
		w.host.setPassword("secret")
		for _, r := range engine.AllRows {
			if r.Parse == nil || r.Flags&engine.OnlyInCluster != 0 && w != inCluster {
				continue
			}
			args := strings.Split(r.FullName, "|")
			args = append(args, slices.Repeat([]string{"\x00"}, max(r.Arity, -r.Arity)-len(args))...)
			reply := w.do(2, args...)
			refused := reply.Kind == engine.KindError && strings.Contains(" "+reply.Str, " NOAUTH ")
			if free := r.Flags&engine.NoAuth != 0; !refused && !free {
				t.Errorf("%s without a password: %s", r.FullName, notation(reply))
			}
		}
		w.expect(`"v"`, "GET", "k") // who came before there was a password stays in
	}
}

func TestLongestID(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	longest := strings.Repeat("k", keyspace.MaxIDLength)
	w.expect("OK", "SET", longest, "1")
	w.expect(`"1"`, "GET", longest)
	before := w.dump()
	for _, r := range engine.TableSorted {
		if r.Items.First == 1 {
			args := append([]string{r.Name}, slices.Repeat([]string{"1"}, max(r.Arity, -r.Arity, r.CountedArity(), -r.CountedArity())-1)...)
			switch r.Name { // what they check before they look for the key
			case "json.strappend":
				args[len(args)-1] = `"1"`
			case "linsert":
				args[2] = "BEFORE"
			case "lmove", "blmove":
				args[3], args[4] = "LEFT", "LEFT"
			case "zlexcount", "zrangebylex", "zrevrangebylex", "zremrangebylex":
				args[2], args[3] = "-", "+"
			}
			args[1] = longest + "k"
			w.expect("(error) ERR id of 65537 bytes is too long: legal are up to 65536", args...)
		}
	}
	w.expect("(error) ERR id of 65537 bytes is too long: legal are up to 65536", "MSET", "a", "1", longest+"k", "1")
	if !slices.Equal(before, w.dump()) {
		t.Error("an id that is too long has changed something")
	}
}

func TestLongestValue(t *testing.T) {
	t.Parallel()
	const tooLong = "(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	w := newHarness(t)
	w.host.options["max-value-size"] = "10"
	value := strings.Repeat("v", 10)
	w.expect("OK", "SET", "k", value)
	w.expect(tooLong, "SET", "k", value+"v")
	w.expect(tooLong, "SET", "k", value+"v", "EX", "10")
	w.expect(tooLong, "SETEX", "k", "10", value+"v")
	w.expect(tooLong, "PSETEX", "k", "10", value+"v")
	w.expect(tooLong, "SETNX", "none", value+"v")
	w.expect(tooLong, "GETSET", "k", value+"v")
	w.expect(tooLong, "MSET", "a", "1", "k", value+"v")
	w.expect(tooLong, "MSETNX", "a", "1", "b", value+"v")
	w.expect(tooLong, "APPEND", "k", "v")
	w.expect(tooLong, "APPEND", "none", value+"v")
	w.expect("(integer) 10", "APPEND", "k", "")
	w.expect("(integer) 0", "EXISTS", "none", "a", "b")
	w.expect(`"vvvvvvvvvv"`, "GET", "k")
}

// A reply must not leave before what it tells is committed: the LSN of the outcome covers it.
func TestOutcomeCoversReadsAndWrites(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	written := w.engine.Execute(w.session(1), []string{"SET", "k", "v"}).LSN
	if written == 0 {
		t.Fatal("a write waits for nothing")
	}
	if read := w.engine.Execute(w.session(2), []string{"GET", "k"}).LSN; read < written {
		t.Errorf("a read of what is not committed yet waits for %d, not %d", read, written)
	}
}

// A command that is deferred has not run, and runs elsewhere.
func TestDeferred(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.session(1)
	s.OnLoop = true
	if out := w.engine.Execute(s, []string{"FLUSHALL"}); !out.Deferred || out.Resume != nil || out.Reply.Kind != engine.KindNone {
		t.Errorf("FLUSHALL on a loop: %+v", out)
	}
	if out := w.engine.Execute(s, []string{"SET", "k", "v"}); out.Deferred {
		t.Errorf("SET on a loop: %+v", out)
	}
	s.OnLoop = false
	w.expect("OK", "CLIENT", "PAUSE", "1000000", "WRITE")
	out := w.engine.Execute(s, []string{"SET", "k", "w"})
	if !out.Deferred || out.Resume == nil {
		t.Fatalf("SET while clients are paused: %+v", out)
	}
	w.expect(`"v"`, "GET", "k")
	w.expect("OK", "CLIENT", "UNPAUSE")
	<-out.Resume
	if out := w.engine.Execute(s, []string{"SET", "k", "w"}); out.Deferred || out.LSN == 0 {
		t.Errorf("SET after the pause: %+v", out)
	}
}

// A frequent command makes no garbage in the engine. Others make the closure that Parse returns.
func TestExecuteAllocates(t *testing.T) {
	w := newHarness(t)
	w.expect("OK", "SET", "k", "v")
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", `{"a":1}`)
	s := w.session(1)
	for _, test := range []struct {
		most float64
		args []string
	}{
		{0, []string{"PING"}}, {0, []string{"GET", "k"}}, {0, []string{"GET", "none"}}, {0, []string{"STRLEN", "k"}},
		{0, []string{"DOC.GET", "c", "d"}}, {0, []string{"DOC.GET", "c", "none"}}, {0, []string{"DOC.TTL", "c", "d"}},
		{0, []string{"DOC.PUT", "c", "d", `{"a":2,"ttl":30}`, "NX"}}, {1, []string{"TTL", "k"}},
	} {
		// The least of three: allocations of all goroutines count, those of the background and of earlier
		// tests too.
		n := math.Inf(1)
		for range 3 {
			n = min(n, testing.AllocsPerRun(100, func() { w.engine.Execute(s, test.args) }))
		}
		if n > test.most {
			t.Errorf("%q: %v allocations", test.args, n)
		}
	}
}
