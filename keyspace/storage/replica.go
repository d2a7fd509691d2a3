package storage

import (
	"errors"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/vfs"
)

var errDropped = errors.New("the data folder is not in use any more")

// Drop closes the files and the folder as they are: nothing is committed, and no checkpoint is made. Others
// may use the engine meanwhile and afterwards: what they ask for fails. Nothing may run in the background.
func (e *Engine) Drop() error {
	e.Journal.Refuse() // so that a checkpoint under way ends
	e.Lock()
	defer e.Unlock()
	e.dropped = true
	errs := []error{e.Journal.Abandon()}
	for _, s := range e.Stores() {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, e.Disk.Close(), e.folder.Close())...)
}

// ReadTail returns the place in a cluster's log of a folder that is not in use: zero if it has none. It
// writes nothing.
func ReadTail(fsys vfs.FS, dir string) (tail replica.Tail, err error) {
	visit := func(o aof.Op) error {
		_, err := tail.Read(o.Key, o.Rec, o.Del)
		return err
	}
	err = readFile(fsys, filepath.Join(dir, datadir.CatalogueName), func(f vfs.File, size int64) error {
		_, _, err := aof.Scan(f, f.Name(), size, aof.Store, &aof.Confirmed{Visit: visit})
		return err
	})
	if err != nil {
		return tail, err
	}
	files, err := journal.Files(fsys, dir)
	last := journal.LSN(0)
	for i, file := range files {
		err = errors.Join(err, readFile(fsys, file.Path, func(f vfs.File, size int64) error {
			_, _, _, err := journal.Scan(f, file.Path, size, i == len(files)-1, &last, visit)
			return err
		}))
	}
	return tail, err
}

// readFile calls read with a file and its size.
func readFile(fsys vfs.FS, path string, read func(f vfs.File, size int64) error) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return read(f, fi.Size())
}
