package aof

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
)

// If the end cannot be kept aside it is not cut off, and no half copy of it stays.
func TestCutTailThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, []byte("a head and a tail"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fsync, failure := Fsync, errors.New("the disk says no")
	Fsync = func(*os.File) error { return failure }
	err = CutTail(f, 6, 17, 1, zerolog.Nop())
	Fsync = fsync
	entries, _ := os.ReadDir(filepath.Dir(path))
	if text, _ := os.ReadFile(path); !errors.Is(err, failure) || len(entries) != 1 || string(text) != "a head and a tail" {
		t.Errorf("%v leaves %v, and %q in the file", err, entries, text)
	}
}
