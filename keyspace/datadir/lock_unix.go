//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lockFile takes the lock that keeps other processes out of a data folder, until the file is closed or the process
// ends. It writes the process id into the file.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock(f, syscall.LOCK_EX); err == nil {
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
func lockShared(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_SH); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockFolder takes a lock on a folder itself, which unlike a lock file cannot be removed. lockPath is the file that
// names the process which has it.
func lockFolder(path, lockPath string, shared bool) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := os.ReadFile(lockPath)
		f.Close()
		return nil, inUse(pid)
	}
	return f, nil // some network file systems cannot lock folders; the lock file is left there
}

// flock takes a lock. The error names the process that has it.
func flock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		err = inUse(pid)
	}
	return err
}

func inUse(pid []byte) error {
	if len(pid) == 0 {
		return errors.New("is in use by another process")
	}
	return fmt.Errorf("is in use by another process (pid %s)", strings.TrimSpace(string(pid)))
}
