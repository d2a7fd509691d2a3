package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes room for the first bytes of a file, which may then read as zeros.
func allocate(f *os.File, bytes int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = unix.Fallocate(int(fd), 0, 0, bytes)
		}
	})
	if errors.Is(failed, unix.EOPNOTSUPP) {
		return allocateZeros(f, bytes)
	}
	return errors.Join(err, failed)
}
