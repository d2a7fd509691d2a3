package commands

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestWritesAreRefusedWhileTheDiskIsFull: the failed write is kept and retried. Until it succeeds further
// writes are refused, and reads run.
func TestWritesAreRefusedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "k", "v")
	w.expect("OK", "DOC.PUT", "0", "d", "{}")

	makeRoom := fillDisk(t, w.dir)
	s := w.session(1)
	out := w.engine.Execute(s, []string{"SET", "late", "v"})
	if out.Reply.Kind != KindStatus {
		t.Fatalf("the first write is to find out: %s", notation(out.Reply))
	}
	lsn := out.LSN
	if err := w.engine.Keyspace().Wait(lsn); err == nil {
		t.Fatal("the disk is full, but a commit succeeds")
	}
	for _, r := range allRows {
		if r.Parse == nil || r.Flags&Write == 0 {
			continue
		}
		args := strings.Split(r.full, "|")
		for len(args) < max(r.Arity, -r.Arity) {
			args = append(args, "1")
		}
		reply := w.engine.Execute(s, args).Reply
		if reply.Kind != KindError || !strings.HasPrefix(reply.Str, "MISCONF Errors writing to the journal: ") {
			t.Errorf("%s: %s", r.full, notation(reply))
		}
		if strings.Contains(reply.Str, w.dir) || !strings.Contains(reply.Str, "write journal-0") {
			t.Errorf("%s: the path or another name of the journal: %s", r.full, notation(reply))
		}
	}
	if info := w.do(1, "INFO", "persistence").Str; strings.Contains(info, w.dir) || !strings.Contains(info, "no space left on device") {
		t.Errorf("INFO has the path of the data folder, or no cause:\n%s", info)
	}
	// Scripts that write nothing run; one that may write is refused at its first write, or at once if it says what it does.
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
		if reply := w.engine.Execute(s, args).Reply; reply.Kind == KindError {
			t.Errorf("%q: %s", args, notation(reply))
		}
	}

	makeRoom()
	if err := w.engine.Keyspace().Wait(lsn); err != nil {
		t.Fatal("after room was made: ", err)
	}
	w.expect(`"v"`, "GET", "late")
	w.expect("OK", "SET", "k", "w")
}

// fillDisk makes writes to the newest journal fail as on a full disk, until the returned function is
// called. The file has two descriptors: the first for fsync, the last for writes.
func fillDisk(t *testing.T, dir string) (makeRoom func()) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(dir, "journal-*.db"))
	if err != nil || len(journals) == 0 {
		t.Fatal("no journal: ", err)
	}
	newest := journals[len(journals)-1]
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	writing := -1
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if path, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && path == newest {
			writing = max(writing, n)
		}
	}
	if writing < 0 {
		t.Fatal("the journal is not open")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = full.Close() })
	saved, err := syscall.Dup(writing)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup3(int(full.Fd()), writing, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	restored := false
	makeRoom = func() {
		if restored {
			return
		}
		restored = true
		if err := syscall.Dup3(saved, writing, syscall.O_CLOEXEC); err != nil {
			t.Error(err)
		}
		_ = syscall.Close(saved)
	}
	t.Cleanup(makeRoom)
	return makeRoom
}
