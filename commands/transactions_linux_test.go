package commands

import (
	"strings"
	"testing"
)

// While the disk is full a transaction that writes is refused, as in Redis. That happens on queueing, or
// on EXEC if the disk has filled up since. A transaction that only reads runs.
func TestTransactionWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "k", "v")
	w.queueAll(2, []string{"SET", "k", "late"})
	makeRoom := fillDisk(t, w.dir)
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
	makeRoom()
	if err := w.engine.Keyspace().Wait(lsn); err != nil {
		t.Fatal("after room was made: ", err)
	}
}
