package commands

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// These scripts run until something ends them: one calls a command all the time, the other none.
const (
	callLoop  = "while true do redis.call('EXISTS', KEYS[1]) end"
	emptyLoop = "while true do end"
)

// evalIn runs a script on a session in a goroutine of its own. The channel gets its reply.
func (w *harness) evalIn(session int, script string, keys ...string) <-chan engine.Reply {
	s := w.session(session)
	reply := make(chan engine.Reply, 1)
	args := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
	go func() { reply <- w.engine.Execute(s, args).Reply }()
	return reply
}

// awaitScripts waits until a number of scripts run for long.
func (w *harness) awaitScripts(n int) {
	w.t.Helper()
	drill.Await(w.t, fmt.Sprint(n, " scripts that run for long"), func() bool {
		w.engine.Scripts.Mu.Lock()
		defer w.engine.Scripts.Mu.Unlock()
		return len(w.engine.Scripts.Running) == n
	})
}

// awaitBusy waits until a script has exceeded the time limit.
func (w *harness) awaitBusy() {
	w.t.Helper()
	drill.Await(w.t, "a script that exceeds the time limit", w.engine.Pause.IsBusy)
}

// A script that uses a key which its call does not name runs again. Nothing of the first run is left: no
// change, no statistics, no event and no message.
func TestScriptRunsAgainForOtherKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.do(2, "PSUBSCRIBE", "*")
	w.received(2)
	const script = "redis.call('INCR', KEYS[1]) redis.call('PUBLISH', 'c', 'm') for i = 1, 20 do redis.call('INCR', 'other' .. i) end return redis.call('GET', KEYS[1])"
	for n := 1; n <= 2; n++ {
		w.expect(fmt.Sprintf("%q", strconv.Itoa(n)), "EVAL", script, "1", "k")
		w.expect(fmt.Sprintf("%q", strconv.Itoa(n)), "GET", "other20")
		var got []string
		for _, m := range w.received(2) {
			got = append(got, m.Elems[2].Str+"="+m.Elems[3].Str)
		}
		want := []string{"__keyspace@0__:k=incrby", "__keyevent@0__:incrby=k", "c=m"}
		for i := 1; i <= 20; i++ {
			want = append(want, fmt.Sprintf("__keyspace@0__:other%d=incrby", i), fmt.Sprintf("__keyevent@0__:incrby=other%d", i))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("messages:\n%s\nwant:\n%s", got, want)
		}
	}
	calls := map[string]int64{}
	for _, c := range w.engine.CommandStats() {
		calls[c.Name] = c.Calls
	}
	if calls["incr"] != 42 || calls["publish"] != 2 || calls["eval"] != 2 {
		t.Errorf("calls: %v", calls)
	}
	if s, ok := w.engine.Scripts.Cache.Get(shaOf(w, script)); !ok || s.Notes.Load()&engine.ScriptNeedsAll == 0 {
		t.Error("the cache does not remember that the script uses other keys")
	}
}

func shaOf(w *harness, script string) string { return w.do(1, "SCRIPT", "LOAD", script).Str }

// Commands that need everything run within scripts that name keys.
func TestScriptWithSweeps(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "MSET", "a", "1", "b", "2")
	w.expect("(integer) 3", "EVAL", "redis.call('SET', KEYS[1], 'x') return redis.call('DBSIZE')", "1", "c")
	w.expect("(integer) 3", "EVAL", "redis.call('SET', KEYS[1], 'y') return #redis.call('KEYS', '*')", "1", "c")
	w.expect("OK", "EVAL", "redis.call('FLUSHALL') return redis.call('SET', KEYS[1], 'z')", "1", "c")
	w.expect("(integer) 1", "DBSIZE")
	w.expect("OK", "EVAL", "return redis.call('CONTAINER.SET', 'made', 'TTL', '60')", "0")
	w.expect("OK", "EVAL", "return redis.call('DOC.PUT', 'made', KEYS[1], '{\"a\":2}')", "1", "d")
	w.expect("(nil)", "EVAL", "return redis.call('XREAD', 'STREAMS', '__keyevent@made__:expired', '$')", "0")
}

// An error of the script keeps what it has written. The veto of a container on hold takes everything back.
func TestScriptRollsBack(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "held", "TTL", "-1")
	w.do(1, "DOC.PUT", "held", "d", "{}")
	w.do(1, "CONTAINER.SET", "held", "HOLD", "case")
	if r := w.do(1, "EVAL", "redis.call('SET', KEYS[1], '1') error('oops')", "1", "k"); r.Kind != engine.KindError {
		t.Errorf("the script replies %s", notation(r))
	}
	w.expect(`"1"`, "GET", "k")
	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.do(2, "PSUBSCRIBE", "*")
	w.received(2)
	const vetoed = "redis.call('SET', KEYS[1], '2') redis.pcall('DOC.DEL', 'held', 'd') redis.call('SET', KEYS[1], '3')"
	for range 2 {
		if r := w.do(1, "EVAL", vetoed, "1", "k"); r.Kind != engine.KindError || !strings.Contains(r.Str, "case") {
			t.Errorf("the script replies %s", notation(r))
		}
		w.expect(`"1"`, "GET", "k")
		w.expect(`"{}"`, "DOC.GET", "held", "d")
	}
	w.do(1, "MULTI")
	w.do(1, "SET", "other", "1")
	w.do(1, "EVAL", vetoed, "1", "k")
	if r := w.do(1, "EXEC"); r.Kind != engine.KindError {
		t.Errorf("EXEC replies %s", notation(r))
	}
	w.expect("(nil)", "GET", "other")
	w.expect(`"1"`, "GET", "k")
	if list := w.received(2); len(list) > 0 {
		t.Errorf("messages: %v", list)
	}
}

// A script that writes too much ends, and changes nothing.
func TestScriptWorkIsBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = "65536"
	w.do(1, "SET", "k", "1")
	const endless = "local v = string.rep('x', 60000) while true do redis.call('SET', KEYS[1], v) %s end"
	for _, more := range []string{"redis.call('DEL', KEYS[1])", "", "redis.call('PUBLISH', 'c', v)"}[:drill.Pick(1, 3, 3)] {
		if r := w.do(1, "EVAL", fmt.Sprintf(endless, more), "1", "k"); !strings.Contains(r.Str, "changed nothing: its commands walk and write") {
			t.Errorf("the script replies %s", notation(r))
		}
		w.expect(`"1"`, "GET", "k")
	}
	w.do(1, "MULTI")
	w.do(1, "SET", "k", "2")
	w.do(1, "EVAL", fmt.Sprintf(endless, ""), "1", "k")
	if r := w.do(1, "EXEC"); !strings.HasPrefix(r.Str, "EXECABORT") {
		t.Errorf("EXEC replies %s", notation(r))
	}
	w.expect(`"1"`, "GET", "k")
	// Many calls are fine.
	calls := fmt.Sprint(drill.Pick(20_000, 20_000, 1_000_000))
	w.expect("(integer) "+calls, "EVAL", "local n for i = 1, ARGV[1] do n = redis.call('INCR', KEYS[1]) end return n", "1", "n", calls)
}

// After lua-time-limit other commands get BUSY, whatever they touch, but for a few. SCRIPT KILL ends a script
// that has not written.
func TestScriptBusy(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("(error) "+string(engine.ErrNotBusy), "SCRIPT", "KILL")
	w.engine.Scripts.SetTimeLimit(30 * time.Millisecond)
	w.session(1)
	reply := w.evalIn(2, emptyLoop, "k")
	w.awaitScripts(1)
	w.awaitBusy()
	for _, command := range []string{"GET k", "SET other 1", "PING", "INFO", "EVAL 'return 1' 0", "SCRIPT FLUSH", "SHUTDOWN", "DBSIZE", "FLUSHALL"} {
		w.expect("(error) "+string(engine.ErrBusy), splitCommand(t, command)...)
	}
	w.expect("OK", "MULTI")
	w.expect("(error) "+string(engine.ErrBusy), "GET", "k")
	w.expect("OK", "DISCARD")
	w.expect("OK", "SCRIPT", "KILL")
	if r := <-reply; !strings.HasPrefix(r.Str, "ERR Script killed by user with SCRIPT KILL.") {
		t.Errorf("the script replies %s", notation(r))
	}
	w.expect("PONG", "PING")
	w.expect("OK", "SET", "k", "1")

	reply = w.evalIn(2, "redis.call('SET', KEYS[1], '2') "+callLoop, "k")
	w.awaitBusy()
	w.expect("(error) "+string(engine.ErrUnkillable), "SCRIPT", "KILL")
	w.engine.Scripts.EndAll(engine.ErrScriptStopped)
	if r := <-reply; !strings.Contains(r.Str, "changed nothing") {
		t.Errorf("the script replies %s", notation(r))
	}
	w.expect(`"1"`, "GET", "k")
	if len(w.engine.Scripts.Running) > 0 || w.engine.Scripts.Busy > 0 {
		t.Errorf("%d scripts run, %d of them too long", len(w.engine.Scripts.Running), w.engine.Scripts.Busy)
	}
}

// A script ends after its hard limit, and changes nothing.
func TestScriptHardLimit(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.engine.Scripts.SetTimeLimit(5 * time.Millisecond)
	w.engine.Scripts.LeastHard = 20 * time.Millisecond
	w.do(1, "SET", "k", "1")
	r := w.do(1, "EVAL", "redis.call('SET', KEYS[1], '2') "+callLoop, "1", "k")
	if !strings.Contains(r.Str, "ended after 20ms, and changed nothing") {
		t.Errorf("the script replies %s", notation(r))
	}
	w.expect(`"1"`, "GET", "k")
	w.do(1, "MULTI")
	w.do(1, "SET", "k", "3")
	w.do(1, "EVAL", callLoop, "1", "k")
	if r := w.do(1, "EXEC"); !strings.HasPrefix(r.Str, "EXECABORT") {
		t.Errorf("EXEC replies %s", notation(r))
	}
	w.expect(`"1"`, "GET", "k")
}

// A loop does not wait for a script, nor does a session that needs other keys. One of its own gets BUSY after
// the time limit.
func TestScriptKeepsNoOneWaiting(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const endless, soon = time.Minute, 10 * time.Second // who waits for a script waits for endless
	w.engine.Scripts.SetTimeLimit(endless)
	w.do(1, "EVAL", "return 1", "0") // scripts are used from here on
	var elsewhere []string
	for i := range 100 {
		if id := "id" + strconv.Itoa(i); !sharesPartition(w, id, "k") {
			elsewhere = append(elsewhere, id)
		}
	}
	reply := w.evalIn(9, callLoop, "k")
	w.awaitScripts(1)
	loop := w.session(3)
	loop.OnLoop = true
	began := time.Now()
	if out := w.engine.Execute(loop, []string{"GET", "k"}); !out.Deferred {
		t.Errorf("a loop gets %s", notation(out.Reply))
	}
	if out := w.engine.Execute(loop, []string{"MSET", "k", "1", "a", "1", "b", "1", "c", "1", "d", "1"}); !out.Deferred {
		t.Errorf("a loop gets %s", notation(out.Reply))
	}
	for _, id := range elsewhere {
		w.expect("(nil)", "GET", id)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("the others took %s", took)
	}
	w.engine.Scripts.EndAll(engine.ErrScriptStopped)
	<-reply
	w.engine.Scripts.SetTimeLimit(500 * time.Millisecond)
	reply = w.evalIn(9, callLoop, "k")
	w.awaitScripts(1)
	w.expect("(error) "+string(engine.ErrBusy), "SET", "k", "1")
	w.expect("OK", "SCRIPT", "KILL")
	<-reply
	w.expect("OK", "SET", "k", "1")
	// The first ms: the locks are not marked yet.
	w.engine.Scripts.SetTimeLimit(endless)
	for range 20 {
		began, reply = time.Now(), w.evalIn(9, emptyLoop, "k")
		for range 10 {
			w.engine.Execute(loop, []string{"GET", "k"})
		}
		if took := time.Since(began); took > soon {
			t.Errorf("the loop waited %s", took)
		}
		w.awaitScripts(1)
		w.engine.Scripts.EndAll(engine.ErrScriptStopped)
		<-reply
	}
}

// A script that only computes holds no lock, whatever its call names.
func TestScriptComputesWithoutLocks(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{{"EVAL", emptyLoop, "0"}, {"EVAL", emptyLoop, "1", "k"}, {"MULTI", "EVAL", emptyLoop, "0"}} {
		w := newHarness(t)
		s, loop := w.session(1), w.session(2)
		loop.OnLoop = true
		end := make(chan engine.Reply)
		go func() {
			command := c
			if c[0] == "MULTI" {
				w.engine.Execute(s, c[:1])
				w.engine.Execute(s, c[1:])
				command = []string{"EXEC"}
			}
			end <- w.engine.Execute(s, command).Reply
		}()
		w.awaitScripts(1)
		for i := range 50 {
			if out := w.engine.Execute(loop, []string{"SET", "k" + strconv.Itoa(i), "v"}); out.Deferred {
				t.Fatalf("%q: key %d is locked", c, i)
			}
		}
		w.engine.Scripts.EndAll(engine.ErrScriptStopped)
		if r := <-end; !strings.Contains(r.Str, "the script has ended") {
			t.Errorf("%q: %s", c, notation(r))
		}
	}
}

// A script gives way to other long commands until its first command. The moment of the script is that of this
// command.
func TestScriptsMoment(t *testing.T) {
	t.Parallel()
	const count = "for i = 1, 1e6 do end "
	for _, c := range []struct {
		script, key string
		want        string // nil: k has died before
	}{
		{count + "return redis.call('GET', KEYS[1])", "k", "(nil)"},
		{count + "return redis.call('GET', 'k')", "other", "(nil)"},
		{count + "return redis.call('GET', 'k')", "", "(nil)"},
		{"redis.call('PING') " + count + "return redis.call('GET', 'k')", "", `"v"`}, // known by then to lock all
		{"redis.call('PING') " + count + "return redis.call('GET', KEYS[1])", "k", `"v"`},
		{"local v = redis.call('GET', KEYS[1]) " + count + "return redis.call('GET', KEYS[1])", "k", `"v"`},
	} {
		w := newHarness(t)
		args := []string{"EVAL", c.script, "0"}
		if c.key != "" {
			args = []string{"EVAL", c.script, "1", c.key}
		}
		w.do(1, args...)
		w.do(1, "SET", "k", "v", "PX", "1000")
		yields := 0
		w.session(1).Yield = func() {
			if yields++; yields == 1 {
				w.clock.Advance(time.Hour)
			}
		}
		w.expect(c.want, args...)
		if (yields > 0) != (c.want == "(nil)") {
			t.Errorf("%s: gives way %d times", c.script, yields)
		}
	}
}

// A script whose client is killed before its first command ends there: it would go on beside all others,
// without a turn.
func TestScriptOfAKilledClient(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const script = "for i = 1, 1e6 do end return redis.call('SET', KEYS[1], 'v')"
	w.do(1, "EVAL", script, "1", "other")
	s := w.session(1)
	s.Yield = func() { s.Disconnected.Store(true) }
	if r := w.do(1, "EVAL", script, "1", "k"); !strings.Contains(r.Str, engine.ErrAbandoned.Error()) {
		t.Errorf("the script: %s", notation(r))
	}
	if r := w.do(2, "EXISTS", "k"); r.Int != 0 {
		t.Error("the script has written")
	}
}

// A script that waits for its locks gets BUSY, as any command does. Then it has changed nothing.
func TestScriptWaitsForLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.engine.Scripts.SetTimeLimit(time.Minute)
	reply := w.evalIn(9, callLoop, "k")
	w.awaitScripts(1)
	const incr = "return redis.call('INCR', KEYS[1])"
	loop := w.session(3)
	loop.OnLoop = true
	for range 2 {
		if out := w.engine.Execute(loop, []string{"EVAL", incr, "1", "k"}); !out.Deferred {
			t.Errorf("a loop gets %s", notation(out.Reply))
		}
	}
	waits := []<-chan engine.Reply{w.evalIn(4, incr, "k"), w.evalIn(5, strings.Replace(incr, "KEYS[1]", "'k'", 1))}
	w.engine.Scripts.SetTimeLimit(time.Millisecond)
	for _, wait := range waits {
		if r := <-wait; r.Str != string(engine.ErrBusy) {
			t.Errorf("a script that waits gets %s", notation(r))
		}
	}
	w.engine.Scripts.EndAll(engine.ErrScriptStopped)
	<-reply
	w.expect("(integer) 1", "EVAL", incr, "1", "k")
}

// The log takes 100 lines of a script in ten seconds and 1000 of all, then one line says how many were left
// out.
func TestScriptLogIsBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var out bytes.Buffer
	const logPeriod = 10 * time.Second
	w.engine.Log = zerolog.New(&out).Level(zerolog.InfoLevel)
	logs := func(script, lines string) {
		w.expect("(nil)", "EVAL", "for i = 1, ARGV[1] do redis.log(redis.LOG_NOTICE, 'line') redis.log(redis.LOG_DEBUG, 'hidden') end --"+script, "0", lines)
	}
	period := func(at time.Duration, want ...string) {
		t.Helper()
		w.engine.Sample(at)
		var got []string
		for _, left := range regexp.MustCompile(`"left_out":(\d+)`).FindAllStringSubmatch(out.String(), -1) {
			got = append(got, left[1])
		}
		lines := fmt.Sprint(strings.Count(out.String(), `"line"`))
		if got = append(got, lines); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("at %s: left out, and logged: %s, want %s", at, got, want)
		}
		out.Reset()
	}
	period(time.Minute, "0")
	logs("a", "99")
	logs("b", "170")
	logs("b", "40000")
	period(time.Minute+logPeriod-1, "199") // the period is not over
	period(time.Minute+logPeriod, "40070", "0")
	logs("b", "7")
	period(time.Minute+2*logPeriod, "7")
	want := []string{"1000", "15"}
	for i := range 10 {
		logs(strconv.Itoa(i), "103")
		want = append(want, "3")
	}
	logs("after", "15")
	period(time.Minute+3*logPeriod, want...)
	period(time.Minute+4*logPeriod, "0")
	const again = "for i = 1, 103 do redis.log(redis.LOG_NOTICE, 'line') end "
	w.expect("(nil)", "EVAL", again+"return redis.call('GET', 'another key')", "1", "k") // it runs again, and locks all
	period(time.Minute+5*logPeriod, "100", "3")
	w.expect("(nil)", "EVAL", again, "0") // the next script logs all
	period(time.Minute+6*logPeriod, "100", "3")
}

// A loop runs brief scripts itself. Others leave it before any effect, and take effect once beside it.
func TestScriptsOnLoops(t *testing.T) {
	t.Parallel()
	const incr = "redis.call('INCR', KEYS[1]) "
	for _, c := range []struct {
		name, script string
		leaves       bool
	}{
		{"brief", incr + "return redis.call('GET', KEYS[1])", false},
		{"documents", incr + "redis.call('JSON.SET', KEYS[2], '$', '[1]') return redis.call('JSON.GET', KEYS[2])", false},
		{"an error", incr + "error('oops')", false},
		{"endless until it leaves", incr + "for i = 1, 2e6 do end return 1", true},
		{"many commands", incr + "for i = 1, 1e4 do redis.call('GET', KEYS[1]) end return 1", true},
		{"another key", incr + "return redis.call('GET', 'elsewhere' .. KEYS[2])", true},
		{"a sweep", incr + "return redis.call('DBSIZE')", true},
		{"a message", incr + "return redis.call('PUBLISH', 'c', 'm')", true},
		{"much memory", incr + "return #string.rep('x', 2 * 1024 * 1024)", true},
		{"a long value", incr + "return redis.call('JSON.GET', KEYS[3], '$[*]')", true},
		{"many arguments", incr + "local t = {} for i = 1, 300 do t[i] = KEYS[1] end return redis.call('MGET', unpack(t))", true},
		{"a long text", incr + "return 1" + strings.Repeat(" ", engine.MaxLoopScript), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t)
			now := time.Duration(0)
			w.engine.Scripts.Monotonic = func() time.Duration { now += 50 * time.Microsecond; return now } // a look takes that
			w.do(1, "JSON.SET", "long", "$", "["+strings.Repeat("1,", 100_000)+"1]")
			s := w.session(2)
			s.OnLoop = true
			args := []string{"EVAL", c.script, "3", "n", "doc", "long"}
			out := w.engine.Execute(s, args)
			if out.Deferred != c.leaves {
				t.Fatalf("it leaves: %t, want %t: %s", out.Deferred, c.leaves, notation(out.Reply))
			}
			if out.Deferred {
				w.expect("(nil)", "GET", "n")
				s.OnLoop = false
				if out = w.engine.Execute(s, args); out.Deferred || out.Reply.Kind == engine.KindError {
					t.Errorf("beside the loop: deferred %t, %s", out.Deferred, notation(out.Reply))
				}
			}
			w.expect(`"1"`, "GET", "n")
		})
	}
}

// sharesPartition reports whether two ids are in the same partition.
func sharesPartition(w *harness, a, b string) bool {
	tx := &w.session(99).Tx
	w.engine.Keyspace().BeginKey(tx, a)
	defer tx.Close()
	return tx.Covers(b)
}

// Scripts, transactions and single commands on the same keys each take effect at once: a script sees no half
// of another, also if it must run again.
func TestScriptsAreAtomic(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const rounds = 300
	scripts := []string{
		"local a = redis.call('INCR', KEYS[1]) local b = redis.call('INCR', KEYS[2]) return {a, b}",
		"local a = redis.call('INCR', KEYS[1]) local b = redis.call('INCR', 'reg' .. '-b') return {a, b, KEYS[2]}",
		"local a = redis.call('INCR', 'reg-a') local b = redis.call('INCR', 'reg-b') return {a, b, KEYS[2], KEYS[1]}",
	}
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range 6 {
		s := w.session(10 + i)
		s.OnLoop, s.Paced = i%3 == 0, i%3 == 1
		do := func(args ...string) engine.Reply {
			out := w.engine.Execute(s, args)
			for out.Deferred { // as the server does: beside the loop, and with a turn
				s.OnLoop, s.Paced = false, false
				out = w.engine.Execute(s, args)
				s.OnLoop, s.Paced = i%3 == 0, i%3 == 1
			}
			return out.Reply
		}
		all.Go(func() {
			for n := range rounds {
				var r engine.Reply
				switch k := (n + i) % 5; {
				case k < len(scripts):
					r = do("EVAL", scripts[k], "2", "reg-a", "reg-b")
				case k == 3:
					do("MULTI")
					do("INCR", "reg-a")
					do("INCR", "reg-b")
					r = do("EXEC")
				default:
					do("MULTI")
					do("EVAL", scripts[n%len(scripts)], "2", "reg-a", "reg-b")
					if r = do("EXEC"); len(r.Elems) == 1 {
						r = r.Elems[0]
					}
					do("SET", "plain", "x")
				}
				if len(r.Elems) < 2 || r.Elems[0].Int != r.Elems[1].Int || r.Elems[0].Int == 0 {
					t.Errorf("round %d: %s", n, notation(r))
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	want := strconv.FormatInt(done.Load(), 10)
	w.expect(fmt.Sprintf("%q", want), "GET", "reg-a")
	w.expect(fmt.Sprintf("%q", want), "GET", "reg-b")
}

// Without scripts EVAL and its relatives name the option. What is cached stays.
func TestScriptsOff(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	sha := shaOf(w, "return 1")
	w.engine.Scripts.SetEnabled(false)
	for _, command := range []string{"EVAL 'return 1' 0", "EVAL_RO 'return 1' 0", "EVALSHA " + sha + " 0", "EVALSHA_RO " + sha + " 0", "SCRIPT LOAD 'return 2'"} {
		w.expect("(error) "+string(engine.ErrScriptsOff), splitCommand(t, command)...)
	}
	w.engine.Scripts.SetEnabled(true)
	w.expect("(integer) 1", "EVALSHA", sha, "0")
}

// MONITOR shows a script before what it calls, each once, also if the script uses other keys than it names.
func TestScriptInMonitor(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, "MONITOR")
	w.received(2)
	w.do(1, "EVAL", "redis.call('SET', KEYS[1], 'v') redis.call('SELECT', 5) return redis.call('GET', 'other')", "1", "k")
	var got []string
	for _, m := range w.received(2) {
		_, line, _ := strings.Cut(m.Str, " ")
		got = append(got, line)
	}
	want := []string{`[0 127.0.0.1:50001] "EVAL" "redis.call('SET', KEYS[1], 'v') redis.call('SELECT', 5) return redis.call('GET', 'other')" "1" "k"`,
		`[0 lua] "SET" "k" "v"`, `[5 lua] "SELECT" "5"`, `[5 lua] "GET" "other"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("MONITOR shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Over maxmemory a script may not grow memory before it has written, unless its first line allows it.
func TestScriptOverMemory(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "SET", "k", strings.Repeat("x", 1000))
	w.do(1, "CONFIG", "SET", "maxmemory", "1")
	w.expect("(error) "+string(engine.ErrOOM), "SET", "k", "v")
	if r := w.do(1, "EVAL", "return redis.pcall('SET', KEYS[1], 'v')", "1", "k"); r.Str != string(engine.ErrOOM) {
		t.Errorf("SET within a script: %s", notation(r))
	}
	w.expect("(integer) 1", "EVAL", "return redis.call('EXISTS', KEYS[1])", "1", "k")
	w.expect("OK", "EVAL", "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'v')", "1", "k")
}

// What exceeds a limit of memory, of the reply or of arguments takes back what the script has written.
func TestScriptLimitsTakeChangesBack(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its values are large
	w := newHarness(t)
	w.host.options["max-value-size"] = strconv.Itoa(1 << 20)
	w.do(1, "SET", "k", "1")
	for _, end := range []string{
		"local t = {} while true do t[#t + 1] = {} end",
		"local s = 'x' while true do s = s .. s end",
		"return string.rep('x', 2000000)",
		"redis.call('SET', KEYS[1], string.rep('x', 2000000))",
		"local t = {} for i = 1, 300000 do t[i] = 'xxxxxxxx' end return t",
	} {
		r := w.do(1, "EVAL", "redis.call('SET', KEYS[1], '2') "+end, "1", "k")
		if !strings.HasPrefix(r.Str, "ERR script stopped: ") {
			t.Errorf("%s: %.200s", end, notation(r))
		}
		w.expect(`"1"`, "GET", "k")
	}
	// What an error of the script itself has written stays.
	if r := w.do(1, "EVAL", "redis.call('SET', KEYS[1], '2') local function f() return 1 + f() end f()", "1", "k"); r.Kind != engine.KindError {
		t.Errorf("endless recursion: %s", notation(r))
	}
	w.expect(`"2"`, "GET", "k")
}

// Very many scripts do not fill the cache. Those that SCRIPT LOAD brought stay longer than those of EVAL.
func TestScriptCacheIsBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	sha := shaOf(w, "return 'kept'")
	for i := range 2000 {
		w.do(1, "EVAL", fmt.Sprintf("return %d", i), "0")
	}
	if s := w.engine.Scripts.Stats(); s.Scripts > 600 || s.Evicted < 1000 {
		t.Errorf("%+v", s)
	}
	w.expect(`"kept"`, "EVALSHA", sha, "0")
}

// A call with very many keys locks their partitions, each once.
func TestScriptWithManyKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	args := []string{"EVAL", "return #KEYS", "100000"}
	for i := range 100_000 {
		args = append(args, "key"+strconv.Itoa(i))
	}
	w.expect("(integer) 100000", args...)
}
