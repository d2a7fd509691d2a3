package commands

import "testing"

// TestShutdownWhileTheDiskIsFull: the shutdown would lose writes, so it needs FORCE or NOSAVE.
func TestShutdownWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	makeRoom := fillDisk(t, w.dir)
	s := w.session(1)
	lsn := w.engine.Execute(s, []string{"SET", "k", "v"}).LSN
	if w.engine.Keyspace().Wait(lsn) == nil {
		t.Fatal("the disk is full, but a commit succeeds")
	}
	for _, args := range [][]string{{"SHUTDOWN"}, {"SHUTDOWN", "SAVE"}, {"SHUTDOWN", "NOW"}} {
		if r := w.engine.Execute(s, args).Reply; r.Str != string(errShutdown) || w.host.stopped {
			t.Errorf("%q: %s", args, notation(r))
		}
	}
	if r := w.engine.Execute(s, []string{"SAVE"}).Reply; r.Kind != KindError {
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
	makeRoom()
	if err := w.engine.Keyspace().Wait(lsn); err != nil {
		t.Fatal(err)
	}
}
