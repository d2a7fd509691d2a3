package aof

import (
	"errors"
	"fmt"
	"os"
)

// File is a file that is appended to. One goroutine at a time may append, another may force it to disk.
//
// No buntdb database is opened on it. buntdb would keep the whole file in a tree that nothing reads,
// write without reporting whether fsync worked, and panic when it cannot take back a partial write.
type File struct {
	path         string
	f            *os.File
	end          int64 // bytes: where the next command goes
	preallocated int64 // bytes of zeros behind end
	faults       *Faults
}

// ErrTorn is the error for a file that must not be appended to any more.
var ErrTorn = errors.New("what was written in part could not be taken back")

// NewFile makes a file that has been checked ready to be appended to. path is its name, end its size.
func NewFile(f *os.File, path string, end int64, faults *Faults) *File {
	return &File{path: path, f: f, end: end, faults: faults}
}

// Path is the file's name.
func (d *File) Path() string { return d.path }

// End is the size of the file in bytes without what is preallocated.
func (d *File) End() int64 { return d.end }

// Preallocated is the number of bytes of zeros behind the end.
func (d *File) Preallocated() int64 { return d.preallocated }

// ReadAt implements io.ReaderAt.
func (d *File) ReadAt(b []byte, at int64) (int, error) { return d.f.ReadAt(b, at) }

// Append writes commands to the end of the file: all of them or, after an error, none. An error that
// is [ErrTorn] breaks the file.
func (d *File) Append(commands []byte) error {
	if err := d.faults.BeforeWrite(); err != nil {
		return err
	}
	if _, err := d.f.WriteAt(commands, d.end); err != nil {
		return errors.Join(err, d.CutBack(d.end))
	}
	n := int64(len(commands))
	d.preallocated = max(d.preallocated-n, 0)
	d.end += n
	return nil
}

// CutBack takes back all that stands behind an offset, the preallocated zeros with it. An error is
// [ErrTorn].
func (d *File) CutBack(to int64) error {
	d.end = to
	if _, err := d.Trim(); err != nil {
		return errors.Join(ErrTorn, err)
	}
	return nil
}

// Sync forces the file to disk. It makes sure that the file is still the one under its name, not one that
// another process has put there.
func (d *File) Sync() error { return d.force(d.faults.Fsync) }

// SyncData is Sync without the file's times.
func (d *File) SyncData() error { return d.force(d.faults.fdatasync) }

func (d *File) force(sync func(*os.File) error) error {
	if err := sync(d.f); err != nil {
		return err
	}
	ours, err := d.f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	if !os.SameFile(ours, named) {
		return fmt.Errorf("%s was replaced by another file", d.path)
	}
	return nil
}

// Rename gives the file another name. The folder is still to be forced to disk.
func (d *File) Rename(path string) error {
	if err := os.Rename(d.path, path); err != nil {
		return err
	}
	d.path = path
	return nil
}

// Close closes the file without forcing it to disk.
func (d *File) Close() error { return d.f.Close() }
