package commands

import (
	"fmt"
	"testing"

	"mayfly/commands/engine"
)

// A command that takes long ends soon after nothing waits for it any more, and its connection too.
func TestAbandon(t *testing.T) {
	t.Parallel()
	const items = 5000
	w := newHarness(t)
	w.do(1, "CONTAINER.CREATE", "docs")
	for i := range items {
		w.do(1, "SET", fmt.Sprint("k", i), "1")
		w.do(1, "DOC.PUT", "docs", fmt.Sprint("d", i), "{}")
		if i < 1000 {
			w.do(1, "CONTAINER.CREATE", fmt.Sprint("c", i))
			w.do(2, "SUBSCRIBE", fmt.Sprint("channel", i))
		}
	}
	s := w.session(1)
	s.AbandonInterval = 0
	for _, command := range [][]string{
		{"KEYS", "*k*"}, {"SCAN", "0", "COUNT", "5000"}, {"DOC.SCAN", "docs", "0", "COUNT", "5000"},
		{"CONTAINER.LIST"}, {"PUBSUB", "CHANNELS", "c*"},
	} {
		looks := 0
		s.Abandoned = func() bool {
			looks++
			return false
		}
		if r := w.do(1, command...); r.Kind == engine.KindError || w.last.Close {
			t.Fatalf("%q: %s", command, notation(r))
		}
		if looks < 5 {
			t.Errorf("%q looks only %d times", command, looks)
		}
		looks = 0
		s.Abandoned = func() bool {
			looks++
			return looks == 3
		}
		if r := w.do(1, command...); r.Str != engine.ErrAbandoned.Error() || !w.last.Close || looks != 3 {
			t.Errorf("%q: %.200s, close %t, %d looks", command, notation(r), w.last.Close, looks)
		}
	}
	s.Abandoned = nil
	w.expect("(integer) 5000", "DBSIZE")
}

// A command that does not take long does not look.
func TestAbandonLooksLate(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.session(1).Abandoned = func() bool {
		t.Error("it looks")
		return true
	}
	w.do(1, "SET", "a", "1")
	w.expect("1) \"a\"", "KEYS", "*a*")
}
