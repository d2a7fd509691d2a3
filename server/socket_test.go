package server

import (
	"net"
	"testing"
)

// A goroutine that shuts a connection down may hold locks that the connection waits for.
func TestShutDownDoesNotWait(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer closeListeners([]net.Listener{ln})
	client := dial(t, ln.Addr().String())
	nc, err := ln.Accept()
	must(t, err)
	defer nc.Close()
	s := newSocket(nc, testTimeout, new(traffic))

	reading, lock, read := make(chan struct{}), make(chan struct{}), make(chan error)
	client.send("PING\r\n")
	go func() {
		read <- s.raw.raw.Read(func(uintptr) bool {
			close(reading)
			<-lock
			return true
		})
	}()
	<-reading
	s.shutDown()
	client.expectEnd()
	close(lock)
	must(t, <-read)
}
