//go:build !linux

package descriptor

import "syscall"

// HungUp reports whether the other side of a connection sends no more. While bytes of it are unread it sees
// only a reset.
func HungUp(fd int) bool {
	var next [1]byte
	n, err := uninterrupted(func(fd int, p []byte) (int, error) {
		n, _, err := syscall.Recvfrom(fd, p, syscall.MSG_PEEK)
		return n, err
	}, fd, next[:])
	return err == nil && n == 0 || err != nil && err != syscall.EAGAIN
}

// HasReset sees nothing: the next reply meets the reset.
func HasReset(int) bool { return false }
