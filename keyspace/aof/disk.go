package aof

import (
	"errors"
	"os"
)

// Fsync forces a file or a folder to disk. All of the keyspace uses it, so that a test can replace it and
// know what a power cut leaves.
var Fsync = (*os.File).Sync

// Fdatasync forces the content of a file to disk, and its size, but not its times. Tests replace it.
var Fdatasync = fdatasync

// Faults lets a test play a disk that fails. Nil, or a nil function, is the real disk.
type Faults struct {
	Write func() error           // called before a write; its error is the write's
	Sync  func(f *os.File) error // called in place of fsync and fdatasync
}

// BeforeWrite is called before a write.
func (x *Faults) BeforeWrite() error {
	if x == nil || x.Write == nil {
		return nil
	}
	return x.Write()
}

// Fsync forces a file to disk.
func (x *Faults) Fsync(f *os.File) error {
	if x == nil || x.Sync == nil {
		return Fsync(f)
	}
	return x.Sync(f)
}

func (x *Faults) fdatasync(f *os.File) error {
	if x == nil || x.Sync == nil {
		return Fdatasync(f)
	}
	return x.Sync(f)
}

// CreateNew makes a file that must not exist yet.
func CreateNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// WriteFile makes a file, or makes it anew, and forces it to disk. Its name is on disk once [SyncDir]
// has forced the folder there too.
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
