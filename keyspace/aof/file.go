package aof

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"mayfly/vfs"
)

// File is a file that is appended to. One goroutine at a time may append, another may force it to disk.
//
// It is no buntdb database. buntdb keeps the whole file in a tree, does not report whether fsync worked, and
// panics when it cannot cut off a partial write.
type File struct {
	path         string
	fs           vfs.FS
	f            vfs.File
	end          int64 // bytes: where the next command goes
	preallocated int64 // bytes of zeros behind end
}

var zeros [64 << 10]byte

// ErrTorn reports a file that must not be appended to any more.
var ErrTorn = errors.New("a partial write could not be cut off")

// NewFile prepares a sound file for appending. path is its name, end its size.
func NewFile(fsys vfs.FS, f vfs.File, path string, end int64) *File {
	return &File{path: path, fs: fsys, f: f, end: end}
}

// Path is the file's name.
func (d *File) Path() string { return d.path }

// End is the size of the file in bytes without what is preallocated.
func (d *File) End() int64 { return d.end }

// Preallocated is the number of bytes of zeros behind the end.
func (d *File) Preallocated() int64 { return d.preallocated }

// ReadAt implements io.ReaderAt.
func (d *File) ReadAt(b []byte, at int64) (int, error) { return d.f.ReadAt(b, at) }

// Append writes commands to the end of the file: all of them or, after an error, none. [ErrTorn] breaks the
// file.
func (d *File) Append(commands []byte) error {
	if _, err := d.f.WriteAt(commands, d.end); err != nil {
		return errors.Join(d.named(err), d.CutBack(d.end))
	}
	n := int64(len(commands))
	d.preallocated = max(d.preallocated-n, 0)
	d.end += n
	return nil
}

// AppendParts is Append for commands in parts.
func (d *File) AppendParts(parts []string) error {
	at := d.end
	for _, part := range parts {
		n, err := d.f.WriteAt(unsafe.Slice(unsafe.StringData(part), len(part)), at)
		if at += int64(n); err != nil {
			return errors.Join(d.named(err), d.CutBack(d.end))
		}
	}
	d.preallocated = max(d.preallocated-(at-d.end), 0)
	d.end = at
	return nil
}

// CutBack removes everything behind an offset, preallocated zeros too. An error is [ErrTorn].
func (d *File) CutBack(to int64) error {
	d.end = to
	if _, err := d.Trim(); err != nil {
		return errors.Join(ErrTorn, d.named(err))
	}
	return nil
}

// named returns an error of the file with its present name. After [File.Rename], a [vfs.File] has the former
// one.
func (d *File) named(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && err == error(pe) {
		return &fs.PathError{Op: pe.Op, Path: d.path, Err: pe.Err}
	}
	return err
}

// Preallocate writes zeros behind the end of the file. A write over zeros that are on disk changes no
// metadata of the file system.
//
// A start takes the first zero for the end of the file, and buntdb skips zeros. After an error there are
// none.
func (d *File) Preallocate(bytes int64) error {
	for at := int64(0); at < bytes; {
		n, err := d.f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], d.end+at)
		at += int64(n)
		if err != nil {
			_ = d.CutBack(d.end) // zeros that stay do no harm
			return err
		}
	}
	d.preallocated = bytes
	return nil
}

// Trim cuts off what lies behind the end of the file, and reports whether there was anything.
func (d *File) Trim() (cut bool, err error) {
	fi, err := d.f.Stat()
	if err != nil || fi.Size() <= d.end {
		return false, err
	}
	if err := d.f.Truncate(d.end); err != nil {
		return false, err
	}
	d.preallocated = 0
	return true, nil
}

// Sync forces the file to disk. It fails if another process has replaced the file under its name.
func (d *File) Sync() error { return d.force(d.f.Sync()) }

// SyncData is Sync without the file's times.
func (d *File) SyncData() error { return d.force(d.f.SyncData()) }

// force returns the error of an fsync, or the one for a file that is not there any more.
func (d *File) force(err error) error {
	if err != nil {
		return d.named(err)
	}
	ours, err := d.f.Stat()
	if err != nil {
		return err
	}
	named, err := d.fs.Stat(d.path)
	if err != nil {
		return err
	}
	if !vfs.SameFile(ours, named) {
		return fmt.Errorf("%s was replaced by another file", d.path)
	}
	return nil
}

// Rename renames the file. The caller forces the folder to disk.
func (d *File) Rename(path string) error {
	if err := d.fs.Rename(d.path, path); err != nil {
		return err
	}
	d.path = path
	return nil
}

// Close closes the file without forcing it to disk.
func (d *File) Close() error { return d.f.Close() }
