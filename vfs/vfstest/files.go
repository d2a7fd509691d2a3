package vfstest

import (
	"errors"
	"os"
	"testing"

	"mayfly/vfs"
)

// New returns a file system in memory that fails as it is told.
func New() *Faulty { return &Faulty{FS: NewMemory()} }

// Write writes a file as os.WriteFile does.
func Write(t testing.TB, fsys vfs.FS, path string, content []byte) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(content, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Read returns the content of a file.
func Read(t testing.TB, fsys vfs.FS, path string) []byte {
	t.Helper()
	content, err := vfs.ReadFile(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Copy copies the files of a folder into another, which it makes.
func Copy(t testing.TB, from vfs.FS, dir string, to vfs.FS, into string) {
	t.Helper()
	entries, err := from.ReadDir(dir)
	if err == nil {
		err = to.MkdirAll(into, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		Write(t, to, into+"/"+e.Name(), Read(t, from, dir+"/"+e.Name()))
	}
}
