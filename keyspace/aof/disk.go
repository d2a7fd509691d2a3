package aof

import (
	"errors"
	"os"
)

// All writes of stores and journals, and all fsyncs of the keyspace, go through these functions. Tests replace
// them to make a disk fail and to find out what a power cut leaves.
var (
	Fsync     = (*os.File).Sync    // forces a file or a folder to disk
	Fdatasync = fdatasync          // forces the content and the size of a file to disk, but not its times
	WriteAt   = (*os.File).WriteAt // appends to a file
	Write     = (*os.File).Write   // writes a small file as a whole
)

// CreateNew creates a file that must not exist yet.
func CreateNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// WriteFile creates a file and forces it to disk. It replaces one that exists: the remains of a failed attempt may never
// get to the disk. [SyncDir] forces its name to disk.
func WriteFile(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := CreateNew(path)
	if err != nil {
		return err
	}
	_, err = Write(f, content)
	return errors.Join(err, Fsync(f), f.Close())
}

// SyncDir forces the names in a folder to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(Fsync(d), d.Close())
}
