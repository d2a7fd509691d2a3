package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/streams"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// blocked is a command of a test that waits.
type blocked struct {
	w       *harness
	session int
	args    []string
	out     engine.Outcome
}

// block starts a command, which must wait.
func (w *harness) block(session int, args ...string) *blocked {
	w.t.Helper()
	b := &blocked{w: w, session: session, args: args}
	if b.again(); !b.out.Deferred {
		w.t.Fatalf("%q does not wait: %s", args, notation(b.out.Reply))
	}
	return b
}

// again runs the command again. Its arguments are overwritten afterwards.
func (b *blocked) again() {
	buffered := b.w.buffered(b.args)
	b.out = b.w.engine.Execute(b.w.session(b.session), buffered)
	b.out.Reply = cloned(b.out.Reply)
	b.w.buffered(nil)
}

// cloned returns a copy of a reply that shares no memory with arguments.
func cloned(r engine.Reply) engine.Reply {
	r.Str = strings.Clone(r.Str)
	for i := range r.Elems {
		r.Elems[i] = cloned(r.Elems[i])
	}
	return r
}

// waits checks that the command waits, and still does after it has run again.
func (b *blocked) waits() {
	b.w.t.Helper()
	if drill.Done(b.out.Resume) {
		b.w.t.Errorf("%q is woken", b.args)
	}
}

// woken waits until the command is woken, runs it and returns its reply once that is committed.
func (b *blocked) woken() engine.Reply {
	b.w.t.Helper()
	for b.out.Deferred {
		select {
		case <-b.out.Resume:
		case <-time.After(30 * time.Second):
			b.w.t.Fatalf("%q is not woken", b.args)
		}
		b.again()
	}
	drill.Check(b.w.t, b.w.engine.Keyspace().Wait(b.out.LSN))
	return b.out.Reply
}

// expect waits until the command is woken, runs it and compares its reply.
func (b *blocked) expect(want string) {
	b.w.t.Helper()
	if got := notation(b.woken()); got != want {
		b.w.t.Errorf("%q: got %s, want %s", b.args, got, want)
	}
	if n := b.w.engine.Waiters.Waiting.Load(); n != 0 && len(b.w.sessions) <= 2 {
		b.w.t.Errorf("%d clients wait", n)
	}
}

// newLoggedHarness returns a keyspace with a container c, whose TTL is 10 s and whose deaths are logged.
func newLoggedHarness(t *testing.T) *harness {
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "10")
	w.logDeaths("c")
	return w
}

// idsOf returns the ids of the items whose deaths a stream has, as XRANGE shows them.
func (w *harness) idsOf(key string) string {
	var ids []string
	for _, e := range w.do(1, "XRANGE", key, "-", "+").Elems {
		ids = append(ids, e.Elems[1].Elems[1].Str)
	}
	return strings.Join(ids, " ")
}

// The fields of an entry.
func TestEntriesOfStreams(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.expect("OK", "DOC.PUT", "c", "own", `{"ttl":5}`)
	w.expect("OK", "DOC.PUT", "c", "default", `{"n":1}`)
	w.expect("OK", "SELECT", "c")
	w.expect("OK", "SET", "key", "\x00", "PX", "1500")
	w.clock.Advance(10 * time.Second)
	w.engine.Keyspace().PurgeOnce()
	policy := field(w.do(1, "CONTAINER.GET", "c"), "etag").Str
	for _, r := range w.do(1, "XRANGE", streamKey, "-", "+").Elems {
		fields := notation(engine.Map(r.Elems[1].Elems...))
		etag := field(engine.Map(r.Elems[1].Elems...), "etag").Str
		want := map[string]string{
			"own":     "cause document at 1767225605000 ts 1767225600000 etag E ttl 5 policy P doc {\"ttl\":5}",
			"default": "cause container at 1767225610000 ts 1767225600000 etag E policy P doc {\"n\":1}",
			"key":     "cause document at 1767225601500 ts 1767225600000 etag E policy P value \x00",
		}[r.Elems[1].Elems[1].Str]
		got := []string{}
		for _, e := range r.Elems[1].Elems[2:] {
			got = append(got, strings.NewReplacer(etag, "E", policy, "P").Replace(e.Str))
		}
		if strings.Join(got, " ") != want || len(etag) != 16 {
			t.Errorf("%s\nwant %q", fields, want)
		}
		if id, _ := streamid.Parse(r.Elems[0].Str, 0); id.Ms != testStart+10000 {
			t.Errorf("id %s", r.Elems[0].Str)
		}
	}
	if n := w.do(1, "XLEN", streamKey).Int; n != 3 {
		t.Errorf("%d entries", n)
	}
}

// The ttl of an entry is the document's own, as far as the entry tells.
func TestTTLOfEntries(t *testing.T) {
	t.Parallel()
	const ts = testStart
	for _, c := range []struct {
		e    deathlog.Entry
		want string // "": none
	}{
		{deathlog.Entry{Kind: keyspace.Document, Own: expiry.Inherit, Body: `{"n":1}`, HasBody: true}, ""},
		{deathlog.Entry{Kind: keyspace.Document, Own: ts + 5000, Body: `{"ttl":5}`, HasBody: true}, "5"},
		{deathlog.Entry{Kind: keyspace.Document, Own: ts + 5000, Body: `{"end":"2026-01-01T00:00:05Z"}`, HasBody: true}, ""}, // a deadline
		{deathlog.Entry{Kind: keyspace.Document, Own: ts + 5000}, "5"},
		{deathlog.Entry{Kind: keyspace.Document, Own: ts + 5001}, ""},
		{deathlog.Entry{Kind: keyspace.Document, Own: expiry.Never}, "-1"},
		{deathlog.Entry{Kind: keyspace.Plain, Own: ts + 5000, Body: `{"ttl":5}`, HasBody: true}, ""},
	} {
		c.e.TS = ts
		if got := field(engine.Map(streams.EntryReply(&c.e).Elems[1].Elems...), "ttl").Str; got != c.want {
			t.Errorf("%+v: ttl %q, want %q", c.e, got, c.want)
		}
	}
}

// A stream is no item, and is the same in every database. An item of its name hides it.
func TestStreamsAreNoKeys(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 1)
	w.expect("OK", "SELECT", "5")
	w.expect("(integer) 1", "XLEN", streamKey)
	w.expect("(integer) 0", "XLEN", "c") // the name of a container is none of a stream
	w.expect("none", "TYPE", streamKey)
	w.expect("(integer) 0", "EXISTS", streamKey)
	w.expect("(empty array)", "KEYS", "*")
	w.expect("(integer) 0", "DBSIZE")
	w.expect("(nil)", "OBJECT", "ENCODING", streamKey)
	w.expect("(integer) 0", "DEL", streamKey)
	w.expect("(integer) 1", "XLEN", streamKey)
	w.expect("(error) ERR __keyevent@c__:expired is written by the server", "XADD", streamKey, "*", "a", "b")
	w.expect("(error) ERR __keyevent@new__:expired is written by the server", "XADD", "__keyevent@new__:expired", "*", "a", "b")
	w.expect("(error) ERR __keyevent@c__:expired is written by the server", "XSETID", streamKey, "5-5")
	w.expect("(error) ERR other cannot be a stream: the server writes all streams, those of deaths, such as __keyevent@0__:expired", "XADD", "other", "*", "a", "b")
	wrong := "(error) " + string(engine.ErrWrongType)
	w.expect("OK", "SET", streamKey, "v")
	for _, command := range []string{
		"XLEN KEY", "XRANGE KEY - +", "XREAD STREAMS KEY 0", "XREAD BLOCK 0 STREAMS KEY $", "XDEL KEY nonsense", "XTRIM KEY MAXLEN 0", "XINFO STREAM KEY FOO",
		"XADD KEY * a b", "XSETID KEY 1-1",
	} {
		w.expect(wrong, strings.Fields(strings.ReplaceAll(command, "KEY", streamKey))...)
	}
	w.expect("OK", "SELECT", "0")
	w.expect("(integer) 1", "XLEN", streamKey)
}

// XTRIM removes many entries in portions, in EXEC all at once.
func TestXTrimInPortions(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	fill := func() {
		for range 3 {
			w.die("c", streams.TrimPiece)
		}
	}
	fill()
	w.expect("(integer) 2500", "XTRIM", streamKey, "MAXLEN", "500")
	w.expect("(integer) 500", "XLEN", streamKey)
	fill()
	w.expect("(integer) 1700", "XTRIM", streamKey, "MAXLEN", "~", "500", "LIMIT", "1700")
	w.expect("OK", "MULTI")
	w.do(1, "XTRIM", streamKey, "MINID", "9999999999999")
	w.do(1, "XLEN", streamKey)
	w.expect("1) (integer) 1800\n2) (integer) 0", "EXEC")
	w.expect("(integer) 0", "XTRIM", streamKey, "MAXLEN", "0")
}

// XDEL of many entries removes some at a time, so that no lock is held for long.
func TestXDelInPortions(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 3*streams.DeletePiece)
	args := []string{"XDEL", streamKey, "1-1"}
	for _, e := range w.logged("c", streamid.ID{}) {
		args = append(args, e.ID.String())
	}
	args = append(args, args[3]) // again
	s := w.session(1)
	run, err := streams.ParseXDel(&engine.Input{Args: args})
	drill.Check(t, err)
	if s.Current, err = s.Resolve(args); err != nil {
		t.Fatal(err)
	}
	w.engine.Keyspace().BeginAll(&s.Tx)
	s.Ctx = engine.Context{Tx: &s.Tx, Session: s, Engine: w.engine}
	run(&s.Ctx)
	s.Tx.Close()
	s.Ctx.Outside = nil
	w.expect(fmt.Sprintf("(integer) %d", 2*streams.DeletePiece+1), "XLEN", streamKey) // 1-1 was none
	w.expect(fmt.Sprintf("(integer) %d", 2*streams.DeletePiece+1), args...)
	w.expect("(integer) 0", "XLEN", streamKey)
	w.expect("(error) ERR Invalid stream ID specified as stream command argument", "XDEL", streamKey, "1-1", "nonsense")
	w.expect("(integer) 0", "XDEL", "__keyevent@absent__:expired", "nonsense")
}

// Who reads many entries waits for a turn, as all do who compute for long. Who reads few does not.
func TestReadersOfManyEntriesTakeTurns(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 1)
	w.expect("OK", "XGROUP", "CREATE", streamKey, "g", "0")
	s := w.session(1)
	for command, want := range map[string]bool{
		"XRANGE KEY - +": true, "XRANGE KEY - + COUNT 1000": false, "XREVRANGE KEY + -": true, "XREVRANGE KEY + - count 1001": true,
		"XREAD STREAMS KEY 0": true, "XREAD COUNT 10 STREAMS KEY 0": false, "XREAD COUNT 0 STREAMS KEY 0": true,
		"XINFO STREAM KEY FULL COUNT 0": true, "XINFO STREAM KEY FULL COUNT 10": false,
		"XINFO STREAM KEY": false, "XINFO STREAM KEY FULL": false,
		"XREADGROUP GROUP g w STREAMS KEY >": true, "XREADGROUP GROUP g w COUNT 10 STREAMS KEY >": false,
	} {
		s.Paced = true
		out := w.engine.Execute(s, strings.Fields(strings.ReplaceAll(command, "KEY", streamKey)))
		if s.Paced = false; out.Deferred != want {
			t.Errorf("%s: waits for a turn: %v", command, out.Deferred)
		}
	}
}

// A dropped entry is gone for good, over a restart too.
func TestXDelLasts(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 4)
	entries := w.logged("c", streamid.ID{})
	w.expect("(integer) 1", "XDEL", streamKey, entries[1].ID.String(), entries[1].ID.String(), "1-1")
	w.restart()
	w.expect("(integer) 3", "XLEN", streamKey)
	info := w.do(1, "XINFO", "STREAM", streamKey)
	if got := field(info, "max-deleted-entry-id").Str; got != entries[1].ID.String() {
		t.Errorf("max-deleted-entry-id %s, want %s", got, entries[1].ID)
	}
	if got := field(info, "entries-added").Int; got != 4 {
		t.Errorf("entries-added %d", got)
	}
}

func TestXReadBlocks(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 2)
	b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	b.waits()
	w.die("c", 1)
	last := w.logged("c", streamid.ID{})[2]
	b.expect(notation(streams.StreamsReply(&engine.Context{Session: w.session(2)}, []engine.Reply{engine.Bulk(streamKey), engine.Array(streams.EntryReply(&last))})))

	// What is there is returned at once, without the limit of a wait.
	if r := w.do(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "0"); len(r.Elems[0].Elems[1].Elems) != 3 {
		t.Errorf("%s", notation(r))
	}
	b = w.block(2, "XREAD", "BLOCK", "0", "STREAMS", "other", streamKey, "0", "$")
	w.die("c", streams.BlockedCount+5)
	for b.out.Deferred {
		<-b.out.Resume
		b.again()
	}
	if n := len(b.out.Reply.Elems[0].Elems[1].Elems); n != streams.BlockedCount {
		t.Errorf("a reader that has waited gets %d entries", n)
	}
}

// The id + is the last entry that is left. Without one, what comes first is waited for.
func TestXReadFromTheLastEntry(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 3)
	all := w.logged("c", streamid.ID{})
	reply := func(e deathlog.Entry) string {
		return notation(streams.StreamsReply(&engine.Context{Session: w.session(2)}, []engine.Reply{engine.Bulk(streamKey), engine.Array(streams.EntryReply(&e))}))
	}
	w.expect(reply(all[2]), "XREAD", "COUNT", "5", "STREAMS", streamKey, "+")
	w.expect("(integer) 1", "XDEL", streamKey, all[2].ID.String())
	w.expect(reply(all[1]), "XREAD", "BLOCK", "0", "STREAMS", streamKey, "+")
	w.expect("(integer) 2", "XTRIM", streamKey, "MAXLEN", "0")
	b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "+")
	b.waits()
	w.die("c", 1)
	b.expect(reply(w.logged("c", streamid.ID{})[0]))
}

// A stream need not be there.
func TestXReadBlocksForALogToCome(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "10")
	w.logDeaths("c")
	w.die("c", 1)
	entry := w.logged("c", streamid.ID{})[0]
	b.expect(notation(streams.StreamsReply(&engine.Context{Session: w.session(2)}, []engine.Reply{engine.Bulk(streamKey), engine.Array(streams.EntryReply(&entry))})))
}

// A death in another container and entries that have gone wake a reader in vain: it goes on waiting behind
// the same id.
func TestXReadGoesOnWaiting(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.die("c", 1)
	b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	for range 3 {
		w.engine.Waiters.Signal("c")
		<-b.out.Resume
		b.again()
		b.waits()
	}
	w.engine.Waiters.Signal("other")
	w.expect("(integer) 1", "XTRIM", streamKey, "MAXLEN", "0")
	b.waits()
	w.die("c", 1)
	if b.expect(notation(streams.StreamsReply(&engine.Context{Session: w.session(2)}, []engine.Reply{engine.Bulk(streamKey), engine.Array(streams.EntryReply(&w.logged("c", streamid.ID{})[0]))}))); t.Failed() {
		t.Log(w.idsOf(streamKey))
	}
}

func TestBlockEnds(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	if got := notation(w.do(2, "XREAD", "BLOCK", "1", "STREAMS", streamKey, "$")); got != "(nil)" { // the ms may be over at once
		t.Errorf("its time ends: %s", got)
	}
	for reason, want := range map[string]string{"": "(nil)", "TIMEOUT": "(nil)", "error": "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"} {
		b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
		if line := w.do(1, "CLIENT", "LIST").Str; !strings.Contains(line, " flags=b ") {
			t.Errorf("CLIENT LIST: %s", line)
		}
		w.expect("(integer) 1", strings.Fields("CLIENT UNBLOCK 2 "+reason)...)
		w.expect("(integer) 0", "CLIENT", "UNBLOCK", "2")
		b.expect(want)
		if line := w.do(1, "CLIENT", "LIST").Str; strings.Contains(line, " flags=b ") {
			t.Errorf("CLIENT LIST: %s", line)
		}
	}
	w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	w.engine.CloseSession(w.session(2))
	if n := w.engine.Waiters.Waiting.Load(); n != 0 {
		t.Errorf("%d clients wait", n)
	}
	delete(w.sessions, 2)
}

// In a transaction nothing waits.
func TestNothingWaitsInATransaction(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.expect("OK", "MULTI")
	w.expect("QUEUED", "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	w.expect("QUEUED", "XRANGE", streamKey, "-", "+")
	w.expect("1) (nil)\n2) (empty array)", "EXEC")
}

// A client that waits is held back by CLIENT PAUSE when it is woken, and goes on afterwards.
func TestPauseHoldsBackWhoHasWaited(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	b := w.block(2, "XREAD", "BLOCK", "0", "STREAMS", streamKey, "$")
	w.die("c", 1)
	<-b.out.Resume
	w.expect("OK", "CLIENT", "PAUSE", "60000")
	b.again()
	b.waits()
	w.engine.Pause.Finish(nil)
	b.expect(notation(streams.StreamsReply(&engine.Context{Session: w.session(2)}, []engine.Reply{engine.Bulk(streamKey), engine.Array(streams.EntryReply(&w.logged("c", streamid.ID{})[0]))})))
}

// A client pays for the places in which it waits.
func TestWaitsAreCharged(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	var limit engine.ClientMemoryLimit
	s := w.session(2)
	s.Memory = limit.Open(s)
	args := []string{"XREAD", "BLOCK", "0", "STREAMS"}
	const n = 200
	for i := range n {
		args = append(args, "__keyevent@"+strings.Repeat("x", i+1)+"__:expired")
	}
	args = append(args, strings.Fields(strings.Repeat("$ ", n))...)
	b := w.block(2, args...)
	if size := s.Memory.Size(); size < n*200 {
		t.Errorf("%d bytes are charged", size)
	}
	w.expect("(integer) 1", "CLIENT", "UNBLOCK", "2")
	b.expect("(nil)")
	if size := s.Memory.Size(); size != 0 {
		t.Errorf("%d bytes are charged afterwards", size)
	}
	limit.SetLimit(1000)
	w.engine.Host.(*testHost).setPassword("")
	if r := w.do(2, args...); r.Str != string(engine.ErrClientMemory) {
		t.Errorf("over the limit: %s", notation(r))
	}
}

// SWAPDB ends the windows of UNDO. An item that died within one is logged under its container's name, as of
// the moment of its death.
func TestSwapLogsDeathsOfWindows(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.expect("OK", "CONTAINER.SET", "other", "TTL", "-1", "LOG", "3600")
	w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
	w.expect("OK", "DOC.PUT", "c", "7", "{}")
	w.clock.Advance(5 * time.Second)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "1")
	w.clock.Advance(time.Second)
	w.expect("OK", "SWAPDB", "c", "other")
	w.engine.Keyspace().PurgeOnce()
	w.expect("(integer) 0", "XLEN", "__keyevent@other__:expired")
	if list := w.logged("c", streamid.ID{}); len(list) != 1 || list[0].At != testStart+5000 || list[0].Cause != expiry.ByChange {
		t.Errorf("%+v", list)
	}
}

// A log has the deaths since it was switched on, whenever they are found.
func TestLogBeginsWithItsSwitch(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "1")
	w.expect("OK", "DOC.PUT", "c", "before", "{}")
	w.clock.Advance(2 * time.Second)
	w.expect("OK", "DOC.PUT", "c", "after", "{}")
	w.expect("OK", "CONTAINER.SET", "c", "LOG", "60")
	w.clock.Advance(2 * time.Second)
	for range 2 {
		w.engine.Keyspace().PurgeOnce()
		if list := w.logged("c", streamid.ID{}); len(list) != 1 || list[0].Item != "after" {
			t.Errorf("%+v", list)
		}
		w.expect("(integer) 0", "DOC.COUNT", "c")
		w.restart()
	}
}

// What has died in a container without log and was not found yet is not logged where SWAPDB brings it, over a
// crash neither.
func TestSwapLogsNoDeathsOfOthers(t *testing.T) {
	t.Parallel()
	w := newLoggedHarness(t)
	w.expect("OK", "CONTAINER.SET", "plain", "TTL", "1")
	w.expect("OK", "DOC.PUT", "plain", "7", "{}")
	w.clock.Advance(2 * time.Second)
	w.expect("OK", "SWAPDB", "plain", "c")
	for range 2 {
		w.engine.Keyspace().PurgeOnce()
		w.expect("(integer) 0", "XLEN", streamKey)
		w.restart()
	}
}
