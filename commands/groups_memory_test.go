package commands

import (
	"fmt"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/streams"
)

// Replies about groups are charged while they grow, and lists that do not fit are refused.
func TestRepliesOfGroupsAreCharged(t *testing.T) {
	t.Parallel()
	const n = 8 * streams.PendingPiece // more than ReservedEntries bytes
	w, ids := newGroupHarness(t, n)
	if got := w.readGroup("g", "w1", ">", "COUNT", "100000"); len(got) != n {
		t.Fatalf("%d entries are read", len(got))
	}
	full := w.do(1, "XINFO", "STREAM", streamKey, "FULL", "COUNT", "0")
	group := field(full, "groups").Elems[0]
	for name, list := range map[string]engine.Reply{"of the group": group, "of the consumer": field(group, "consumers").Elems[0]} {
		got := idsIn(field(list, "pending"))
		if len(got) != n || got[0] != ids[0] || got[n-1] != ids[n-1] {
			t.Errorf("%d pending entries %s", len(got), name)
		}
	}
	makeGroups(w, 4*streams.PendingPiece)
	var limit engine.ClientMemoryLimit
	s := w.session(2)
	s.Memory = limit.Open(s)
	w.do(2, "XPENDING", streamKey, "g")
	limit.SetLimit(int64(s.Memory.Size()) + streams.ReservedEntries/2)
	w.engine.Host.(*testHost).setPassword("")
	for range 2 {
		for _, args := range [][]string{
			{"XPENDING", streamKey, "g", "-", "+", "100000"},
			{"XINFO", "STREAM", streamKey, "FULL", "COUNT", "0"},
			{"XINFO", "GROUPS", streamKey},
		} {
			if r := w.do(2, args...); r.Str != string(engine.ErrClientMemory) {
				t.Errorf("%q over the limit: kind %v %.100s", args, r.Kind, r.Str)
			}
		}
	}
	// What XAUTOCLAIM has removed it tells, also if there is no room for what it looks at behind it.
	w.do(1, append([]string{"XDEL", streamKey}, ids[:50]...)...)
	autoClaim := []string{"XAUTOCLAIM", streamKey, "g", "w2", "1000000", "-", "COUNT", "100000"}
	r := w.do(2, autoClaim...)
	if r.Kind != engine.KindArray || len(r.Elems[1].Elems) != 0 || len(r.Elems[2].Elems) != 50 || r.Elems[2].Elems[49].Str != ids[49] {
		t.Errorf("XAUTOCLAIM over the limit: %.200s", notation(r))
	}
	if r := w.do(2, autoClaim...); r.Str != string(engine.ErrClientMemory) {
		t.Errorf("once nothing is left to remove: %.200s", notation(r))
	}
}

// A command that has locked partitions gives its turn to nobody, but between two pieces of its work.
func TestTurnsBetweenPieces(t *testing.T) {
	t.Parallel()
	const n = 5 * streams.GroupPiece
	w, ids := newGroupHarness(t, n)
	makeGroups(w, 5*streams.GroupPiece)
	s := w.session(2)
	turns := 0
	s.AbandonInterval = 0
	s.Abandoned = func() bool { return false }
	s.Yield = func() {
		turns++
		for i := range 64 { // any partition that is locked would block for ever
			w.engine.Execute(w.session(3), []string{"GET", string(rune('a' + i))})
		}
		w.engine.Execute(w.session(3), []string{"XPENDING", streamKey, "g"})
	}
	for _, args := range [][]string{
		{"XREADGROUP", "GROUP", "g", "w1", "STREAMS", streamKey, ">"},
		{"XREADGROUP", "GROUP", "g", "w1", "STREAMS", streamKey, "0"},
		append([]string{"XCLAIM", streamKey, "g", "w2", "0"}, ids...),
		{"XAUTOCLAIM", streamKey, "g", "w1", "0", "-", "COUNT", "10000"},
		{"XPENDING", streamKey, "g", "-", "+", "1000000"},
		{"XINFO", "GROUPS", streamKey},
	} {
		turns = 0
		if r := w.engine.Execute(s, args).Reply; r.Kind != engine.KindArray {
			t.Errorf("%q: %s", args[0], notation(r))
		}
		if turns == 0 && args[0] != "XPENDING" {
			t.Errorf("%q gives no turn to others", args[0])
		}
	}
}

// makeGroups makes n groups more.
func makeGroups(w *harness, n int) {
	w.t.Helper()
	for i := range n {
		w.expect("OK", "XGROUP", "CREATE", streamKey, fmt.Sprintf("more-%04d", i), "0")
	}
	list := w.do(1, "XINFO", "GROUPS", streamKey)
	if len(list.Elems) != n+1 || field(list.Elems[n], "name").Str != fmt.Sprintf("more-%04d", n-1) {
		w.t.Fatalf("XINFO GROUPS has %d groups, want %d", len(list.Elems), n+1)
	}
}

// The lag that XINFO STREAM FULL shows is of one moment, whatever is read while it describes other groups.
func TestLagWhileGroupsRead(t *testing.T) {
	t.Parallel()
	const n = 2 * streams.PendingPiece
	w, _ := newGroupHarness(t, n)
	if got := w.readGroup("g", "w", ">", "COUNT", "100000"); len(got) != n {
		t.Fatalf("%d entries are read", len(got))
	}
	w.expect("OK", "XGROUP", "CREATE", streamKey, "later", "$", "ENTRIESREAD", fmt.Sprint(n))
	s, read := w.session(2), 0
	s.AbandonInterval = 0
	s.Abandoned = func() bool { return false }
	s.Yield = func() {
		if read > 0 {
			return
		}
		w.die("c", 5)
		for w.do(1, "XLEN", streamKey).Int < n+5 {
			w.engine.Keyspace().PurgeOnce()
		}
		read = len(w.readGroup("later", "w", ">"))
	}
	full := w.engine.Execute(s, []string{"XINFO", "STREAM", streamKey, "FULL", "COUNT", "0"}).Reply
	if list := field(full, "groups").Elems; read != 5 || len(list) != 2 || field(list[1], "lag").Int != 0 {
		t.Errorf("%d entries are read meanwhile; %d groups, the lag is %s", read, len(list), notation(field(list[1], "lag")))
	}
}
