package aof

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// rewritable makes a file of four seals, and returns its content and the ends of the seals.
func rewritable(t *testing.T) (disk *vfstest.Faulty, f vfs.File, content []byte, ends []int64) {
	t.Helper()
	disk = vfstest.New()
	content, ends = journalFile(all, item("1:a", "1"), AppendDel(item("1:large", strings.Repeat("x", 3*readSize)), "1:a"), item("1:b", "2"))
	vfstest.Write(t, disk, vfstest.Dir+"/a.db", content)
	f, err := disk.OpenFile(vfstest.Dir+"/a.db", os.O_RDWR, 0)
	drill.Check(t, err)
	return disk, f, content, ends
}

// A range is written anew, each byte once and no other byte, and then forced to disk.
func TestRewrite(t *testing.T) {
	t.Parallel()
	disk, f, content, ends := rewritable(t)
	to := ends[len(ends)-1]
	for _, from := range append([]int64{0}, ends...) {
		at, syncs := from, 0
		disk.OnWrite = func(_ vfs.File, b []byte, off int64) error {
			if off != at || syncs > 0 {
				t.Errorf("from %d: %d bytes written at %d after %d, %d fsyncs", from, len(b), off, at, syncs)
			}
			at += int64(len(b))
			return nil
		}
		disk.OnSync = func(vfs.File) error { syncs++; return nil }
		if err := Rewrite(f, Journal, 7, from, to); err != nil || at != to || (syncs == 1) != (from < to) {
			t.Errorf("from %d: written up to %d, %d fsyncs: %v", from, at, syncs, err)
		}
	}
	if after := vfstest.Read(t, disk, f.Name()); !bytes.Equal(after, content) {
		t.Error("the file has changed")
	}
}

// What is written is checked: a range that has changed since an earlier scan is damage.
func TestRewriteChecksWhatItWrites(t *testing.T) {
	t.Parallel()
	_, f, content, ends := rewritable(t)
	from, to := ends[0], ends[3]
	for at := from; at < to; at += 1 + at%61*drill.Pick[int64](40, 10, 1) {
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
		drill.Check(t, f.Truncate(left))
		if err := Rewrite(f, Journal, 7, from, to); !errors.As(err, new(*DamageError)) {
			t.Errorf("a file of %d bytes, not %d: %v", left, to, err)
		}
	}
}

// The error of a disk is reported.
func TestRewriteThatFails(t *testing.T) {
	t.Parallel()
	disk, f, _, ends := rewritable(t)
	disk.FailSyncs.Store(true)
	if err := Rewrite(f, Journal, 7, ends[0], ends[3]); !errors.Is(err, vfstest.ErrDisk) || disk.Writes.Load() == 0 {
		t.Errorf("fsync: %v", err)
	}
	disk.FailWrites.Store(true)
	syncs := disk.Syncs.Load()
	if err := Rewrite(f, Journal, 7, ends[0], ends[3]); !errors.Is(err, vfstest.ErrDisk) || disk.Syncs.Load() != syncs {
		t.Errorf("write: %v", err)
	}
}
