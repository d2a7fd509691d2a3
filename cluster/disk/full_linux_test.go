package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mayfly/test/drill"
)

// page is the unit in which a file system in memory has room.
const page = 4096

// smallDisk mounts a file system of so many pages until the test ends.
func smallDisk(t *testing.T, pages int) (path string) {
	t.Helper()
	path = t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d", pages*page)); err != nil {
		t.Skipf("NOT TESTED: a disk that gets full, since only root can mount one here: %v", err)
	}
	t.Cleanup(func() {
		drill.Report(t, syscall.Unmount(path, syscall.MNT_DETACH))
	})
	return path
}

// ballast is a file that takes what a disk shall not have.
type ballast struct {
	*os.File
	pages int64
}

// leave makes the ballast so large that a number of pages is free. The log prepares its next segment beside
// it: if that takes room between the look and the growth, leave looks again.
func (b *ballast) leave(t *testing.T, pages int64) {
	t.Helper()
	for range 100 {
		var fs syscall.Statfs_t
		drill.Check(t, syscall.Fstatfs(int(b.Fd()), &fs))
		err := b.resize(max(b.pages+int64(fs.Bfree)-pages, 0))
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	t.Fatal("the ballast never gets the room that is free")
}

// empty makes the ballast take nothing.
func (b *ballast) empty(t *testing.T) {
	t.Helper()
	drill.Check(t, b.resize(0))
}

// resize makes the ballast take a number of pages, or no more than before.
func (b *ballast) resize(pages int64) error {
	if err := b.Truncate(min(pages, b.pages) * page); err != nil {
		return err
	}
	b.pages = min(pages, b.pages)
	if pages > b.pages {
		if err := syscall.Fallocate(int(b.Fd()), 0, 0, pages*page); err != nil {
			return err
		}
		b.pages = pages
	}
	return nil
}

// TestFullDisk fills the disk at every page that a log writes, opens the log again and again while the disk
// is full or gets a little room, and writes on. What Save has acknowledged is there whenever the log opens,
// and no full disk is taken for damage.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 100)
	file, err := os.Create(filepath.Join(dir, "ballast"))
	drill.Check(t, err)
	defer file.Close()
	b := &ballast{File: file}
	random := drill.Rand(t)
	var failedOpens, failedSaves int
	for range drill.Pick(4, 8, 100) {
		b.empty(t)
		o := Options{Dir: filepath.Join(dir, "wal"), Cluster: 7, ID: 1, Applied: 1, Term: 1}
		drill.Check(t, os.RemoveAll(o.Dir))
		drill.Check(t, Create(o, snapshot(1, 1).GetMetadata()))
		acknowledged, commit := uint64(1), uint64(1)
		// write saves until the disk is full, or until most. It reports the latter.
		write := func(l *Log, most int) bool {
			t.Helper()
			last, _ := l.Memory().LastIndex()
			for range most {
				commit += random.Uint64N(acknowledged - commit + 1)
				to := last + 1 + random.Uint64N(5)
				if err := l.Save(hard(2, 1, commit), entries(2, last+1, to, 10+random.IntN(3000)), nil); err != nil {
					if !errors.Is(err, syscall.ENOSPC) {
						t.Fatalf("saving: %v", err)
					}
					failedSaves++
					return false
				}
				last, acknowledged = to, to
			}
			return true
		}
		open := func() *Log {
			t.Helper()
			l, err := Open(o)
			if err != nil {
				if damage := (*DamageError)(nil); errors.As(err, &damage) || !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("opening on a full disk: %v", err)
				}
				failedOpens++
				return nil
			}
			if last, _ := l.Memory().LastIndex(); last < acknowledged {
				t.Fatalf("entries up to %d are acknowledged, the log ends at %d", acknowledged, last)
			}
			if hs, _, _ := l.Memory().InitialState(); hs.GetTerm() < 2 && acknowledged > 1 || hs.GetCommit() > acknowledged {
				t.Fatalf("%s", describe(t, l))
			}
			return l
		}
		l := open()
		write(l, 1+random.IntN(20))
		b.leave(t, random.Int64N(40))
		write(l, 1000)
		for range 12 {
			closeFailed(l)
			if l = open(); l != nil {
				write(l, 1000)
			}
			b.leave(t, random.Int64N(4))
		}
		closeFailed(l)
		b.empty(t)
		if l = open(); l == nil {
			t.Fatalf("does not open with room")
		}
		if !write(l, 3) { // the log and its next segments fill the disk: what a failed Save has written may be there
			closeFailed(l)
			closeFailed(open())
			continue
		}
		want := describe(t, l)
		drill.Check(t, l.Close())
		l = open()
		expect(t, l, want)
		if left, _ := filepath.Glob(filepath.Join(o.Dir, "*.tmp")); len(left) > 2 {
			t.Errorf("leftovers %s", strings.Join(left, " "))
		}
		l.Close()
	}
	if failedOpens == 0 || failedSaves == 0 {
		t.Errorf("%d failures of Open, %d of Save", failedOpens, failedSaves)
	}
	t.Logf("%d failures of Open, %d of Save", failedOpens, failedSaves)
}

// closeFailed closes a log after an error; nil: it was not opened.
func closeFailed(l *Log) {
	if l != nil {
		_ = l.Close() // says again what Save has said
	}
}
