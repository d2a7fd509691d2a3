package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// markName is the first file of a staging folder and the last to be removed. A server refuses a folder that
// has it. The process that fills the folder holds its lock.
const markName = "UNFINISHED"

// Staging is a folder that is being filled: a backup or a repair. Its name is path.part until all of it is on
// disk, and path then.
type Staging struct {
	fs         vfs.FS
	path, part string
	lock       vfs.File // of the mark
}

// NewStaging makes a staging folder for path, which must not exist. It removes the remains of an attempt that
// a crash ended, and refuses to remove anything else.
func NewStaging(fsys vfs.FS, path string) (_ *Staging, err error) {
	if _, err := fsys.Lstat(path); err == nil {
		return nil, &ExistsError{path}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &Staging{fs: fsys, path: path, part: path + ".part"}
	err = fsys.Mkdir(s.part, 0o700)
	if left := errors.Is(err, fs.ErrExist); err != nil && !left {
		return nil, err
	} else if left {
		if err := errors.Join(s.refuseOthers(), s.refuseForeign()); err != nil {
			return nil, err
		}
	}
	if s.lock, err = lockFile(fsys, filepath.Join(s.part, markName)); err != nil {
		return nil, &InTheWayError{s.part, err.Error()}
	}
	if err = s.clear(); err == nil {
		err = vfs.SyncDir(s.fs, s.part) // no power cut leaves the other files without the mark
	}
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

// Dir returns the path of the folder while it is being filled.
func (s *Staging) Dir() string { return s.part }

// CreateDir makes a data folder in the staging folder.
func (s *Staging) CreateDir(partitions int) (*Dir, error) {
	return open(s.fs, s.part, partitions, zerolog.Nop())
}

// InTheWayError is the error for something at the path of a staging folder that this process must not take
// over.
type InTheWayError struct{ Path, Reason string }

func (e *InTheWayError) Error() string {
	return fmt.Sprintf("%s is in the way: it %s", e.Path, e.Reason)
}

// ExistsError is the error of [NewStaging] for a path that exists: nothing was tried. It wraps [fs.ErrExist].
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string { return e.Path + " exists" }

func (e *ExistsError) Unwrap() error { return fs.ErrExist }

// refuseOthers returns an error for what waits at the path if another user may have put it there, or may
// write to it.
func (s *Staging) refuseOthers() error {
	fi, err := s.fs.Lstat(s.part)
	if err != nil {
		return err
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return &InTheWayError{s.part, "is a symbolic link"}
	case !fi.IsDir():
		return &InTheWayError{s.part, "is not a folder"}
	case !ownedByUs(fi):
		return &InTheWayError{s.part, "belongs to another user"}
	case writableByOthers(fi):
		return &InTheWayError{s.part, fmt.Sprintf("has mode %04o, so that other users may write to it", fi.Mode().Perm())}
	}
	return nil
}

// refuseForeign returns an error if the folder has files that no staging folder has.
func (s *Staging) refuseForeign() error {
	entries, err := s.fs.ReadDir(s.part)
	if err != nil {
		return err
	}
	marked := false
	for _, e := range entries {
		marked = marked || e.Name() == markName
		if !ours(e) {
			return &InTheWayError{s.part, fmt.Sprintf("holds %q, which was not made here", e.Name())}
		}
	}
	if len(entries) > 0 && !marked {
		return &InTheWayError{s.part, fmt.Sprintf("has no file %q and may be a whole data folder", markName)}
	}
	return nil
}

// ours reports whether a file may be part of a staging folder.
func ours(e fs.DirEntry) bool {
	name := e.Name()
	switch name {
	case markName, lockName, FormatName, FormatName + ".tmp", ManifestName, ManifestName + ".tmp":
		return e.Type().IsRegular()
	}
	known := strings.HasSuffix(name, ".db") || strings.Contains(name, ".db.") || strings.HasPrefix(name, RepairPrefix)
	return known && e.Type().IsRegular()
}

// clear removes everything in the folder but its mark, whose lock is held. It checks the files once more: now
// no other process writes any.
func (s *Staging) clear() error {
	if err := s.refuseForeign(); err != nil {
		return err
	}
	entries, err := s.fs.ReadDir(s.part)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markName {
			continue
		}
		if err := s.fs.Remove(filepath.Join(s.part, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Finish renames the folder to its final name. All its files must be on disk.
func (s *Staging) Finish() error {
	mark := filepath.Join(s.part, markName)
	if err := vfs.SyncDir(s.fs, s.part); err != nil {
		return err
	}
	if err := errors.Join(s.fs.Remove(mark), vfs.SyncDir(s.fs, s.part)); err != nil {
		return err
	}
	if err := s.fs.Rename(s.part, s.path); err != nil {
		return err
	}
	return vfs.SyncDir(s.fs, filepath.Dir(s.path))
}

// Close releases the folder. Unless err is nil it removes the folder first.
func (s *Staging) Close(err error) error {
	if err != nil {
		err = errors.Join(err, s.fs.RemoveAll(s.part))
	}
	return errors.Join(err, s.lock.Close())
}

// RefuseStaging returns an error if a folder is a staging folder, or the remains of one.
func RefuseStaging(fsys vfs.FS, dir string) error {
	if _, err := fsys.Lstat(filepath.Join(dir, markName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return &UnfinishedError{dir}
}

// UnfinishedError is the error for a staging folder that is to be used as a data folder.
type UnfinishedError struct{ Dir string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("data folder %s is an unfinished backup or repair (it has a file %q)", e.Dir, markName)
}
