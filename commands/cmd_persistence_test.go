package commands

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// The log names the target of a backup that is refused.
func TestRefusedBackupIsLogged(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var log strings.Builder
	w.engine.Log = zerolog.New(&log)
	inside := filepath.Join(w.dir, "copy")
	w.expect("(error) ERR a backup cannot be in the data folder", "BACKUP", inside)
	if want := `"to":"` + inside + `"`; !strings.Contains(log.String(), want) {
		t.Errorf("%s is missing in %s", want, log.String())
	}
}

// TestBackup opens a backup like any data folder.
func TestBackup(t *testing.T) {
	t.Parallel()
	w := newHarnessOn(t, vfs.OS, filepath.Join(t.TempDir(), "mayfly")) // memory has no symbolic links and no limit of names
	figures := func(want ...string) {
		t.Helper()
		got := infoFields(t, w.do(1, "INFO", "persistence"))
		for i, name := range []string{"backups", "last_backup_time", "last_backup_status", "last_backup_error"} {
			if got[name] != want[i] {
				t.Errorf("%s is %q, want %q", name, got[name], want[i])
			}
		}
	}
	figures("0", "0", "ok", "")
	w.expect("OK", "SET", "k", "then")
	w.clock.Advance(time.Hour)
	w.expect("OK", "BACKUP", "copy")
	figures("1", "1767229200", "ok", "")
	w.expect("OK", "SET", "k", "now")
	w.clock.Advance(time.Hour)
	to := filepath.Join(filepath.Dir(w.dir), "copy")
	w.expect("(error) ERR cannot back up to "+to+": it exists, and a backup goes into a new folder", "BACKUP", to)
	figures("1", "1767229200", "ok", "") // nothing was tried
	w.expect("(error) ERR a backup cannot be in the data folder", "BACKUP", filepath.Join(w.dir, "copy"))
	figures("1", "1767229200", "err", "ERR a backup cannot be in the data folder")
	w.expect("(error) ERR cannot back up to "+to+": it exists, and a backup goes into a new folder", "BACKUP", to)
	figures("1", "1767229200", "err", "ERR a backup cannot be in the data folder")
	w.expect("(error) ERR a backup cannot be in the data folder", "BACKUP", filepath.Join(w.dir, "copy"))
	missing := filepath.Join(to, "no", "such")
	w.expect("(error) ERR cannot back up to "+missing+": no such file or directory", "BACKUP", missing)
	if r := w.do(1, "BACKUP", strings.Repeat("x", 5000)); !strings.HasSuffix(r.Str, ": file name too long") {
		t.Errorf("under a name that is too long: %s", notation(r))
	}

	planted := filepath.Join(filepath.Dir(w.dir), "planted")
	drill.Check(t, os.Symlink(t.TempDir(), planted+".part"))
	w.expect("(error) ERR cannot back up: "+planted+".part is in the way: it is a symbolic link; unless a backup to it is running, remove it, or choose another target", "BACKUP", planted)

	ks, err := keyspace.Open(keyspace.Options{Dir: to, Clock: w.clock, NoPurge: true})
	drill.Check(t, err)
	var tx keyspace.Tx
	ks.BeginKey(&tx, "k")
	if it, _ := tx.Get(tx.Container("0"), "k"); it.Body != "then" {
		t.Errorf("the backup has %q", it.Body)
	}
	tx.Close()
	drill.Report(t, ks.Close())
}

func TestInfoPersistence(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	info := func() map[string]string { return infoFields(t, w.do(1, "INFO", "persistence")) }
	w.expect("OK", "SET", "k", "v")
	w.clock.Advance(time.Hour)
	w.expect("OK", "SAVE")
	w.expect("(integer) 1767229200", "LASTSAVE")
	if got := info(); got["rdb_last_save_time"] != "1767229200" || got["rdb_saves"] != "1" || got["rdb_last_bgsave_status"] != "ok" || got["rdb_bgsave_in_progress"] != "0" {
		t.Errorf("after SAVE: %q", got)
	}
	w.clock.Advance(time.Hour)
	w.expect("Background saving started", "BGSAVE")
	for info()["rdb_bgsave_in_progress"] == "1" { // soon done, or the test times out
		runtime.Gosched()
	}
	w.expect("(integer) 1767232800", "LASTSAVE")

	for i := range 10 {
		w.expect("OK", "SET", "k", strings.Repeat("v", i))
		w.expect("OK", "SAVE")
	}
	before := info()
	w.expect("Background compaction started", "COMPACT")
	for info()["aof_rewrite_in_progress"] == "1" {
		runtime.Gosched()
	}
	if got := info(); got["compactions"] == before["compactions"] || got["last_compaction_status"] != "ok" || len(got["store_bytes"]) > len(before["store_bytes"]) {
		t.Errorf("after COMPACT: %q\nbefore: %q", got, before)
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	info := func() map[string]string { return infoFields(t, w.do(1, "INFO", "persistence")) }
	if got := info(); got["scrubs"] != "0" || got["scrub_last_time"] != "0" || got["scrub_in_progress"] != "0" || got["damaged_files"] != "0" || got["damaged_files_error"] != "" {
		t.Errorf("at the start: %q", got)
	}
	w.expect("Background scrub started", "SCRUB")
	for info()["scrub_in_progress"] == "1" { // soon done, or the test times out
		runtime.Gosched()
	}
	if got := info(); got["scrubs"] != "1" || got["scrub_last_time"] != "1767225600" || got["scrub_found_files"] != "0" || got["scrub_repaired_files"] != "0" {
		t.Errorf("after SCRUB: %q", got)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "NOSAVE", "save", "NOW", "FORCE", "SAVE NOW FORCE"} {
		w := newHarness(t)
		r := w.do(1, append([]string{"SHUTDOWN"}, strings.Fields(args)...)...)
		if r.Kind != engine.KindNone || !w.host.stopped || !w.last.Close {
			t.Errorf("SHUTDOWN %s: %s, stopped: %v, the connection ends: %v", args, notation(r), w.host.stopped, w.last.Close)
		}
	}
}
