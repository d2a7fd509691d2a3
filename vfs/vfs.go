package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is a file system. Its methods are those of package os, but for Room. Safe for concurrent use.
type FS interface {
	Open(path string) (File, error) // for reading a file, or for forcing a folder to disk
	OpenFile(path string, flag int, perm fs.FileMode) (File, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Mkdir(path string, perm fs.FileMode) error
	MkdirAll(path string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error

	// Room returns how many bytes this process may still write to the disk of a folder, and the size of that
	// disk. What is not known is a huge number.
	Room(dir string) (free, size int64, err error)
}

// File is an open file or folder.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string // as it was opened
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error

	// Sync forces a file to disk, or the names in a folder.
	Sync() error
	// SyncData forces the content and the size of a file to disk, but not its times.
	SyncData() error
	// Allocate takes room on the disk for the first bytes of a file, which may then read as zeros. After an
	// error it may have taken some.
	Allocate(bytes int64) error
	// DropCache advises the system that a range will not be read again soon.
	DropCache(from, bytes int64)
	// Lock locks a file or folder until it is closed, against other processes, or against exclusive locks
	// only if it is shared. It does not wait: the error is [ErrLocked] if another lock is in the way.
	Lock(shared bool) error
}

// The errors of [File.Lock].
var (
	ErrLocked  = errors.New("locked by another process")
	ErrNoLocks = errors.New("mayfly cannot lock files on this system")
)

// CreateNew creates a file that must not exist yet.
func CreateNew(fsys FS, path string) (File, error) {
	return fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadFile returns the content of a file.
func ReadFile(fsys FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	content := make([]byte, fi.Size())
	n, err := f.ReadAt(content, 0)
	if err == io.EOF { // it has become shorter
		err = nil
	}
	return content[:n], err
}

// WriteFile creates a file and forces it to disk. It replaces one that exists: the remains of a failed
// attempt may never get to the disk. [SyncDir] forces its name to disk.
func WriteFile(fsys FS, path string, content []byte) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := CreateNew(fsys, path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// ReplaceFile writes a file durably, in place of one that exists. After an error or a crash either one is
// there.
func ReplaceFile(fsys FS, path string, content []byte) error {
	err := WriteFile(fsys, path+".tmp", content)
	if err == nil {
		err = fsys.Rename(path+".tmp", path)
	}
	if err != nil {
		_ = fsys.Remove(path + ".tmp") // if it stays, the next attempt replaces it
		return err
	}
	return SyncDir(fsys, filepath.Dir(path))
}

// SyncDir forces the names in a folder to disk.
func SyncDir(fsys FS, dir string) error {
	d, err := fsys.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SameFile reports whether two files are the same under different names, or at different times.
func SameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) || a.Sys() != nil && a.Sys() == b.Sys()
}

// IsFull reports whether the error is that the disk has no room, or the user's quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
