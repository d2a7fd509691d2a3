package vfs

import (
	"io/fs"
	"os"
)

// OS is the file system of the operating system.
var OS FS = system{}

// Or returns a file system, [OS] for nil.
func Or(fsys FS) FS {
	if fsys == nil {
		return OS
	}
	return fsys
}

type system struct{}

func (s system) Open(path string) (File, error) { return s.OpenFile(path, os.O_RDONLY, 0) }

func (system) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err // not a File of nil
	}
	return osFile{f}, nil
}

func (system) Stat(path string) (fs.FileInfo, error)      { return os.Stat(path) }
func (system) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (system) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (system) Mkdir(path string, perm fs.FileMode) error  { return os.Mkdir(path, perm) }
func (system) MkdirAll(path string, perm fs.FileMode) error {
	return os.MkdirAll(path, perm)
}
func (system) Rename(from, to string) error                  { return os.Rename(from, to) }
func (system) Remove(path string) error                      { return os.Remove(path) }
func (system) RemoveAll(path string) error                   { return os.RemoveAll(path) }
func (system) Room(dir string) (free, size int64, err error) { return room(dir) }

// osFile is a file of the operating system. It is a pointer, so that an interface of it takes no memory.
type osFile struct{ *os.File }

func (f osFile) SyncData() error             { return fdatasync(f.File) }
func (f osFile) Allocate(bytes int64) error  { return allocate(f.File, bytes) }
func (f osFile) DropCache(from, bytes int64) { dropCache(f.File, from, bytes) }
func (f osFile) Lock(shared bool) error      { return lock(f.File, shared) }

var zeros [64 << 10]byte

// allocateZeros writes zeros behind the end of the file.
func allocateZeros(f *os.File, bytes int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	for at := fi.Size(); at < bytes; {
		n, err := f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}
