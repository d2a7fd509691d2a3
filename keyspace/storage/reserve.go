package storage

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"mayfly/vfs"
)

// ReserveName is the reserve's file in a data folder. Its content means nothing.
const ReserveName = "reserve"

// The bounds of a reserve as parts of other sizes: it is at most capacityShare of its disk, a fill leaves
// spareShare of the reserve free besides, and lastShare of the reserve is for a start on a full disk.
const (
	capacityShare = 16
	spareShare    = 8
	lastShare     = 16
)

// reserve is a file that takes room and can give it back. Safe for concurrent use.
type reserve struct {
	fs   vfs.FS
	path string
	size int64 // bytes when it is full; 0: there is none

	mu sync.Mutex // protects what follows
	f  vfs.File   // nil until the first fill
}

// openReserve opens the reserve of a folder, which has size bytes once it is filled, or less on a small disk.
// Without a size it removes the file.
func openReserve(fsys vfs.FS, dir string, size int64) (*reserve, error) {
	r := &reserve{fs: fsys, path: filepath.Join(dir, ReserveName)}
	if size == 0 {
		err := fsys.Remove(r.path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return r, err
	}
	_, capacity, err := fsys.Room(dir)
	if err != nil {
		return r, err
	}
	r.size = min(size, capacity/capacityShare)
	fi, err := fsys.Lstat(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil && !fi.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: r.path, Err: errors.New("not a regular file")}
	}
	if err == nil {
		r.f, err = fsys.OpenFile(r.path, os.O_RDWR, 0)
	}
	return r, err
}

// Size returns the size of the filled reserve in bytes, 0 if there is none.
func (r *reserve) Size() int64 { return r.size }

// last returns the bytes that [Reserve.Release] keeps for the next start.
func (r *reserve) last() int64 { return r.size / lastShare }

// Held returns the bytes that the reserve holds.
func (r *reserve) Held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heldLocked()
}

// heldLocked: r.mu must be held.
func (r *reserve) heldLocked() int64 {
	if r.f == nil {
		return 0
	}
	fi, err := r.f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// fill takes the room that is missing, if the disk has that and some more. Otherwise the reserve stays as it
// is, and [vfs.IsFull] holds for the error.
func (r *reserve) fill() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return nil
	}
	held, want := r.heldLocked(), r.size+r.size/spareShare
	free, _, err := r.fs.Room(filepath.Dir(r.path))
	if err != nil {
		return err
	}
	if free < want-min(held, r.size) { // taking the last room for a moment would make other writes fail
		return &os.PathError{Op: "fill", Path: r.path, Err: syscall.ENOSPC}
	}
	if r.f == nil {
		if r.f, err = vfs.CreateNew(r.fs, r.path); err != nil {
			r.f = nil
			return err
		}
	}
	if err := r.f.Allocate(want); err != nil {
		return errors.Join(&os.PathError{Op: "fill", Path: r.path, Err: err}, r.f.Truncate(held))
	}
	return r.f.Truncate(r.size)
}

// Release gives room back, all but keep bytes, and returns how many.
func (r *reserve) Release(keep int64) (freed int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.heldLocked()
	if held <= keep {
		return 0, nil
	}
	return held - keep, r.f.Truncate(keep)
}

// Close closes the file. The reserve keeps its room.
func (r *reserve) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}
