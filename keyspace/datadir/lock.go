package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mayfly/vfs"
)

// Lock keeps other processes out of a data folder until it is closed.
type Lock struct{ folder, file vfs.File } // file is nil in a folder without one

// Close ends the lock.
func (l *Lock) Close() error {
	err := l.folder.Close()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// lock locks a folder and the file in it. The file alone could be removed while a server runs, and another
// one would get in; the folder alone names no process, and not every file system can lock one.
func lock(fsys vfs.FS, dir string, shared bool) (_ *Lock, err error) {
	l, path := &Lock{}, filepath.Join(dir, lockName)
	if l.folder, err = lockFolder(fsys, dir, path, shared); err == nil {
		if shared {
			l.file, err = lockShared(fsys, path)
		} else {
			l.file, err = lockFile(fsys, path)
		}
		if err != nil {
			l.folder.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	return l, nil
}

// LockExclusive keeps other processes out of a folder whose files are moved while no server has it open.
func LockExclusive(fsys vfs.FS, dir string) (*Lock, error) { return lock(fsys, dir, false) }

// LockShared keeps servers out of a folder that is only read; others may read it too. It writes nothing.
func LockShared(fsys vfs.FS, dir string) (*Lock, error) { return lock(fsys, dir, true) }

// lockFile takes the lock that keeps other processes out of a data folder, until the file is closed or the
// process ends. It writes the process id into the file.
func lockFile(fsys vfs.FS, path string) (vfs.File, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|vfs.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err = named(f.Lock(false), f); err == nil {
		pid := fmt.Appendf(nil, "%d\n", os.Getpid())
		if err = f.Truncate(int64(len(pid))); err == nil {
			_, err = f.WriteAt(pid, 0)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockShared takes a lock that others may share. Without a file it returns nil.
func lockShared(fsys vfs.FS, path string) (vfs.File, error) {
	f, err := fsys.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := named(f.Lock(true), f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockFolder takes a lock on a folder itself, which unlike a lock file cannot be removed. lockPath is the
// file that names the process which has it.
func lockFolder(fsys vfs.FS, path, lockPath string, shared bool) (vfs.File, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	switch err := f.Lock(shared); {
	case errors.Is(err, vfs.ErrLocked):
		f.Close()
		pid, _ := vfs.ReadFile(fsys, lockPath)
		return nil, inUse(pid)
	case errors.Is(err, vfs.ErrNoLocks): // without one, two processes could destroy the folder
		f.Close()
		return nil, err
	}
	return f, nil // some network file systems cannot lock folders; the lock file is left there
}

// named returns the error of a lock. It names the process that has the lock on the file.
func named(err error, f vfs.File) error {
	if !errors.Is(err, vfs.ErrLocked) {
		return err
	}
	pid := make([]byte, 20)
	n, _ := f.ReadAt(pid, 0)
	return inUse(pid[:n])
}

func inUse(pid []byte) error {
	if len(pid) == 0 {
		return errors.New("in use by another process")
	}
	return fmt.Errorf("in use by another process (pid %s)", strings.TrimSpace(string(pid)))
}
