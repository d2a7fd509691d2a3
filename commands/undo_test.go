package commands

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/keyspace/eviction"
	"mayfly/test/drill"
)

// TestUndoWithinMaxMemory: at the limit all windows end, and what they have kept makes room, before a write
// is refused or an item is evicted.
func TestUndoWithinMaxMemory(t *testing.T) {
	t.Parallel()
	for _, policy := range []eviction.Policy{eviction.None, eviction.AllKeysLRU} {
		for _, change := range []string{"FLUSHALL", "CONTAINER.SET orders TTL 1", "CONTAINER.DROP orders"} {
			t.Run(policy.String()+"/"+change, func(t *testing.T) {
				w := newHarness(t)
				w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
				w.expect("OK", "CONTAINER.CREATE", "orders", "TTL", "86400")
				body := `{"a":"` + strings.Repeat("x", 1000) + `"}`
				const n = 2000
				for i := range n {
					w.expect("OK", "DOC.PUT", "orders", fmt.Sprint(i), body)
				}
				w.clock.Advance(10 * time.Second)
				w.expect("OK", "SET", "stays", "v")
				used := w.engine.Keyspace().Used()
				undoMemory := func() int {
					bytes, err := strconv.Atoi(infoFields(t, w.do(1, "INFO", "memory"))["undo_memory"])
					drill.Check(t, err)
					return bytes
				}
				w.do(1, strings.Fields(change)...)
				if now := w.engine.Keyspace().Used(); now < used-4096 || undoMemory() < n*1000 {
					t.Fatalf("%d bytes are used after the change, %d before, %d to undo it", now, used, undoMemory())
				}
				w.expect("OK", "CONFIG", "SET", "maxmemory-policy", policy.String(), "maxmemory", fmt.Sprint(1<<20))
				w.expect("OK", "CONTAINER.SET", "other", "TTL", "60")
				for i := range 30 {
					w.expect("OK", "DOC.PUT", "other", fmt.Sprint(i), body)
				}
				if text := notation(w.do(1, "CONTAINER.UNDO", "orders")); !strings.Contains(text, "window was ended before its time") && !strings.Contains(text, "unknown container") {
					t.Errorf("CONTAINER.UNDO: %s", text)
				}
				if change != "FLUSHALL" {
					w.expect(`"v"`, "GET", "stays")
				}
				if w.engine.Memory.Evicted.Load() != 0 || undoMemory() != 0 {
					t.Errorf("%d items were evicted, %d bytes to undo are left", w.engine.Memory.Evicted.Load(), undoMemory())
				}
				for range 20 { // the rest goes as a limit that was lowered is reached: step by step
					w.expect("OK", "SET", "stays", "v")
				}
				if used := w.engine.Keyspace().Used(); used > 1<<20 {
					t.Errorf("%d bytes are used", used)
				}
			})
		}
	}
}

// TestWindowsOutlastAFullHistory tries rules and takes them back more often than a history has entries. An
// earlier change can be taken back nevertheless, after a restart too.
func TestWindowsOutlastAFullHistory(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
	w.expect("OK", "CONTAINER.CREATE", "orders", "TTL", "86400")
	w.expect("OK", "DOC.PUT", "orders", "1", "{}")
	w.clock.Advance(time.Minute)
	w.expect("OK", "CONTAINER.SET", "orders", "TTL", "10")
	w.expect("(nil)", "DOC.GET", "orders", "1")
	for i := range 40 {
		w.clock.Advance(time.Second)
		w.expect("OK", "CONTAINER.SET", "orders", "TTL", fmt.Sprint(100+i))
		w.clock.Advance(time.Second)
		if i%3 == 0 {
			w.expect("OK", "DOC.PUT", "orders", "2", "{}")
			w.expect("OK", "FLUSHALL")
			w.undo("flushed")
		}
		w.undo("set")
		w.engine.Keyspace().PurgeOnce()
	}
	w.restart()
	w.engine.Keyspace().PurgeOnce()
	w.undo("set")
	w.expect(`"{}"`, "DOC.GET", "orders", "1")
	if text := notation(w.do(1, "CONTAINER.UNDO", "orders")); !strings.Contains(text, "nothing to take back") {
		t.Errorf("CONTAINER.UNDO: %s", text)
	}
	if n := len(w.do(1, "CONTAINER.HISTORY", "orders").Elems); n != 32 {
		t.Errorf("the history has %d entries", n)
	}
}

// undo takes the newest change of orders back.
func (w *harness) undo(what string) {
	w.t.Helper()
	if reply := w.do(1, "CONTAINER.UNDO", "orders"); len(reply.Elems) == 0 || reply.Elems[1].Str != what {
		w.t.Fatalf("CONTAINER.UNDO: %s, not %s", notation(reply), what)
	}
}
