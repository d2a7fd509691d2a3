package vfstest

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"

	"mayfly/vfs"
)

// ErrDisk is the error of a [Faulty] disk that fails.
var ErrDisk = errors.New("input/output error")

// Faulty is a file system that counts, and fails as it is told. The hooks are set before anything uses it.
type Faulty struct {
	vfs.FS
	Writes, Syncs         atomic.Int64 // tried
	FailWrites, FailSyncs atomic.Bool
	Most                  atomic.Int64 // bytes of any file: writes end there with an error; 0: no bound

	OnWrite    func(f vfs.File, b []byte, at int64) error // called before each write, which fails with its error
	OnSync     func(f vfs.File) error                     // called before each fsync of a file or folder, likewise
	OnRead     func(f vfs.File, at, to int64) error       // called before each read, likewise
	OnRoom     func() (free, size int64)                  // in place of Room
	OnAllocate func(f vfs.File, bytes int64) error        // in place of Allocate
	NoSync     bool                                       // fsyncs do nothing
}

// Fast returns the file system of the operating system without fsync, for tests that cut no power.
func Fast() vfs.FS { return &Faulty{FS: vfs.OS, NoSync: true} }

// Open implements [vfs.FS].
func (d *Faulty) Open(path string) (vfs.File, error) { return d.wrap(d.FS.Open(path)) }

// OpenFile implements [vfs.FS].
func (d *Faulty) OpenFile(path string, flag int, perm fs.FileMode) (vfs.File, error) {
	return d.wrap(d.FS.OpenFile(path, flag, perm))
}

func (d *Faulty) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d}, nil
}

// Room implements [vfs.FS].
func (d *Faulty) Room(dir string) (free, size int64, err error) {
	if d.OnRoom == nil {
		return d.FS.Room(dir)
	}
	free, size = d.OnRoom()
	return free, size, nil
}

type faultyFile struct {
	vfs.File
	d *Faulty
}

func (f faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if f.d.OnRead != nil {
		if err := f.d.OnRead(f.File, at, at+int64(len(b))); err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(b, at)
}

func (f faultyFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.Writes.Add(1)
	if f.d.FailWrites.Load() {
		return 0, ErrDisk
	}
	if f.d.OnWrite != nil {
		if err := f.d.OnWrite(f.File, b, at); err != nil {
			return 0, err
		}
	}
	if most := f.d.Most.Load(); most > 0 && at+int64(len(b)) > most {
		n, err := f.File.WriteAt(b[:max(most-at, 0)], at)
		return n, errors.Join(err, failed("write", f.Name(), syscall.EFBIG))
	}
	return f.File.WriteAt(b, at)
}

func (f faultyFile) Sync() error     { return f.sync(f.File.Sync) }
func (f faultyFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f faultyFile) sync(sync func() error) error {
	f.d.Syncs.Add(1)
	if f.d.FailSyncs.Load() {
		return ErrDisk
	}
	if f.d.OnSync != nil {
		if err := f.d.OnSync(f.File); err != nil {
			return err
		}
	}
	if f.d.NoSync {
		return nil
	}
	return sync()
}

func (f faultyFile) Allocate(bytes int64) error {
	if f.d.OnAllocate != nil {
		return f.d.OnAllocate(f.File, bytes)
	}
	return f.File.Allocate(bytes)
}
