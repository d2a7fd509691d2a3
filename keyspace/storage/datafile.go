package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/store"
	"mayfly/vfs"
)

// dataFile is a file as it must be at one moment. Its first Size bytes never change. Once open, it stays
// readable when a compaction replaces it or a checkpoint removes it.
type dataFile struct {
	FS   vfs.FS
	Path string
	Use  aof.Use
	Mark uint32 // of its seals
	Size int64  // bytes, up to the end of a seal
	Text string // of a file that is not a sequence of commands: all of it

	f vfs.File
}

// Open opens the file. One that is missing is damaged.
func (f *dataFile) Open() (err error) {
	if f.f, err = f.FS.Open(f.Path); errors.Is(err, fs.ErrNotExist) {
		return &aof.DamageError{File: f.Path, To: f.Size, Reason: "the file is missing"}
	}
	return err
}

// Close closes the file if it is open.
func (f *dataFile) Close() {
	if f.f != nil {
		f.f.Close() // it was only read
		f.f = nil
	}
}

// verify reads the file from the disk, and compares it with what was written. An *aof.DamageError is the
// error for a difference.
func (f *dataFile) verify(ctx context.Context, pacer *store.Pacer) error {
	r := &fileReader{ctx: ctx, f: f.f, pacer: pacer, cold: true}
	defer r.dropCache(f.Size)
	return f.check(r, nil)
}

// copyTo copies the file into a folder, and forces the copy to disk. The copy has the bytes that were
// checked: an *aof.DamageError is the error if they are not those that were written. The copy fails when the
// context ends.
func (f *dataFile) copyTo(ctx context.Context, dir string, pacer *store.Pacer) error {
	out, err := vfs.CreateNew(f.FS, filepath.Join(dir, filepath.Base(f.Path)))
	if err != nil {
		return err
	}
	err = f.check(&fileReader{ctx: ctx, f: f.f, pacer: pacer, to: out}, nil)
	return errors.Join(err, out.Sync(), out.Close())
}

// copyLive is copyTo for a store, but leaves out what is overwritten or deleted, and records that are gone:
// gone is as in [store.CopyOptions]. It returns the mark and the end of the copy.
func (f *dataFile) copyLive(ctx context.Context, dir string, gone func(key, rec []byte) bool, pacer *store.Pacer) (mark uint32, end int64, err error) {
	return store.Copy(f.FS, filepath.Join(dir, filepath.Base(f.Path)), store.CopyOptions{
		Scan: func(v aof.Visitor) error { return f.check(&fileReader{ctx: ctx, f: f.f}, v) }, Gone: gone, Pacer: pacer,
	})
}

// check visits the file and compares it with what was written. The visitor may be nil.
func (f *dataFile) check(r *fileReader, v aof.Visitor) error {
	if f.Text != "" {
		return f.checkText(r)
	}
	if fi, err := f.f.Stat(); err != nil {
		return err
	} else if fi.Size() < f.Size {
		return &aof.DamageError{File: f.Path, From: fi.Size(), To: f.Size, Reason: "the file ends before its confirmed end"}
	}
	last, end, err := aof.Scan(r, f.Path, f.Size, f.Use, v)
	switch {
	case err != nil:
		return err
	case end != f.Size:
		return &aof.DamageError{File: f.Path, From: end, To: f.Size, Reason: "confirmed changes are missing"}
	case last.Mark != f.Mark:
		return &aof.DamageError{File: f.Path, To: f.Size, Reason: "its mark is another: it is an older file, or of another folder"}
	}
	return nil
}

func (f *dataFile) checkText(r *fileReader) error {
	b := make([]byte, len(f.Text)+1) // one more shows that it goes on
	n, err := r.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if string(b[:n]) != f.Text {
		return &aof.DamageError{File: f.Path, To: int64(n), Reason: "its content is not what was written"}
	}
	return nil
}

// fileReader reads a file at a pace, and copies what it reads. A scan reads each byte once, in order.
type fileReader struct {
	ctx   context.Context // its end is the error of ReadAt
	f     vfs.File
	pacer *store.Pacer
	to    vfs.File // receives a copy; may be nil
	cold  bool     // reads from the disk
	ahead int64    // the cache has been dropped up to this offset
}

const (
	window   = 1 << 20  // bytes of which the cache is dropped at a time
	pageSize = 64 << 10 // a multiple of the page size of any system
)

func (r *fileReader) ReadAt(b []byte, at int64) (n int, err error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if next := at + int64(len(b)); r.cold && next > r.ahead {
		r.dropCache((next + window) &^ (pageSize - 1))
	}
	n, err = r.f.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return n, &aof.DamageError{File: r.f.Name(), From: at, To: at + int64(len(b)), Reason: err.Error()}
	}
	if r.to != nil && n > 0 {
		if _, failed := r.to.WriteAt(b[:n], at); failed != nil {
			return 0, failed
		}
	}
	r.pacer.Wrote(int64(n))
	return n, err
}

// dropCache drops what the system's memory has of the window before and of the one up to an offset. The next
// read is of the disk, and a scrub does not drive out of memory what others need.
func (r *fileReader) dropCache(to int64) {
	from := max(r.ahead-2*window, 0)
	r.f.DropCache(from, max(to, r.ahead)-from)
	r.ahead = to
}
