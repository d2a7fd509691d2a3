package keyspace

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/tidwall/buntdb"
)

// forceToDisk is fsync, of a file or a folder of the data. Everybody uses it, so that a test can know
// what a power cut would leave (powercut_test.go).
var forceToDisk = (*os.File).Sync

// faults lets a test play a disk that fails; nil or a nil function is the real disk.
type faults struct {
	write func() error           // called before a transaction is written; its error is the write's
	sync  func(f *os.File) error // called in place of fsync
}

func (x *faults) beforeWrite() error {
	if x == nil || x.write == nil {
		return nil
	}
	return x.write()
}

func (x *faults) fsync(f *os.File) error {
	if x == nil || x.sync == nil {
		return forceToDisk(f)
	}
	return x.sync(f)
}

// A dbFile is a buntdb file with a descriptor of our own beside buntdb's: buntdb ignores the errors
// of fsync, and calls it under the lock that every reader waits for.
type dbFile struct {
	db     *buntdb.DB // nil until open
	path   string
	f      *os.File // opened before buntdb writes, so that no error of writing back escapes it
	faults *faults
}

// openDB opens a file that has been checked; see open.
func openDB(f *os.File, size int64, faults *faults) (*dbFile, error) {
	d := &dbFile{path: f.Name(), f: f, faults: faults}
	if err := d.open(size); err != nil {
		return nil, err
	}
	return d, nil
}

// open has buntdb read the file, which has been checked. buntdb must take it as it is: of this size.
func (d *dbFile) open(size int64) error {
	db, err := buntdb.Open(d.path)
	if err != nil {
		return err
	}
	err = db.SetConfig(buntdb.Config{SyncPolicy: buntdb.Never, AutoShrinkDisabled: true})
	if now, e := d.size(); err == nil && (e != nil || now != size) {
		err = errors.Join(fmt.Errorf("%s changed while it was opened", d.path), e)
	}
	if err != nil {
		db.Close()
		return err
	}
	d.db = db
	return nil
}

// update runs one transaction. buntdb commits what is half done when the function panics, so the
// panic is turned into an error inside, which rolls back.
//
// A panic of buntdb itself leaves its lock held and its file in an unknown state: nothing may
// recover from it, not even the handler that keeps a faulty command from ending the server.
func (d *dbFile) update(f func(tx *buntdb.Tx) error) error {
	if err := d.faults.beforeWrite(); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
	return d.db.Update(func(tx *buntdb.Tx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic in a transaction: %v\n%s", p, debug.Stack())
			}
		}()
		return f(tx)
	})
}

// endProcess panics where nobody can recover.
func endProcess(p any) {
	stack := debug.Stack()
	go panic(fmt.Sprintf("%v\n%s", p, stack))
	select {}
}

// fsync forces the file to disk and makes sure that the file is still the one under its name, which
// buntdb's would not be any more after a compaction behind our back.
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

// rename gives the file another name. It cannot be shrunk or reopened after that: buntdb knows the old one.
func (d *dbFile) rename(path string) error {
	if err := os.Rename(d.path, path); err != nil {
		return err
	}
	d.path = path
	return nil
}

// spareFiles is how many descriptors must be free before buntdb compacts: it panics half way, with
// its lock held, when it cannot open a file.
const spareFiles = 4

// shrink has buntdb write the file anew, with rests. What it panics at ends the process, as in update. size
// is what the items take, in bytes.
func (d *dbFile) shrink(rest rests, size int64) error {
	if err := d.faults.beforeWrite(); err != nil {
		return err
	}
	var spare []*os.File
	for range spareFiles {
		f, err := os.Open(d.f.Name())
		if err != nil {
			for _, f := range spare {
				f.Close()
			}
			return err
		}
		spare = append(spare, f)
	}
	for _, f := range spare {
		f.Close()
	}
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
	return d.slowly(rest, size, d.db.Shrink)
}

// reopen gets a descriptor of the file that is under the name now, in place of ours.
func (d *dbFile) reopen() error {
	f, err := os.OpenFile(d.f.Name(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	old := d.f
	d.f = f
	return errors.Join(f.Chmod(0o600), old.Close())
}

func (d *dbFile) size() (int64, error) {
	fi, err := d.f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (d *dbFile) close() error {
	if d.db == nil {
		return d.f.Close()
	}
	return errors.Join(d.db.Close(), d.f.Close())
}

// createNew makes a file that must not exist yet.
func createNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// writeFile makes a file, or makes it anew, and forces it to disk. Its name is on disk once the
// folder has been forced there too: see fsyncDir.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, forceToDisk(f), f.Close())
}

// fsyncDir forces the names in a folder to disk.
func fsyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(forceToDisk(d), d.Close())
}
