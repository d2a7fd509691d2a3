package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// poller waits until there is something to read from one of many descriptors (epoll), or until it is woken.
// Go's network poller does not know of these. One goroutine uses a poller; Wake is for any.
type poller struct {
	epoll, wake int // wake is an eventfd
	events      [256]unix.EpollEvent
}

// newPoller makes a poller without descriptors.
func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{epoll: epoll}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		if err = p.Add(p.wake); err == nil {
			return p, nil
		}
		_ = unix.Close(p.wake) // never used
	}
	_ = unix.Close(epoll) // never used
	return nil, os.NewSyscallError("eventfd", err)
}

// Add adds a descriptor to those that Wait reports when there is something to read.
func (p *poller) Add(fd int) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// Remove removes a descriptor if it was added.
func (p *poller) Remove(fd int) { _ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) }

// Wait waits for some ms, -1 for any time, and returns the events, perhaps none. The slice is
// valid until the next Wait.
func (p *poller) Wait(timeout int) []unix.EpollEvent {
	n, err := unix.EpollWait(p.epoll, p.events[:], timeout)
	if err != nil && err != unix.EINTR {
		panic(os.NewSyscallError("epoll_wait", err)) // only for mistakes of ours
	}
	return p.events[:max(n, 0)]
}

// Wake makes Wait return, with an event for which IsWake is true, until Reset.
func (p *poller) Wake() {
	one := [8]byte{7: 1}              // not 0 in either byte order
	_, _ = unix.Write(p.wake, one[:]) // fails only if very many wakes are pending
}

// IsWake reports whether the descriptor of an event means that the poller was woken.
func (p *poller) IsWake(fd int) bool { return fd == p.wake }

// Reset forgets that the poller was woken.
func (p *poller) Reset() {
	var count [8]byte
	_, _ = unix.Read(p.wake, count[:])
}

// Close frees what the system holds. It comes after the last use, Wake included.
func (p *poller) Close() {
	_ = unix.Close(p.wake)  // not used any more
	_ = unix.Close(p.epoll) // likewise
}
