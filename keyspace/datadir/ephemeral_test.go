package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs"
)

// TestEphemeral: a folder goes with its process. The next process removes that of one which has ended
// without, and leaves those of the living and what is not its own.
func TestEphemeral(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	begin := func() *Ephemeral {
		t.Helper()
		e, err := NewEphemeral(vfs.OS, tmp)
		drill.Check(t, err)
		drill.Check(t, os.Mkdir(e.Dir, 0o700))
		return e
	}
	there := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	link := filepath.Join(tmp, ephemeralPrefix+"0123456789abcdef")
	drill.Check(t, os.Symlink(t.TempDir(), link))
	var others []string
	for _, id := range []string{"", "mine", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "0123456789ABCDEF"} {
		other := filepath.Join(tmp, ephemeralPrefix+id)
		others = append(others, other)
		drill.Check(t, os.Mkdir(other, 0o700))
	}
	living, dead := begin(), begin()
	if fi, err := os.Stat(living.path); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the mode %v (%v)", fi.Mode(), err)
	}
	dead.lock.Close()
	next := begin()
	if !there(living.Dir) || there(dead.path) || !there(next.Dir) || !there(link) {
		t.Errorf("living %v, dead %v, next %v, not a folder %v", there(living.Dir), there(dead.path), there(next.Dir), there(link))
	}
	for _, other := range others {
		if !there(other) {
			t.Errorf("%s is removed, which no process has made", other)
		}
	}
	if err := next.Remove(); err != nil || there(next.path) {
		t.Errorf("the folder is there after Remove (%v)", err)
	}
	drill.Report(t, living.Remove())
	if _, err := NewEphemeral(vfs.OS, filepath.Join(tmp, "missing")); err == nil {
		t.Error("a folder is made in one that is missing")
	}
}

// TestEphemeralRace: a folder that another process removes or locks before it is locked is no error.
func TestEphemeralRace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "taken")
	if lock, err := lockAlive(vfs.OS, path); lock != nil || err != nil {
		t.Errorf("a missing folder: %v, %v", lock, err)
	}
	drill.Check(t, os.Mkdir(path, 0o700))
	first, err := lockAlive(vfs.OS, path)
	if err != nil || first == nil {
		t.Fatal(first, err)
	}
	defer first.Close()
	if lock, err := lockAlive(vfs.OS, path); lock != nil || err != nil {
		t.Errorf("a locked folder: %v, %v", lock, err)
	}
}
