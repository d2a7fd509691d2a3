package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mayfly/test/drill"
)

// Both ways to take room make a file of the size that is asked for.
func TestAllocate(t *testing.T) {
	t.Parallel()
	f, err := CreateNew(OS, filepath.Join(t.TempDir(), "f"))
	drill.Check(t, err)
	defer f.Close()
	drill.Check(t, f.Allocate(200_000))
	drill.Check(t, allocateZeros(f.(osFile).File, 300_000))
	if fi, err := f.Stat(); err != nil || fi.Size() != 300_000 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, want := range []string{"a long text", "short", ""} {
		drill.Check(t, WriteFile(OS, path, []byte(want)), SyncDir(OS, dir), WriteFile(OS, path+"2.tmp", []byte("left by a crash")), ReplaceFile(OS, path+"2", []byte(want)))
		for _, path := range []string{path, path + "2"} {
			if got, err := ReadFile(OS, path); err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
	}
	if err := ReplaceFile(OS, dir, nil); err == nil {
		t.Error("a folder is replaced")
	}
	if _, err := OS.Stat(dir + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	if _, err := CreateNew(OS, path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if _, err := ReadFile(OS, dir); err == nil {
		t.Error("a folder is read as a file")
	}
	a, err1 := OS.Stat(path)
	b, err2 := OS.Stat(dir)
	if err := errors.Join(err1, err2); err != nil || !SameFile(a, a) || SameFile(a, b) {
		t.Error("other files are the same", err)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	open := func() File {
		f, err := OS.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		drill.Check(t, err)
		return f
	}
	a, b, c := open(), open(), open()
	drill.Check(t, a.Lock(true), b.Lock(true))
	if err := c.Lock(false); !errors.Is(err, ErrLocked) {
		t.Errorf("beside shared locks: %v", err)
	}
	drill.Report(t, a.Close(), b.Close(), c.Lock(false), c.Close())
}
