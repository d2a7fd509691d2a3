package aof

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync forces to disk what is in a file and what is needed to read it, such as its size, but not when
// it was changed.
func fdatasync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = unix.Fdatasync(int(fd))
		}
	})
	return errors.Join(err, os.NewSyscallError("fdatasync", failed))
}
