package aoftest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// Epoch is the time in ms at which tests begin.
const Epoch = 1_700_000_000_000

// Set returns the change that sets a plain item.
func Set(key, body string) aof.Op {
	return aof.Op{Key: key, Rec: Rec(key, body)}
}

// Rec returns the record of a plain item.
func Rec(key, body string) string {
	return string(record.Append(nil, key, record.Item{Kind: record.Plain, Body: body, TS: Epoch}))
}

// Del returns the change that deletes an item.
func Del(key string) aof.Op { return aof.Op{Key: key, Del: true} }

// MuchText is the content of a file before its size is limited.
var MuchText = strings.Repeat("x", 1<<20)

// Plant makes a real file in a folder of its own.
func Plant(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// CheckKept checks that the end that was cut off a file at [Epoch] is kept beside it, and removes it.
func CheckKept(t *testing.T, fsys vfs.FS, path string, want []byte) {
	t.Helper()
	kept := Kept(t, fsys, path)
	if len(kept) != 1 || !strings.HasSuffix(kept[0], aof.TornSuffix+strconv.Itoa(Epoch)) {
		t.Fatalf("kept aside: %v", kept)
	}
	if got := vfstest.Read(t, fsys, kept[0]); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes are kept aside, not the %d that were cut", len(got), len(want))
	}
	if err := fsys.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
}

// Kept returns the paths of the ends that were cut off a file.
func Kept(t *testing.T, fsys vfs.FS, path string) (kept []string) {
	t.Helper()
	dir := filepath.Dir(path)
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+aof.TornSuffix) {
			kept = append(kept, filepath.Join(dir, e.Name()))
		}
	}
	return kept
}

// EachFlip calls f with s once for each of its bits flipped; outside of drills for one or two bits of each
// byte.
func EachFlip(s string, f func(bad string, at int)) {
	step := drill.Pick(7, 5, 1) // no divisor of 8: all bits have their turn
	for i := 0; i < len(s)*8; i += step {
		b := []byte(s)
		b[i/8] ^= 1 << (i % 8)
		f(string(b), i/8)
	}
}
