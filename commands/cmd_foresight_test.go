package commands

import (
	"strconv"
	"testing"
)

// TestForesightEndsWithItsClient: long commands end when nothing takes their reply any more, and leave the loop.
func TestForesightEndsWithItsClient(t *testing.T) {
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
		s.abandonInterval = 0
		s.Abandoned = func() bool { looks++; return false }
		if r := w.do(2, args...); r.Kind == KindError || looks == 0 {
			t.Errorf("%q looked %d times for its client: %s", args, looks, r.Str)
		}
		s.Abandoned = func() bool { return true }
		if r := w.do(2, args...); r.Str != errAbandoned.Error() || !w.last.Close {
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
