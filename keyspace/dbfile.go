package keyspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A dbFile is a buntdb file that is appended to: one of buntdb's files is a sequence of the commands set
// and del. One goroutine at a time may append, another may fsync.
//
// No database is opened on it. buntdb would keep all that is in the file in a tree that nobody reads, and
// for which a document takes a sixth more memory and a checkpoint a third more time; it would write
// without telling whether fsync worked, and panic when it cannot take back what it has written in part.
type dbFile struct {
	path   string
	f      *os.File
	end    int64 // bytes: where to append
	room   int64 // bytes of zeros that stand there already, see room.go
	faults *faults
}

// errTorn says that a file must not be appended to any more.
var errTorn = errors.New("what was written in part could not be taken back")

// newDBFile makes a file that has been checked ready to be appended to; size is all of it.
func newDBFile(f *os.File, size int64, faults *faults) *dbFile {
	return &dbFile{path: f.Name(), f: f, end: size, faults: faults}
}

// append has commands written to the end of the file: all of them or, after an error, none. An error that
// is errTorn breaks the file.
func (d *dbFile) append(write func(w io.Writer) error) error {
	if err := d.faults.beforeWrite(); err != nil {
		return err
	}
	w := tail{d.f, d.end}
	err := write(&w)
	if err == nil {
		d.room = max(d.room-(w.at-d.end), 0)
		d.end = w.at
		return nil
	}
	return errors.Join(err, d.takeBack())
}

// takeBack takes back what has been written in part, and the room with it.
func (d *dbFile) takeBack() error {
	if _, err := d.cutRoom(); err != nil {
		return errors.Join(errTorn, err)
	}
	return nil
}

// tail writes to a file from some place on.
type tail struct {
	f  *os.File
	at int64
}

func (w *tail) Write(b []byte) (n int, err error) {
	n, err = w.f.WriteAt(b, w.at)
	w.at += int64(n)
	return n, err
}

// appendCommands appends the commands for operations, as buntdb writes them.
func appendCommands(dst []byte, ops []op) []byte {
	for _, o := range ops {
		if o.del {
			dst = append(dst, delHead...)
			dst = appendBulk(dst, o.key)
		} else {
			dst = append(dst, setHead...)
			dst = appendBulk(dst, o.key)
			dst = appendBulk(dst, o.rec)
		}
	}
	return dst
}

func appendBulk(dst []byte, s string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, s...)
	return append(dst, "\r\n"...)
}

// fsync forces the file to disk and makes sure that it is still the one under its name: not another
// that somebody has put there behind our back.
func (d *dbFile) fsync() error { return d.force(d.faults.fsync) }

// fdatasync is fsync of what is in the file.
func (d *dbFile) fdatasync() error { return d.force(d.faults.fdatasync) }

func (d *dbFile) force(sync func(*os.File) error) error {
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

// rename gives the file another name.
func (d *dbFile) rename(path string) error {
	if err := os.Rename(d.path, path); err != nil {
		return err
	}
	d.path = path
	return nil
}

func (d *dbFile) close() error { return d.f.Close() }
