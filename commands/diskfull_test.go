package commands

import (
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestWritesAreRefusedWhileTheDiskIsFull: the failed write is kept and retried. Until it succeeds further
// writes are refused, and reads run.
func TestWritesAreRefusedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "k", "v")
	w.expect("OK", "DOC.PUT", "0", "d", "{}")

	w.full.Store(true)
	s := w.session(1)
	out := w.engine.Execute(s, []string{"SET", "late", "v"})
	if out.Reply.Kind != engine.KindStatus {
		t.Fatalf("the first write is to find out: %s", notation(out.Reply))
	}
	lsn := out.LSN
	if err := w.engine.Keyspace().Wait(lsn); err == nil {
		t.Fatal("the disk is full, but a commit succeeds")
	}
	for _, r := range engine.AllRows {
		if r.Parse == nil || r.Flags&engine.Write == 0 {
			continue
		}
		args := strings.Split(r.FullName, "|")
		for len(args) < max(r.Arity, -r.Arity) {
			args = append(args, "1")
		}
		reply := w.engine.Execute(s, args).Reply
		if reply.Kind != engine.KindError || !strings.HasPrefix(reply.Str, "MISCONF Errors writing to the journal: ") {
			t.Errorf("%s: %s", r.FullName, notation(reply))
		}
		if strings.Contains(reply.Str, w.dir) || !strings.Contains(reply.Str, "write journal-0") {
			t.Errorf("%s: the path or another name of the journal: %s", r.FullName, notation(reply))
		}
	}
	if info := w.do(1, "INFO", "persistence").Str; strings.Contains(info, w.dir) || !strings.Contains(info, "no space left on device") {
		t.Errorf("INFO has the path of the data folder, or no cause:\n%s", info)
	}
	// Scripts that write nothing run; one that may write is refused at its first write, or at once if it says
	// what it does.
	for script, want := range map[string]string{
		"return redis.call('GET', KEYS[1])":                        `"v"`,
		"#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])": `"v"`,
		"return redis.pcall('SET', KEYS[1], 'x')":                  "(error) MISCONF Errors writing to the journal: ",
		"#!lua\nreturn redis.call('GET', KEYS[1])":                 "(error) MISCONF ",
	} {
		if reply := notation(w.engine.Execute(s, []string{"EVAL", script, "1", "k"}).Reply); !strings.HasPrefix(reply, want) {
			t.Errorf("%s: %s", script, reply)
		}
	}
	for _, args := range [][]string{{"GET", "k"}, {"DOC.GET", "0", "d"}, {"PING"}, {"DBSIZE"}} {
		if reply := w.engine.Execute(s, args).Reply; reply.Kind == engine.KindError {
			t.Errorf("%q: %s", args, notation(reply))
		}
	}

	w.full.Store(false)
	if err := w.engine.Keyspace().Wait(lsn); err != nil {
		t.Fatal("after room was made: ", err)
	}
	w.expect(`"v"`, "GET", "late")
	w.expect("OK", "SET", "k", "w")
}

// While the disk is full a transaction that writes is refused, as in Redis. That happens on queueing, or
// on EXEC if the disk has filled up since. A transaction that only reads runs.
func TestTransactionWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "k", "v")
	w.queueAll(2, []string{"SET", "k", "late"})
	w.full.Store(true)
	s := w.session(1)
	lsn := w.engine.Execute(s, []string{"SET", "other", "v"}).LSN
	if w.engine.Keyspace().Wait(lsn) == nil {
		t.Fatal("the disk is full, but a commit succeeds")
	}
	reply := func(session int, args ...string) string {
		return notation(w.engine.Execute(w.session(session), args).Reply)
	}
	if got := reply(2, "EXEC"); !strings.HasPrefix(got, "(error) EXECABORT Transaction discarded because of: MISCONF Errors writing to the journal: ") {
		t.Error(got)
	}
	if got := reply(2, "EXEC"); got != "(error) ERR EXEC without MULTI" {
		t.Error(got)
	}
	reply(3, "MULTI")
	if got := reply(3, "SET", "k", "later"); !strings.HasPrefix(got, "(error) MISCONF ") {
		t.Error(got)
	}
	if got := reply(3, "EXEC"); got != "(error) EXECABORT Transaction discarded because of previous errors." {
		t.Error(got)
	}
	reply(3, "MULTI")
	reply(3, "GET", "k")
	if got := reply(3, "EXEC"); got != `1) "v"` {
		t.Error(got)
	}
	w.full.Store(false)
	if err := w.engine.Keyspace().Wait(lsn); err != nil {
		t.Fatal("after room was made: ", err)
	}
}

// TestShutdownWhileTheDiskIsFull: the shutdown would lose writes, so it needs FORCE or NOSAVE.
func TestShutdownWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.full.Store(true)
	s := w.session(1)
	lsn := w.engine.Execute(s, []string{"SET", "k", "v"}).LSN
	if w.engine.Keyspace().Wait(lsn) == nil {
		t.Fatal("the disk is full, but a commit succeeds")
	}
	for _, args := range [][]string{{"SHUTDOWN"}, {"SHUTDOWN", "SAVE"}, {"SHUTDOWN", "NOW"}} {
		if r := w.engine.Execute(s, args).Reply; r.Str != string(engine.ErrShutdown) || w.host.stopped {
			t.Errorf("%q: %s", args, notation(r))
		}
	}
	if r := w.engine.Execute(s, []string{"SAVE"}).Reply; r.Kind != engine.KindError {
		t.Errorf("SAVE: %s", notation(r))
	}
	if got := infoFields(t, w.engine.Execute(s, []string{"INFO", "persistence"}).Reply); got["rdb_last_bgsave_status"] != "err" || got["aof_last_write_status"] != "err" {
		t.Errorf("INFO: %q", got)
	}
	for _, word := range []string{"NOSAVE", "FORCE"} {
		w.host.stopped = false
		w.engine.Execute(s, []string{"SHUTDOWN", word})
		if !w.host.stopped {
			t.Errorf("SHUTDOWN %s was refused", word)
		}
	}
	w.full.Store(false)
	drill.Check(t, w.engine.Keyspace().Wait(lsn))
}
