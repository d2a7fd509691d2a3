package keyspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unfinishedName is the first file of a folder that is being made and the last to leave it. While it
// is there the folder is not a whole one: no server starts on it. Whoever makes the folder holds its
// lock.
const unfinishedName = "UNFINISHED"

// making is a folder that is being filled: a backup, or what a repair copies. It is path.part until all
// of it is on disk and becomes path then, so that under that name there is a whole folder or none,
// whatever interrupts the making.
type making struct {
	path, part string
	lock       *os.File // of unfinishedName
}

// beginFolder begins to make a folder, which must not exist. What an earlier attempt, ended by a crash,
// has left in its place is cleared away; what somebody else has put there is refused, and stays.
func beginFolder(path string) (_ *making, err error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("it goes into a new folder, and %s exists: %w", path, os.ErrExist)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	m := &making{path: path, part: path + ".part"}
	err = os.Mkdir(m.part, 0o700)
	if left := errors.Is(err, os.ErrExist); err != nil && !left {
		return nil, err
	} else if left {
		if err := m.judge(); err != nil {
			return nil, err
		}
	}
	if m.lock, err = lockFile(filepath.Join(m.part, unfinishedName)); err != nil {
		return nil, fmt.Errorf("%s: %w", m.part, err)
	}
	if err = m.clear(); err == nil {
		err = fsyncDir(m.part) // else a power cut could leave the rest of the folder without the mark
	}
	if err != nil {
		m.lock.Close()
		return nil, err
	}
	return m, nil
}

// judge refuses a folder under our name in which anything is that no unfinished folder of ours holds.
func (m *making) judge() error {
	entries, err := os.ReadDir(m.part)
	if err != nil {
		return err
	}
	marked := false
	for _, e := range entries {
		marked = marked || e.Name() == unfinishedName
		if !ours(e) {
			return fmt.Errorf("%s is in the way: it holds %q, which was not made here; move it or remove it", m.part, e.Name())
		}
	}
	if len(entries) > 0 && !marked {
		return fmt.Errorf("%s is in the way: it has no file %q and may be a whole data folder; move it or remove it", m.part, unfinishedName)
	}
	return nil
}

// ours tells whether a file may be part of a folder that is being made.
func ours(e fs.DirEntry) bool {
	name := e.Name()
	switch name {
	case unfinishedName, lockName, formatName, formatName + ".tmp":
		return e.Type().IsRegular()
	}
	known := strings.HasSuffix(name, ".db") || strings.Contains(name, ".db.") || strings.HasPrefix(name, "repair-")
	return known && e.Type().IsRegular()
}

// clear removes all that is in the folder but its mark, whose lock is held, after judging once more: this
// time nobody else is at it.
func (m *making) clear() error {
	if err := m.judge(); err != nil {
		return err
	}
	entries, err := os.ReadDir(m.part)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == unfinishedName {
			continue
		}
		if err := os.Remove(filepath.Join(m.part, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// finish gives the folder its name. All its files have been forced to disk.
func (m *making) finish() error {
	mark := filepath.Join(m.part, unfinishedName)
	if err := fsyncDir(m.part); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(mark), fsyncDir(m.part)); err != nil {
		return err
	}
	if err := os.Rename(m.part, m.path); err != nil {
		return err
	}
	return fsyncDir(filepath.Dir(m.path))
}

// end lets go of the folder. Unless err is nil all of what has been made is removed.
func (m *making) end(err error) error {
	if err != nil {
		err = errors.Join(err, os.RemoveAll(m.part))
	}
	return errors.Join(err, m.lock.Close())
}

// refuseUnfinished is the error if a folder is one that is being made, or was when a crash came.
func refuseUnfinished(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, unfinishedName)); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("data folder %s is a backup or a repair that did not come to its end (it has a file %q): make it again", dir, unfinishedName)
}
