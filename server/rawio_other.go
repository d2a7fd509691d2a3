//go:build !linux || race

package server

import "syscall"

// Package syscall tells the race detector that a write comes before the read of its bytes.

// readNow reads what is there. The error is syscall.EAGAIN if nothing is.
func readNow(fd int, p []byte) (int, error) { return uninterrupted(syscall.Read, fd, p) }

// writeNow writes what the client takes without waiting and returns how much that was.
func writeNow(fd int, p []byte) (int, error) {
	n, err := uninterrupted(syscall.Write, fd, p)
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return n, err
}

// uninterrupted repeats a system call that a signal interrupted.
func uninterrupted(call func(int, []byte) (int, error), fd int, p []byte) (int, error) {
	for {
		n, err := call(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
