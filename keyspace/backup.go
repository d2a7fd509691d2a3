package keyspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Save folds all that has been written by now into the stores and forces it to disk. It blocks for
// as long as that takes; others go on meanwhile.
func (ks *Keyspace) Save() error { return ks.checkpoint() }

// SaveInBackground has a checkpoint made soon. It returns at once; false if one that was asked for in
// this way is still to be finished.
func (ks *Keyspace) SaveInBackground() bool {
	if ks.fold.asked.Swap(true) {
		return false
	}
	ks.wakeCheckpoint()
	return true
}

// LastSave is the moment in ms of the last checkpoint, or of the start if there was none yet.
func (ks *Keyspace) LastSave() int64 { return ks.fold.last.Load() }

// Dir is the data folder.
func (ks *Keyspace) Dir() string { return ks.opt.Dir }

// Backup writes a copy of the data folder that can be opened like any other, while reading and
// writing go on: the state of one moment during the call, with all that was committed before it.
// path must not exist; its folder must. A backup that fails leaves nothing under that name.
//
// The stores stand still while no checkpoint is made. Their state is not that of one moment, since
// the last checkpoint captured one partition after the other. But the journal that was begun before
// it holds all that has happened since, so the stores and that journal up to any commit are a
// consistent whole: the same that makes a crash during a checkpoint harmless.
func (ks *Keyspace) Backup(path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("a backup goes into a new folder, and %s exists: %w", path, os.ErrExist)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	part := path + ".part"
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err := ks.copyTo(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return fsyncDir(filepath.Dir(path))
}

func (ks *Keyspace) copyTo(dir string) error {
	ks.fold.mu.Lock()
	defer ks.fold.mu.Unlock()
	if err := ks.checkpointLocked(); err != nil {
		return err
	}
	names := []string{formatName}
	for _, s := range ks.stores() {
		names = append(names, filepath.Base(s.path()))
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(ks.opt.Dir, name), filepath.Join(dir, name), -1); err != nil {
			return err
		}
	}
	if err := ks.journal.copyTo(dir); err != nil {
		return err
	}
	return fsyncDir(dir)
}

// copyTo copies the journal's files as they stand after the last commit. No other goroutine may
// rotate meanwhile.
func (j *journal) copyTo(dir string) error {
	if err := j.commitAll(); err != nil {
		return err
	}
	end := j.end.Load() // of the newest; what is appended after this is not part of the backup
	files, err := journalFiles(j.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		size := f.size
		if f.generation == j.generation {
			size = end
		}
		if err := copyFile(f.path, filepath.Join(dir, filepath.Base(f.path)), size); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies the first size bytes of a file, or all if size is negative, and forces the copy to
// disk.
func copyFile(from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := createNew(to)
	if err != nil {
		return err
	}
	if size < 0 {
		_, err = io.Copy(out, in)
	} else {
		_, err = io.CopyN(out, in, size)
	}
	return errors.Join(err, out.Sync(), out.Close())
}
