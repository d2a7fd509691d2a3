package keyspace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidwall/buntdb"
)

// A dbFile is a buntdb file that is appended to. One goroutine at a time may do so, another may fsync it.
//
// What is appended is a small database that buntdb holds in memory for the moment and saves to the end of
// the file: buntdb's files are sequences of such snapshots, and of deletes. A database opened on the file
// itself would keep all that the file holds in a tree that nobody reads, and which takes a third of a
// checkpoint's time and as much memory again as an item's other administration. It would also write without
// telling whether fsync worked, and panic when it cannot take back what it has written in part.
type dbFile struct {
	path   string
	f      *os.File
	end    int64      // bytes: where to append
	db     *buntdb.DB // in memory: what was appended last
	faults *faults
}

// errTorn says that a file must not be appended to any more.
var errTorn = errors.New("what was written in part could not be taken back")

// openDB makes a file that has been checked ready to be appended to; size is all of it.
func openDB(f *os.File, size int64, faults *faults) (*dbFile, error) {
	db, err := buntdb.Open(":memory:")
	if err != nil {
		return nil, err
	}
	return &dbFile{path: f.Name(), f: f, end: size, db: db, faults: faults}, nil
}

// append writes operations to the end of the file, in order; of sets of one key that follow each other,
// only the last. All are written or none. An error that is errTorn breaks the file.
//
// A panic of buntdb may leave its lock held: nothing may recover from it, not even the handler that keeps a
// faulty command from ending the server.
func (d *dbFile) append(ops []op) error {
	if err := d.faults.beforeWrite(); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
	w := tail{d.f, d.end}
	err := d.encode(&w, ops)
	if err == nil {
		d.end = w.at
		return nil
	}
	return errors.Join(err, d.takeBack())
}

// takeBack takes back what has been written in part.
func (d *dbFile) takeBack() error {
	fi, err := d.f.Stat()
	if err == nil && fi.Size() > d.end {
		err = d.f.Truncate(d.end)
	}
	if err != nil {
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

// encode writes operations in the form of buntdb's files.
func (d *dbFile) encode(w io.Writer, ops []op) error {
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && ops[n].del == ops[0].del {
			n++
		}
		write := d.saveSets
		if ops[0].del {
			write = writeDels
		}
		if err := write(w, ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// saveSets writes operations that set items, in ascending order of the keys.
func (d *dbFile) saveSets(w io.Writer, ops []op) error {
	err := d.db.Update(func(tx *buntdb.Tx) error {
		if err := tx.DeleteAll(); err != nil {
			return err
		}
		for _, o := range ops {
			if _, _, err := tx.Set(o.key, o.rec, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.db.Save(w)
}

// writeDels writes operations that delete items. A snapshot has none, so this is not left to buntdb.
func writeDels(w io.Writer, ops []op) error {
	var b []byte
	for _, o := range ops {
		b = fmt.Appendf(b, "%s$%d\r\n%s\r\n", delHead, len(o.key), o.key)
	}
	_, err := w.Write(b)
	return err
}

// fsync forces the file to disk and makes sure that it is still the one under its name: not another
// that somebody has put there behind our back.
func (d *dbFile) fsync() error {
	if err := d.faults.fsync(d.f); err != nil {
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

func (d *dbFile) close() error { return errors.Join(d.db.Close(), d.f.Close()) }
