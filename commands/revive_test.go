package commands

import "testing"

// DOC.REVIVE takes nothing from CONTAINER.UNDO that it does not revive.
func TestReviveLeavesWhatUndoBringsBack(t *testing.T) {
	t.Parallel()
	for _, bodies := range []string{"NO", "YES"} {
		w := newHarness(t)
		w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "3600", "LOG", "3600", "BODIES", bodies)
		w.do(1, "SELECT", "c")
		w.do(1, "DOC.PUT", "c", "a", `{"n":1}`)
		w.do(1, "DOC.PUT", "c", "b", `{"n":2}`)
		w.do(1, "HSET", "h", "f", "v")
		w.clock.Advance(2000e6)
		w.expect("OK", "CONTAINER.SET", "c", "TTL", "1")
		w.expect(map[string]string{"NO": "(integer) 0", "YES": "(integer) 1"}[bodies], "DOC.REVIVE", "c", "a", "h", "none")
		w.do(1, "CONTAINER.UNDO", "c")
		w.expect(`"{\"n\":1}"`, "DOC.GET", "c", "a")
		w.expect(`"{\"n\":2}"`, "DOC.GET", "c", "b")
		w.expect(`"v"`, "HGET", "h", "f")
	}
}
