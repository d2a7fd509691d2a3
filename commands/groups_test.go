package commands

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/streams"
	"mayfly/keyspace"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// newGroupHarness returns a harness with a container c that has logged n deaths, their ids, and a group g
// that has read nothing.
func newGroupHarness(t *testing.T, n int) (w *harness, ids []string) {
	w = newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "10")
	w.logDeaths("c")
	if n > 0 {
		w.die("c", n)
	}
	for w.do(1, "XLEN", streamKey).Int < int64(n) {
		w.engine.Keyspace().PurgeOnce()
	}
	for _, e := range w.logged("c", streamid.ID{}) {
		ids = append(ids, e.ID.String())
	}
	if len(ids) != n {
		t.Fatalf("%d deaths are logged, want %d", len(ids), n)
	}
	w.expect("OK", "XGROUP", "CREATE", streamKey, "g", "0")
	return w, ids
}

// idsIn returns the ids of a reply's entries: the first strings, or the strings.
func idsIn(r engine.Reply) (ids []string) {
	for _, e := range r.Elems {
		if e.Kind == engine.KindArray {
			e = e.Elems[0]
		}
		ids = append(ids, e.Str)
	}
	return ids
}

// read sends XREADGROUP for a consumer and returns the ids of the entries.
func (w *harness) readGroup(group, consumer, id string, options ...string) []string {
	w.t.Helper()
	r := w.do(1, append(append([]string{"XREADGROUP", "GROUP", group, consumer}, options...), "STREAMS", streamKey, id)...)
	if r.Kind != engine.KindArray {
		w.t.Fatalf("XREADGROUP replies %s", notation(r))
	}
	return idsIn(r.Elems[0].Elems[1])
}

// TestGroupsInPieces has commands on more entries than they treat with the locks held.
func TestGroupsInPieces(t *testing.T) {
	t.Parallel()
	const n = 3*streams.GroupPiece + 50
	w, ids := newGroupHarness(t, n)
	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d ids, want %d\n%q\n%q", what, len(got), len(want), got, want)
		}
	}
	same("all", w.readGroup("g", "a", ">"), ids)
	w.expect("OK", "XGROUP", "CREATE", streamKey, "h", "0")
	at := 0
	for _, count := range []int{streams.GroupPiece, streams.GroupPiece + 1, 1, 2 * streams.GroupPiece} {
		end := min(at+count, n)
		same(fmt.Sprint("COUNT ", count), w.readGroup("h", "a", ">", "COUNT", fmt.Sprint(count), "NOACK"), ids[at:end])
		at = end
	}
	w.expect("(nil)", "XREADGROUP", "GROUP", "h", "a", "STREAMS", streamKey, ">")
	same("history", w.readGroup("g", "a", "0"), ids)
	same("some history", w.readGroup("g", "a", ids[9], "COUNT", fmt.Sprint(streams.GroupPiece+9)), ids[10:streams.GroupPiece+19])
	same("pending", idsIn(w.do(1, "XPENDING", streamKey, "g", "-", "+", "1000")), ids)
	same("claimed", idsIn(w.do(1, append([]string{"XCLAIM", streamKey, "g", "b", "0"}, ids[:2*streams.GroupPiece+5]...)...)), ids[:2*streams.GroupPiece+5])
	r := w.do(1, "XAUTOCLAIM", streamKey, "g", "c", "0", "0", "COUNT", fmt.Sprint(3*streams.GroupPiece), "JUSTID")
	same("claimed by XAUTOCLAIM", idsIn(r.Elems[1]), ids[:3*streams.GroupPiece])
	if r.Elems[0].Str != ids[3*streams.GroupPiece] {
		t.Errorf("the cursor is %s, want %s", r.Elems[0].Str, ids[3*streams.GroupPiece])
	}
	w.do(1, append([]string{"XDEL", streamKey}, ids[:streams.GroupPiece+20]...)...)
	history := w.do(1, "XREADGROUP", "GROUP", "g", "c", "STREAMS", streamKey, "0").Elems[0].Elems[1]
	same("history with deleted entries", idsIn(history), ids[:3*streams.GroupPiece])
	if gone, there := history.Elems[streams.GroupPiece+19], history.Elems[streams.GroupPiece+20]; gone.Elems[1].Kind != engine.KindNullArray || there.Elems[1].Kind != engine.KindArray {
		t.Errorf("deleted: %s, there: %s", notation(gone), notation(there))
	}
	r = w.do(1, "XAUTOCLAIM", streamKey, "g", "d", "0", r.Elems[0].Str, "COUNT", "1000")
	same("the rest", idsIn(r.Elems[1]), ids[3*streams.GroupPiece:])
	r = w.do(1, "XAUTOCLAIM", streamKey, "g", "d", "0", "0", "COUNT", "1000")
	same("claimed beside deleted ones", idsIn(r.Elems[1]), ids[streams.GroupPiece+20:])
	same("deleted", idsIn(r.Elems[2]), ids[:streams.GroupPiece+20])
	w.expect(`"0-0"`, "ECHO", r.Elems[0].Str)
	w.expect(fmt.Sprintf("(integer) %d", n-streams.GroupPiece-20), "XGROUP", "DELCONSUMER", streamKey, "g", "d")
	w.expect("(integer) 0", "XGROUP", "DELCONSUMER", streamKey, "g", "d")
	same("left", idsIn(w.do(1, "XPENDING", streamKey, "g", "-", "+", "1000")), nil)
}

// TestGroupsInExec: the commands of an EXEC on groups happen together, or not at all.
func TestGroupsInExec(t *testing.T) {
	w, ids := newGroupHarness(t, 250)
	addHalfway(t)
	exec := func(commands ...[]string) engine.Reply {
		w.do(1, "MULTI")
		for _, c := range commands {
			w.do(1, c...)
		}
		return w.do(1, "EXEC")
	}
	read := []string{"XREADGROUP", "GROUP", "g", "a", "BLOCK", "0", "STREAMS", streamKey, ">"}
	ack := append([]string{"XACK", streamKey, "g"}, ids...)
	w.expect("(integer) 1", "XGROUP", "CREATECONSUMER", streamKey, "g", "z")
	info := func() string { return notation(w.do(1, "XINFO", "STREAM", streamKey, "FULL")) }
	before := info()
	for _, commands := range [][][]string{
		{read, {"HALFWAY-KEYS", "x", "y"}},
		{read, ack, {"XGROUP", "DELCONSUMER", streamKey, "g", "a"}, {"HALFWAY-KEYS", "x", "y"}},
		{{"XGROUP", "CREATE", streamKey, "new", "$"}, {"XGROUP", "DESTROY", streamKey, "g"}, {"HALFWAY"}},
		{read, {"XGROUP", "SETID", streamKey, "g", "5-5"}, {"XCLAIM", streamKey, "g", "b", "0", ids[3]}, {"HALFWAY"}},
	} {
		if r := exec(commands...); r.Kind != engine.KindError {
			t.Errorf("%q: %s", commands, notation(r))
		}
		if after := info(); after != before {
			t.Errorf("%q leaves\n%s\nwant\n%s", commands, after, before)
		}
		w.check()
	}
	r := exec(read, ack[:103], read)
	if got := idsIn(r.Elems[0].Elems[0].Elems[1]); !slices.Equal(got, ids) || r.Elems[1].Int != 100 || r.Elems[2].Kind != engine.KindNullArray {
		t.Errorf("EXEC: %.300s", notation(r))
	}
	r = w.do(1, "XPENDING", streamKey, "g")
	if r.Elems[0].Int != 150 || r.Elems[1].Str != ids[100] {
		t.Errorf("pending: %s", notation(r))
	}
}

// TestBlockedConsumers: consumers of a group are served in the order in which they came, each with its
// entries.
func TestBlockedConsumers(t *testing.T) {
	t.Parallel()
	w, _ := newGroupHarness(t, 0)
	read := func(group, consumer string, options ...string) []string {
		return append(append([]string{"XREADGROUP", "GROUP", group, consumer}, options...), "BLOCK", "0", "STREAMS", streamKey, ">")
	}
	w.expect("OK", "XGROUP", "CREATE", streamKey, "h", "$")
	first, second, third := w.block(11, read("g", "a", "COUNT", "2")...), w.block(12, read("g", "b", "COUNT", "1")...), w.block(13, read("g", "c")...)
	other := w.block(14, read("h", "a")...)
	w.die("c", 3)
	var ids []string
	for _, e := range w.logged("c", streamid.ID{}) {
		ids = append(ids, e.ID.String())
	}
	served := func(b *blocked) []string { return idsIn(b.woken().Elems[0].Elems[1]) }
	if a, b := served(first), served(second); !slices.Equal(a, ids[:2]) || !slices.Equal(b, ids[2:]) {
		t.Errorf("served were %q and %q of %q", a, b, ids)
	}
	if all := served(other); !slices.Equal(all, ids) {
		t.Errorf("the other group got %q", all)
	}
	if r := w.do(1, "XPENDING", streamKey, "g"); r.Elems[0].Int != 3 {
		t.Errorf("pending: %s", notation(r))
	}
	fourth := w.block(15, read("g", "d")...)
	w.expect("(integer) 1", "XGROUP", "DESTROY", streamKey, "g")
	for _, b := range []*blocked{third, fourth} {
		if got, want := notation(b.woken()), "(error) NOGROUP the consumer group this client was blocked on no longer exists"; got != want {
			t.Errorf("client %d: %s, want %s", b.session, got, want)
		}
	}
	gone := []*blocked{w.block(16, read("h", "a")...), w.block(17, read("h", "b")...)}
	var tx keyspace.Tx
	w.engine.Keyspace().BeginAll(&tx)
	drill.Report(t, tx.SetLog(tx.Container("c"), keyspace.LogSettings{}))
	tx.Close()
	for _, b := range gone {
		if got, want := notation(b.woken()), "(error) UNBLOCKED the stream key no longer exists"; got != want {
			t.Errorf("client %d: %s, want %s", b.session, got, want)
		}
	}
}

// TestGroupErrors has errors that Redis does not have.
func TestGroupErrors(t *testing.T) {
	t.Parallel()
	w, _ := newGroupHarness(t, 1)
	long := strings.Repeat("x", keyspace.MaxIDLength)
	w.expect("(error) ERR no log: CONTAINER.SET orders LOG 3600 makes one", "XGROUP", "CREATE", "__keyevent@orders__:expired", "g", "$", "MKSTREAM")
	w.expect("(error) ERR no log: CONTAINER.SET 0 LOG 3600 makes one", "XGROUP", "CREATE", "__keyevent@0__:expired", "g", "0", "MKSTREAM")
	w.expect("(error) ERR no log: 'stream' is not the name of one, __keyevent@<container>__:expired; CONTAINER.SET <container> LOG 3600 makes it, and with it the stream", "XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
	w.expect("(error) ERR name of a group of 65536 bytes is too long: legal are up to 65531", "XGROUP", "CREATE", streamKey, long, "$")
	for _, args := range [][]string{
		{"XGROUP", "CREATECONSUMER", streamKey, "g", long},
		{"XREADGROUP", "GROUP", "g", long, "STREAMS", streamKey, ">"},
		{"XCLAIM", streamKey, "g", long, "0", "1-1"},
		{"XAUTOCLAIM", streamKey, "g", long, "0", "0"},
	} {
		w.expect("(error) ERR name of a consumer of 65536 bytes is too long: legal are up to 65531", args...)
	}
	w.expect("(integer) 1", "XGROUP", "CREATECONSUMER", streamKey, "g", long[:65531])
	w.expect("(integer) 0", "XGROUP", "DELCONSUMER", streamKey, "g", long)
}

// TestConsumersShareALog: consumers that read and acknowledge at the same time, while items die, get each
// entry once.
func TestConsumersShareALog(t *testing.T) {
	t.Parallel()
	const consumers, rounds, atOnce = 4, 10, 37
	w, _ := newGroupHarness(t, 0)
	var got [consumers][]string
	var delivered atomic.Int64
	var wg sync.WaitGroup
	for i := range consumers {
		s := w.session(20 + i)
		wg.Go(func() {
			name := fmt.Sprint("w", i)
			execute := func(args ...string) engine.Reply {
				out := w.engine.Execute(s, args)
				for out.Deferred {
					<-out.Resume
					out = w.engine.Execute(s, args)
				}
				return out.Reply
			}
			for end := time.Now().Add(30 * time.Second); delivered.Load() < rounds*atOnce && time.Now().Before(end); {
				r := execute("XREADGROUP", "GROUP", "g", name, "COUNT", fmt.Sprint(1+i*3), "BLOCK", "10", "STREAMS", streamKey, ">")
				if r.Kind != engine.KindArray {
					continue
				}
				ids := idsIn(r.Elems[0].Elems[1])
				delivered.Add(int64(len(ids)))
				got[i] = append(got[i], ids...)
				if n := execute(append([]string{"XACK", streamKey, "g"}, ids...)...).Int; n != int64(len(ids)) {
					t.Errorf("%s acknowledges %d of %d", name, n, len(ids))
				}
			}
		})
	}
	for range rounds {
		w.die("c", atOnce)
	}
	wg.Wait()
	all := slices.Concat(got[:]...)
	slices.Sort(all)
	var want []string
	for _, e := range w.logged("c", streamid.ID{}) {
		want = append(want, e.ID.String())
	}
	slices.Sort(want)
	if !slices.Equal(all, want) || len(want) != rounds*atOnce {
		t.Errorf("%d entries are delivered, %d were logged", len(all), len(want))
	}
	if r := w.do(1, "XPENDING", streamKey, "g"); r.Elems[0].Int != 0 {
		t.Errorf("pending: %s", notation(r))
	}
}
