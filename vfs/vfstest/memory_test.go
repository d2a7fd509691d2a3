package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs"
)

const path = Dir + "/f"

// TestAsAModel: random writes, cuts, fsyncs and failed ones leave what a plain model says, at any power cut.
func TestAsAModel(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	for range drill.Pick(5, 20, 500) {
		m := NewMemory()
		f, err := vfs.CreateNew(m, path)
		drill.Check(t, err)
		drill.Check(t, f.Sync(), vfs.SyncDir(m, Dir))
		var now, onDisk []byte
		dirty := map[int]bool{}
		touch := func(from, to int) {
			for n := from / sectorSize; n*sectorSize < to; n++ {
				dirty[n] = true
			}
		}
		// written is the file if all dirty sectors are written.
		written := func() []byte {
			image := make([]byte, len(now))
			copy(image, onDisk)
			for n := range dirty {
				copy(image[n*sectorSize:min((n+1)*sectorSize, len(image))], now[n*sectorSize:])
			}
			return image
		}
		for range 60 {
			switch at, size := r.IntN(12_000), 1+r.IntN(6000); r.IntN(6) {
			case 0, 1, 2:
				b := bytes.Repeat([]byte{byte(r.IntN(3))}, size)
				if _, err := f.WriteAt(b, int64(at)); err != nil {
					t.Fatal(err)
				}
				if at+size > len(now) {
					touch(len(now), at+size)
					now = append(now, make([]byte, at+size-len(now))...)
				}
				copy(now[at:], b)
				touch(at, at+size)
			case 3:
				drill.Check(t, f.Truncate(int64(at)))
				if at > len(now) {
					touch(len(now), at)
					now = append(now, make([]byte, at-len(now))...)
				}
				now = slices.Clip(now[:at])
				for n := range dirty {
					if n*sectorSize >= at {
						delete(dirty, n)
					}
				}
			case 4:
				drill.Check(t, f.Sync())
				onDisk = written()
				clear(dirty)
			case 5:
				m.Lose(path, nil)
				clear(dirty)
			}
			var least, all, some, clone *Memory
			m.Look(func(d Disk) { least, all, some, clone = d.Least(), d.All(), d.Some(r), d.Clone() })
			for what, image := range map[string]struct {
				m    *Memory
				want []byte
			}{"now": {m, now}, "least": {least, onDisk}, "all": {all, written()}, "after a kill": {clone, now}} {
				if got := Read(t, image.m, path); !bytes.Equal(got, image.want) {
					t.Fatalf("%s: %d bytes, not %d, or others", what, len(got), len(image.want))
				}
			}
			torn, whole := Read(t, some, path), written()
			for at := 0; at < len(torn); at += sectorSize {
				was := make([]byte, sectorSize)
				copy(was, onDisk[min(at, len(onDisk)):])
				part := torn[at:min(at+sectorSize, len(torn))]
				if !bytes.HasPrefix(was, part) && !(at < len(whole) && bytes.HasPrefix(whole[at:], part)) && !bytes.HasPrefix(now[min(at, len(now)):], part) {
					t.Fatalf("the sector at %d is neither the old one nor the new one", at)
				}
			}
			m.Look(func(d Disk) { clone = d.Least() })
			if got := Read(t, clone, path); !bytes.Equal(got, onDisk) {
				t.Fatal("an image has changed the file")
			}
		}
	}
}

// names returns the names in a folder after a power cut.
func names(t *testing.T, m *Memory) (all []string) {
	t.Helper()
	entries, err := m.ReadDir(Dir)
	drill.Check(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestNames: a power cut may take names that were not forced to disk, in any order, but a rename as a whole.
func TestNames(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	Write(t, m, path, []byte("text"))
	drill.Check(t, vfs.SyncDir(m, Dir))
	drill.Check(t, m.Rename(path, Dir+"/g"))
	Write(t, m, Dir+"/h", nil)
	r, found := drill.Rand(t), map[string]bool{}
	m.Look(func(d Disk) {
		if got := fmt.Sprint(names(t, d.Least()), names(t, d.All()), names(t, d.Clone())); got != "[f] [g h] [g h]" {
			t.Error(got)
		}
		for range 200 {
			found[fmt.Sprint(names(t, d.Some(r)))] = true
		}
		images := map[string]bool{}
		for _, image := range d.Names(Dir) {
			images[fmt.Sprint(names(t, image))] = true
		}
		for _, want := range []string{"[f]", "[g]", "[f h]", "[g h]"} {
			if !found[want] || !images[want] {
				t.Errorf("never %s: %v, %v", want, found, images)
			}
		}
		if len(found) != 4 || len(images) != 4 {
			t.Errorf("%v, %v", found, images)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	Write(t, m, path, []byte("text"))
	_, missing := m.Open(Dir + "/none")
	_, exists := vfs.CreateNew(m, path)
	_, below := m.Stat(path + "/x")
	reader, err := m.Open(path)
	drill.Check(t, err)
	_, readOnly := reader.WriteAt([]byte("x"), 0)
	for got, want := range map[error]error{
		missing: fs.ErrNotExist, exists: fs.ErrExist, below: syscall.ENOTDIR, readOnly: syscall.EBADF,
		m.Mkdir(Dir, 0o700): fs.ErrExist, m.Remove(Dir): syscall.ENOTEMPTY, m.Rename(Dir+"/none", path): fs.ErrNotExist,
	} {
		if !errors.Is(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	drill.Report(t, reader.Close(), m.RemoveAll(Dir))
	if _, err := m.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFull: a write for which there is not enough room is written in part.
func TestFull(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.Limit(100)
	f, err := vfs.CreateNew(m, path)
	drill.Check(t, err)
	written := 0
	m.AfterWrite = func(Disk) { written++ }
	if n, err := f.WriteAt(make([]byte, 130), 0); n != 100 || !vfs.IsFull(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := f.WriteAt(make([]byte, 130), 0); n != 100 || !vfs.IsFull(err) || written != 2 {
		t.Errorf("over what is there: %d bytes, %v", n, err)
	}
	drill.Check(t, f.Truncate(10))
	m.Take(20)
	if free, _, _ := m.Room(Dir); free != 20 || f.Allocate(31) == nil || f.Allocate(30) != nil {
		t.Errorf("%d bytes are free", free)
	}
	m.GiveBack()
	if free, _, _ := m.Room(Dir); free != 70 {
		t.Errorf("%d bytes are free", free)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	open := func() vfs.File {
		f, err := m.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		drill.Check(t, err)
		return f
	}
	a, b, c := open(), open(), open()
	drill.Check(t, a.Lock(true), b.Lock(true))
	if err := c.Lock(false); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("beside shared locks: %v", err)
	}
	drill.Report(t, a.Close(), b.Close(), c.Lock(false))
	if err := open().Lock(true); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("beside an exclusive lock: %v", err)
	}
	f, err := m.Clone().Open(path)
	if err != nil || f.Lock(false) != nil {
		t.Error("a lock outlives its process", err)
	}
}
