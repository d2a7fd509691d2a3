package commands

import (
	"strings"
	"testing"
	"time"

	"mayfly/commands/admin"
	"mayfly/commands/latency"
	"mayfly/test/drill"
)

func TestLatencyMonitor(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	m := &w.engine.Latency
	if m.Exceeds(time.Hour) {
		t.Error("it wants something while it is off")
	}
	w.expect("OK", "CONFIG", "SET", "latency-monitor-threshold", "100")
	if m.Exceeds(100*time.Millisecond-1) || !m.Exceeds(100*time.Millisecond) {
		t.Error("the threshold is not 100 ms")
	}
	w.expect(`(verbatim) "Nothing has taken longer than latency-monitor-threshold.\n"`, "LATENCY", "DOCTOR")
	for _, ms := range []int{150, 300, 200} { // in one second
		m.Record(latency.OfCommand, w.clock.Now(), time.Duration(ms)*time.Millisecond)
	}
	w.clock.Advance(3 * time.Second)
	m.Record(latency.OfCommand, w.clock.Now(), 100*time.Millisecond)
	m.Record(latency.OfCommit, w.clock.Now(), 2*time.Second)
	w.expect(`1) 1) "aof-write"
   2) (integer) 1767225603
   3) (integer) 2000
   4) (integer) 2000
2) 1) "command"
   2) (integer) 1767225603
   3) (integer) 100
   4) (integer) 300`, "LATENCY", "LATEST")
	w.expect(`1) 1) (integer) 1767225600
   2) (integer) 300
2) 1) (integer) 1767225603
   2) (integer) 100`, "LATENCY", "HISTORY", "command")
	report := w.do(1, "LATENCY", "DOCTOR").Str
	for _, want := range []string{
		"command: 2 latency spikes (average 200ms, mean deviation 100ms, period 3.00 sec). Worst all time event 300ms.\n",
		"aof-write: 1 latency spikes (average 2000ms, mean deviation 0ms, period 0.00 sec). Worst all time event 2000ms.\n",
		"SLOWLOG GET", "appendfsync",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	w.expect("(integer) 1", "LATENCY", "RESET", "command", "nosuch")
	w.expect("(empty array)", "LATENCY", "HISTORY", "command")
	w.expect("(integer) 1", "LATENCY", "RESET")
	w.expect("(empty array)", "LATENCY", "LATEST")
}

// TestLatencyGraph compares with the output of Redis' latency.c and sparkline.c.
func TestLatencyGraph(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	m := &w.engine.Latency
	w.expect("(error) ERR No samples available for event 'command'", "LATENCY", "GRAPH", "command")
	for _, sample := range []struct{ after, ms time.Duration }{{0, 300}, {1, 100}, {59, 200}} {
		w.clock.Advance(sample.after * time.Second)
		m.Record(latency.OfCommand, w.clock.Now(), sample.ms*time.Millisecond)
	}
	w.clock.Advance(10 * time.Second)
	want := "command - high 300 ms, low 100 ms (all time high 300 ms)\n" + strings.Repeat("-", 80) + "\n" +
		"#  \n| _\n| |\n|_|\n   \n111\nmm0\n  s\n"
	if got := w.do(1, "LATENCY", "GRAPH", "command").Str; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// All samples are equal, and too many for one row of columns.
	for range latency.MaxSamples {
		w.clock.Advance(2 * 24 * time.Hour)
		m.Record(latency.OfCommand, w.clock.Now(), 100*time.Millisecond)
	}
	got := w.do(1, "LATENCY", "GRAPH", "command").Str
	row := strings.Repeat("_", 80) + "\n" + strings.Repeat(" ", 80) + "\n"
	if strings.Count(got, "\n"+row) != 2 || !strings.Contains(got, "low 100 ms (all time high 300 ms)") || !strings.HasSuffix(strings.TrimRight(got, " \n"), strings.Repeat("d", 30)) {
		t.Errorf("got\n%s", got)
	}
}

// Slow commands are recorded, fast ones apart, and waits for the disk.
func TestLatencyOfCommands(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.engine.Latency.SetThreshold(1) // everything is slower
	w.do(1, "PING")
	w.do(1, "CONFIG", "GET", "x")
	s := w.session(1)
	lsn := w.engine.Execute(s, []string{"SET", "k", "v"}).LSN
	drill.Check(t, w.engine.Wait(lsn, 0))
	w.engine.Latency.SetThreshold(0)
	var events []string
	for _, e := range w.do(1, "LATENCY", "LATEST").Elems {
		events = append(events, e.Elems[0].Str)
	}
	if got := strings.Join(events, " "); got != "aof-write command fast-command" {
		t.Errorf("noted were %s", got)
	}
}

// Redis names these bounds; the example of its manual has 33.
func TestDistribution(t *testing.T) {
	t.Parallel()
	var c latency.Counter
	for _, d := range []time.Duration{0, 1023, 1024, 30_000, 33_000, 100_000, 3 * time.Second, time.Minute} {
		c.Observe(d)
	}
	var h latency.Histogram
	h.Merge(&c)
	const want = `1# "calls" => (integer) 8
2# "histogram_usec" =>
   1# (integer) 1 => (integer) 2
   2# (integer) 2 => (integer) 3
   3# (integer) 33 => (integer) 4
   4# (integer) 66 => (integer) 5
   5# (integer) 132 => (integer) 6
   6# (integer) 4328521 => (integer) 7
   7# (integer) 17314086 => (integer) 8`
	if got := notation(admin.Distribution(&h)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
