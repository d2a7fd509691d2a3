//go:build !linux

package server

import "syscall"

// hungUp reports whether the other side of a connection sends no more. While bytes of it are unread it sees
// only a reset.
func hungUp(fd int) bool {
	var next [1]byte
	n, err := uninterrupted(func(fd int, p []byte) (int, error) {
		n, _, err := syscall.Recvfrom(fd, p, syscall.MSG_PEEK)
		return n, err
	}, fd, next[:])
	return err == nil && n == 0 || err != nil && err != syscall.EAGAIN
}

// hasReset sees nothing: the next reply meets the reset.
func hasReset(int) bool { return false }
