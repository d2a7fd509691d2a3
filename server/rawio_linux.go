//go:build !race

package server

import (
	"syscall"
	"unsafe"
)

// readNow and WriteNow do not wait, so they need not tell Go's scheduler of the system call. That would cost
// more than the shortest of these calls.

// readNow reads what is there. The error is syscall.EAGAIN if nothing is.
func readNow(fd int, p []byte) (int, error) { return rawIO(syscall.SYS_READ, fd, p) }

// writeNow writes what the client takes without waiting and returns how much that was.
func writeNow(fd int, p []byte) (int, error) {
	n, err := rawIO(syscall.SYS_WRITE, fd, p)
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return n, err
}

func rawIO(call uintptr, fd int, p []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, err
	}
}
