package aof

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rewritable makes a file of four seals, and returns its content and the ends of the seals.
func rewritable(t *testing.T) (f *os.File, content []byte, ends []int64) {
	t.Helper()
	content, ends = journalFile(all, item("1:a", "1"), AppendDel(item("1:large", strings.Repeat("x", 3*readSize)), "1:a"), item("1:b", "2"))
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, content, ends
}

// A range is written anew, each byte once and no other byte, and then forced to disk.
func TestRewrite(t *testing.T) {
	f, content, ends := rewritable(t)
	fsync, writeAt := Fsync, WriteAt
	defer func() { Fsync, WriteAt = fsync, writeAt }()
	to := ends[len(ends)-1]
	for _, from := range append([]int64{0}, ends...) {
		at, syncs := from, 0
		WriteAt = func(f *os.File, b []byte, off int64) (int, error) {
			if off != at || syncs > 0 {
				t.Errorf("from %d: %d bytes written at %d after %d, %d fsyncs", from, len(b), off, at, syncs)
			}
			at += int64(len(b))
			return writeAt(f, b, off)
		}
		Fsync = func(*os.File) error { syncs++; return nil }
		if err := Rewrite(f, Journal, 7, from, to); err != nil || at != to || (syncs == 1) != (from < to) {
			t.Errorf("from %d: written up to %d, %d fsyncs: %v", from, at, syncs, err)
		}
	}
	if after, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(after, content) {
		t.Error("the file has changed", err)
	}
}

// What is written is checked: a range that has changed since an earlier scan is damage.
func TestRewriteChecksWhatItWrites(t *testing.T) {
	f, content, ends := rewritable(t)
	from, to := ends[0], ends[3]
	for at := from; at < to; at += 1 + at%61 {
		if _, err := f.WriteAt([]byte{content[at] ^ 4}, at); err != nil {
			t.Fatal(err)
		}
		if err := Rewrite(f, Journal, 7, from, to); !errors.As(err, new(*DamageError)) {
			t.Fatalf("byte %d has changed: %v", at, err)
		}
		if _, err := f.WriteAt(content[at:at+1], at); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []int64{ends[2], to - 1} {
		if err := f.Truncate(left); err != nil {
			t.Fatal(err)
		}
		if err := Rewrite(f, Journal, 7, from, to); !errors.As(err, new(*DamageError)) {
			t.Errorf("a file of %d bytes, not %d: %v", left, to, err)
		}
	}
}

// The error of a disk is reported.
func TestRewriteThatFails(t *testing.T) {
	f, _, ends := rewritable(t)
	fsync, writeAt := Fsync, WriteAt
	defer func() { Fsync, WriteAt = fsync, writeAt }()
	failure := errors.New("the disk says no")
	Fsync = func(*os.File) error { return failure }
	if err := Rewrite(f, Journal, 7, ends[0], ends[3]); !errors.Is(err, failure) {
		t.Errorf("fsync: %v", err)
	}
	WriteAt = func(*os.File, []byte, int64) (int, error) { return 0, failure }
	if err := Rewrite(f, Journal, 7, ends[0], ends[3]); !errors.Is(err, failure) {
		t.Errorf("write: %v", err)
	}
}
