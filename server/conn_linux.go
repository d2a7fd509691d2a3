package server

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// This file has what a connection does with its descriptor while a loop serves it.

// detach makes the connection one for a loop. A descriptor of its own replaces the net.Conn.
func (c *conn) detach() bool {
	raw := c.socket.raw
	if raw == nil {
		return false
	}
	fd := noFD
	err := raw.raw.Control(func(old uintptr) {
		if dup, err := unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = dup
		}
	})
	if err != nil || fd == noFD {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.socket.Close() // the connection itself stays open
	c.socket = socket{}
	c.fd = fd
	if c.killed.Load() {
		shutDown(fd)
	}
	return true
}

// attach is the opposite of detach.
func (c *conn) attach() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := os.NewFile(uintptr(c.fd), "client")
	c.fd = noFD
	nc, err := net.FileConn(f)
	_ = f.Close() // nc has another descriptor
	if err != nil {
		return err
	}
	keepAlive(nc, c.server.Settings().TCPKeepAlive)
	c.socket = newSocket(nc, c.server.timeouts.write, &c.server.traffic)
	return nil
}

func (c *conn) closeFD() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd != noFD {
		_ = unix.Close(c.fd) // the connection is gone, whatever it returns
		c.fd = noFD
	}
}

// read reads once into the guard, without waiting. The error is io.EOF if the client sends no more, errKilled
// if the connection was killed, or resp.ErrClientMemory.
func (c *conn) read() (int, error) {
	room, err := c.guard.Room()
	if err != nil {
		return 0, err
	}
	c.session.Received() // before it is read, for who asks Session.Unread
	n, err := readNow(c.fd, room)
	switch {
	case err == syscall.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	case c.killed.Load(): // what arrived before can still be read
		return 0, errKilled
	}
	c.guard.Filled(n)
	return n, nil
}
