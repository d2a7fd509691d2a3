package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
)

// counts returns the statistics of a command in INFO: calls, rejected, failed.
func (w *harness) counts(command string) string {
	w.t.Helper()
	line := infoFields(w.t, w.do(9, "INFO", "commandstats"))["cmdstat_"+command]
	if line == "" {
		return "none"
	}
	m := regexp.MustCompile(`^calls=(\d+),usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=(\d+),failed_calls=(\d+)$`).FindStringSubmatch(line)
	if m == nil {
		w.t.Fatalf("%s is %q", command, line)
	}
	return strings.Join(m[1:], " ")
}

func TestCommandStats(t *testing.T) {
	w := newHarness(t)
	addPanics(t)
	if got := w.counts("get"); got != "none" {
		t.Errorf("a command that was never called has %s", got)
	}
	for _, line := range []string{
		"SET a x", "GET a", "get a", "GET", "GET a b", // two calls, two rejected
		"INCR a",              // fails
		"INCRBY a x",          // its arguments are wrong
		"CONFIG GET port",     // counts as a subcommand
		"CONFIG NOSUCH", "NO", // belong to no command
		"MULTI", "INCR n", "INCR a", "INCR", "DISCARD",
		"MULTI", "INCR n", "INCR a", "EXEC",
		"EXEC",
	} {
		w.do(1, strings.Fields(line)...)
	}
	for command, want := range map[string]string{
		"get": "2 2 0", "set": "1 0 0", "incr": "3 1 2", "incrby": "1 0 1", "config|get": "1 0 0", "config": "none",
		"multi": "2 0 0", "discard": "1 0 0", "exec": "2 0 1",
	} {
		if got := w.counts(command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	w.host.setPassword("secret")
	w.do(2, "GET", "a")
	w.host.setPassword("")
	if got := w.counts("get"); got != "2 3 0" {
		t.Errorf("get without the password: %s", got)
	}
	fields := infoFields(t, w.do(1, "INFO", "errorstats"))
	for code, want := range map[string]string{"ERR": "count=9", "NOAUTH": "count=1", "EXECABORT": ""} {
		if got := fields["errorstat_"+code]; got != want {
			t.Errorf("errors %s: %q, want %q", code, got, want)
		}
	}
	w.expect("OK", "CONFIG", "RESETSTAT")
	if got := w.counts("get"); got != "none" {
		t.Errorf("after RESETSTAT get has %s", got)
	}
	if got := infoFields(t, w.do(1, "INFO", "errorstats")); len(got) != 2 { // title and empty line
		t.Errorf("after RESETSTAT there are errors: %q", got)
	}
}

// A command that panics counts as a failed call.
func TestCommandStatsOfPanics(t *testing.T) {
	w := newHarness(t)
	addPanics(t)
	for _, name := range []string{"panic-early", "panic-late"} {
		r := engine.Table[name]
		r.Number = len(engine.AllRows)
		engine.AllRows = append(engine.AllRows, r)
	}
	t.Cleanup(func() { engine.AllRows = engine.AllRows[:len(engine.AllRows)-2] })
	w.do(1, "panic-early")
	w.do(1, "panic-late", "k")
	if early, late := w.counts("panic-early"), w.counts("panic-late"); early != "1 0 1" || late != "1 0 1" {
		t.Errorf("panic-early: %s, panic-late: %s", early, late)
	}
}

func TestLatencyStats(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "PING")
	w.do(1, "GET") // rejected: it has no duration
	got := infoFields(t, w.do(1, "INFO", "latencystats"))
	if p := got["latency_percentiles_usec_ping"]; !regexp.MustCompile(`^p50=(\d+\.\d{3}),p99=\d+\.\d{3},p99\.9=\d+\.\d{3}$`).MatchString(p) {
		t.Errorf("ping: %q", p)
	}
	if p, ok := got["latency_percentiles_usec_get"]; ok {
		t.Errorf("get: %q", p)
	}
}

// As in Redis, a command without a duration since CONFIG RESETSTAT is in neither report. Other figures of it
// count on.
func TestLatencyTrackingIsOff(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.engine.SetLatencyTracking(false)
	w.do(1, "PING")
	if got := infoFields(t, w.do(1, "INFO", "latencystats")); len(got) != 2 { // title and empty line
		t.Errorf("latencystats: %q", got)
	}
	w.expect("(empty hash)", "LATENCY", "HISTOGRAM", "ping")
	if got := w.counts("ping"); got != "1 0 0" {
		t.Errorf("commandstats of ping: %s", got)
	}
	w.engine.SetLatencyTracking(true)
	w.do(1, "PING")
	if got := w.counts("ping"); got != "2 0 0" {
		t.Errorf("commandstats of ping: %s", got)
	}
	if s := w.engine.StatsOf(engine.Table["ping"]); s.Durations.Count != 1 {
		t.Errorf("%d durations", s.Durations.Count)
	}
	if got := infoFields(t, w.do(1, "INFO", "latencystats"))["latency_percentiles_usec_ping"]; got == "" {
		t.Error("no percentiles of ping")
	}
}

func TestLatencyPercentiles(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "PING")
	for _, tt := range []struct {
		percentiles []float64
		want        string
	}{
		{[]float64{0, 50, 100}, `^p0=\d+\.\d{3},p50=\d+\.\d{3},p100=\d+\.\d{3}$`},
		{[]float64{99.99, 12.5}, `^p99\.99=\d+\.\d{3},p12\.5=\d+\.\d{3}$`},
		{nil, `^$`},
	} {
		w.engine.SetLatencyPercentiles(tt.percentiles)
		got, ok := infoFields(t, w.do(1, "INFO", "latencystats"))["latency_percentiles_usec_ping"]
		if !ok || !regexp.MustCompile(tt.want).MatchString(got) {
			t.Errorf("%v: %q", tt.percentiles, got)
		}
	}
}

func TestHitsAndMisses(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "SET", "k", "v")
	w.do(1, "DOC.PUT", "0", "d", "{}")
	w.do(1, "CONFIG", "RESETSTAT")
	for _, tt := range []struct {
		line         string
		hits, misses int
	}{
		{"GET k", 1, 0},
		{"GET none", 0, 1},
		{"MGET k none k", 2, 1},
		{"EXISTS k none", 1, 1},
		{"STRLEN k", 1, 0},
		{"GET d", 1, 0}, // of the wrong type
		{"TTL none", 0, 1},
		{"DOC.GET 0 d", 1, 0},
		{"DOC.MGET 0 d none", 1, 1},
		{"SET k w", 0, 0},
		{"DEL none", 0, 0},
		{"INCR n", 0, 0},
	} {
		w.do(1, "CONFIG", "RESETSTAT")
		w.do(1, strings.Fields(tt.line)...)
		got := infoFields(t, w.do(1, "INFO", "stats"))
		if got["keyspace_hits"] != fmt.Sprint(tt.hits) || got["keyspace_misses"] != fmt.Sprint(tt.misses) {
			t.Errorf("%s: %s hits and %s misses, want %d and %d", tt.line, got["keyspace_hits"], got["keyspace_misses"], tt.hits, tt.misses)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	rate := func() string { return infoFields(t, w.do(9, "INFO", "stats"))["instantaneous_ops_per_sec"] }
	if got := rate(); got != "0" {
		t.Errorf("before any sample: %s commands a second", got)
	}
	// More samples than are kept: the first ones, without growth, no longer count.
	for i := range 30 {
		if i > 14 {
			for range 20 {
				w.do(1, "PING")
			}
		}
		w.engine.Sample(time.Duration(i) * engine.SampleInterval)
	}
	if got := rate(); got != "200" {
		t.Errorf("%s commands a second, want 200", got)
	}
	w.expect("OK", "CONFIG", "RESETSTAT")
	if got := rate(); got != "0" {
		t.Errorf("after RESETSTAT: %s commands a second", got)
	}
}

// In a pipeline the end of a command is the start of the next, until the session waits.
func TestResetTimer(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.session(1)
	w.do(1, "PING")
	if s.StartTime() != s.LastEnd() || s.LastEnd() == 0 {
		t.Error("the next command does not begin where the last one ended")
	}
	mark := s.LastEnd()
	s.ResetTimer()
	if s.StartTime() < mark || s.LastEnd() != 0 {
		t.Error("after a pause the next command does not begin now")
	}
	w.do(1, "NOSUCH")
	if s.LastEnd() != 0 {
		t.Error("what is not timed leaves its time to the next command")
	}
}
