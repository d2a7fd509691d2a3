package storage

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// sized returns a disk of a size with free bytes.
func sized(size, free int64) (disk *vfstest.Faulty, setFree func(int64)) {
	disk = vfstest.New()
	disk.OnRoom = func() (int64, int64) { return free, size }
	return disk, func(bytes int64) { free = bytes }
}

func mustOpenReserve(t *testing.T, disk vfs.FS, size int64) *reserve {
	t.Helper()
	r, err := openReserve(disk, vfstest.Dir, size)
	drill.Check(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *reserve) expect(t *testing.T, held int64) {
	t.Helper()
	if got := r.Held(); got != held {
		t.Fatalf("it holds %d bytes, want %d", got, held)
	}
	if held == 0 {
		return
	}
	if fi, err := r.fs.Stat(r.path); err != nil || fi.Size() != held || fi.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", fi, err)
	}
}

func TestFillAndRelease(t *testing.T) {
	t.Parallel()
	disk, setFree := sized(1<<40, 1<<30)
	r := mustOpenReserve(t, disk, 160_000)
	r.expect(t, 0)
	drill.Check(t, r.fill())
	r.expect(t, 160_000)
	if free := len(vfstest.Read(t, disk, r.path)); free != 160_000 {
		t.Fatal(free)
	}
	release := func(keep, want int64) {
		t.Helper()
		if freed, err := r.Release(keep); err != nil || freed != want {
			t.Fatalf("%d bytes are released, %v; want %d", freed, err, want)
		}
	}
	release(r.last(), 150_000)
	r.expect(t, 10_000)
	release(r.last(), 0)
	setFree(169_999) // 150,000 are missing, and 20,000 are to spare
	if err := r.fill(); !vfs.IsFull(err) {
		t.Fatalf("without room: %v", err)
	}
	r.expect(t, 10_000)
	setFree(170_000)
	r = mustOpenReserve(t, disk, 160_000) // as another start finds it
	r.expect(t, 10_000)
	drill.Check(t, r.fill())
	r.expect(t, 160_000)
	release(0, 160_000)
	r.expect(t, 0)
}

// A disk that says too much, as with a quota, refuses the room itself: the reserve stays as it was.
func TestFillThatFails(t *testing.T) {
	t.Parallel()
	disk, _ := sized(1<<40, 1<<30)
	r := mustOpenReserve(t, disk, 100_000)
	disk.OnAllocate = func(f vfs.File, bytes int64) error { return errors.Join(f.Truncate(70_000), syscall.EDQUOT) }
	if err := r.fill(); !vfs.IsFull(err) {
		t.Errorf("%v", err)
	}
	r.expect(t, 0)
	if fi, err := r.fs.Stat(r.path); err != nil || fi.Size() != 0 {
		t.Errorf("it has taken room: %v, %v", fi, err)
	}
}

func TestSizeFollowsTheDisk(t *testing.T) {
	t.Parallel()
	disk, _ := sized(1_600_000, 1<<30)
	if r := mustOpenReserve(t, disk, 1<<30); r.Size() != 100_000 {
		t.Errorf("of a small disk it takes %d bytes", r.Size())
	}
	r := mustOpenReserve(t, disk, 1000)
	drill.Check(t, r.fill())
	r = mustOpenReserve(t, disk, 0)
	if _, err := disk.Lstat(filepath.Join(vfstest.Dir, ReserveName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a size the file stays: %v", err)
	}
	if err := r.fill(); err != nil || r.Held() != 0 {
		t.Errorf("it holds %d bytes, %v", r.Held(), err)
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := aoftest.Plant(t, "other", []byte("precious"))
	drill.Check(t, os.Symlink(other, filepath.Join(dir, ReserveName)))
	if _, err := openReserve(vfs.OS, dir, 1000); err == nil {
		t.Error("a symbolic link is taken for the reserve")
	}
	if got := string(vfstest.Read(t, vfs.OS, other)); got != "precious" {
		t.Errorf("the file behind it: %q", got)
	}
}
