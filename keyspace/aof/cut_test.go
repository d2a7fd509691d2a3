package aof

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// On a full disk the cut makes room for the copy. Without room even so, the end is lost, and that is logged.
func TestCutTailOnAFullDisk(t *testing.T) {
	for name, room := range map[string]bool{"the cut makes room": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			if err := os.WriteFile(path, []byte("a head and a tail"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			writeAt := WriteAt
			WriteAt = func(to *os.File, b []byte, at int64) (int, error) {
				if fi, err := os.Stat(path); err != nil || !room || fi.Size() > 6 {
					n, _ := writeAt(to, b[:1], at)
					return n, syscall.ENOSPC
				}
				return writeAt(to, b, at)
			}
			defer func() { WriteAt = writeAt }()
			var log strings.Builder
			if err := CutTail(f, 6, 17, 1, zerolog.New(&log)); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(path); string(text) != "a head" {
				t.Errorf("the file has %q", text)
			}
			kept, err := os.ReadFile(path + ".torn-1")
			if room && string(kept) != " and a tail" || !room && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%q is kept, %v", kept, err)
			}
			if said := strings.Contains(log.String(), "no room"); said == room || strings.Count(log.String(), "\n") != 1 {
				t.Error(log.String())
			}
		})
	}
}
