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
)

// CreateNew creates a file that must not exist yet.
func CreateNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// WriteFile creates a file, or replaces its content, and forces it to disk. [SyncDir] does the same for its name.
func WriteFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
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
