package server

import "golang.org/x/sys/unix"

// hungUp reports whether the other side of a connection sends no more, even if bytes of it are unread.
func hungUp(fd int) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(poll[:], 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// hasReset reports whether the other side has reset a connection: it takes no replies any more. One that only
// sends no more may take them.
func hasReset(fd int) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(poll[:], 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}
