package commands

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry"
)

// TestForesightEndsWithItsClient: long commands end when nothing takes their reply any more, and leave the
// loop.
func TestForesightEndsWithItsClient(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "3600")
	for i := range 3000 {
		w.do(1, "DOC.PUT", "c", strconv.Itoa(i), "{}")
	}
	for _, args := range [][]string{
		{"CONTAINER.PLAN", "c", "TTL", "60"},
		{"CONTAINER.FORECAST", "c"},
		{"CONTAINER.FORECAST", "*"},
		{"CONTAINER.DUE", "c", "0", "COUNT", "3000"},
		{"CONTAINER.DUE", "c", "0", "NEVER", "COUNT", "3000"},
	} {
		s, looks := w.session(2), 0
		s.AbandonInterval = 0
		s.Abandoned = func() bool { looks++; return false }
		if r := w.do(2, args...); r.Kind == engine.KindError || looks == 0 {
			t.Errorf("%q looked %d times for its client: %s", args, looks, r.Str)
		}
		s.Abandoned = func() bool { return true }
		if r := w.do(2, args...); r.Str != engine.ErrAbandoned.Error() || !w.last.Close {
			t.Errorf("%q goes on without its client: %s", args, notation(r))
		}
		delete(w.sessions, 2)
		s = w.session(2)
		s.OnLoop = true
		if out := w.engine.Execute(s, args); !out.Deferred {
			t.Errorf("%q runs on the loop", args)
		}
		delete(w.sessions, 2)
	}
}

// TestExplainBeyondTheHistory: when so much has changed since that the history has forgotten who set the
// default, the sentence does not name who changed something else.
func TestExplainBeyondTheHistory(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CLIENT", "SETNAME", "ops")
	w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "3600")
	w.expect("OK", "DOC.PUT", "c", "1", "{}")
	why := func() string { return field(w.do(1, "DOC.EXPLAIN", "c", "1"), "why").Str }
	const dies = "dies 3600 s after its last write: no ttl of its own; default of c since 2026-01-01T00:00:00Z"
	for n := range expiry.MostHistory - 1 {
		w.do(2, "CONTAINER.SET", "c", "TTLMODE", []string{"lenient", "strict"}[n%2])
	}
	if got, want := why(), dies+", set by 127.0.0.1:50001 (ops)"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	w.do(2, "CONTAINER.SET", "c", "TTLMODE", "strict")
	if got, want := why(), dies+" or before"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "7200")
	if got := why(); !strings.HasSuffix(got, ", set by 127.0.0.1:50001 (ops)") {
		t.Error(got)
	}
}

// TestForesightOfDeadElements: a plan and a forecast know that a key whose elements are overdue dies at once.
// What their sizes are depends on a secret of the server.
func TestForesightOfDeadElements(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "-1")
	w.expect("OK", "SELECT", "c")
	for _, key := range []string{"dead", "mixed"} {
		w.do(1, "SADD", key, "m")
		w.expect("(integer) 1", "EXPIREMEMBER", key, "m", "5")
	}
	w.do(1, "SADD", "mixed", "n")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "case")
	w.clock.Advance(10 * time.Second)
	number := func(r engine.Reply, name string) int64 {
		for i := 0; i+1 < len(r.Elems); i += 2 {
			if value := r.Elems[i+1]; r.Elems[i].Str == name && len(value.Elems) > 0 {
				return value.Elems[0].Int
			} else if r.Elems[i].Str == name {
				return value.Int
			}
		}
		t.Fatalf("there is no %s", name)
		return 0
	}
	for name, want := range map[string]int64{"kills": 1, "keys": 1, "same": 1, "never": 1} {
		if got := number(w.do(1, "CONTAINER.PLAN", "c", "TTL", "-1"), name); got != want {
			t.Errorf("%s of a plan: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int64{"killed": 1, "never": 1, "later": 0} {
		if got := number(w.do(1, "CONTAINER.FORECAST", "c", "TTL", "-1"), name); got != want {
			t.Errorf("%s of a forecast: %d, want %d", name, got, want)
		}
	}
}
