package server

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/expiry/clock"
	"mayfly/server/resp"
)

// past is a deadline that has passed. It ends a wait for a client.
var past = time.Unix(1, 0)

// traffic counts the bytes of all connections. Safe for concurrent use.
type traffic struct{ in, out atomic.Int64 }

// A socket is the byte stream of one connection, plain or TLS. One goroutine reads and writes;
// others may interrupt it.
type socket struct {
	net.Conn
	raw          *rawSocket // nil for TLS
	writeTimeout time.Duration
	traffic      *traffic
}

func newSocket(nc net.Conn, writeTimeout time.Duration, t *traffic) socket {
	return socket{Conn: nc, raw: newRawSocket(nc), writeTimeout: writeTimeout, traffic: t}
}

// fill waits until the client has sent something and reads it into the guard. That takes one system call if
// it is already there. fill returns the number of bytes. The error is io.EOF if the client sends no more,
// resp.ErrClientMemory if there is no memory to read into.
func (s *socket) fill(g *resp.Guard) (n int, err error) {
	if s.raw != nil {
		n, err = s.raw.read(g)
	} else {
		var room []byte
		if room, err = g.Room(); err == nil {
			n, err = s.Read(room)
			g.Filled(n)
		}
	}
	s.traffic.in.Add(int64(n))
	return n, err
}

// readWithin limits the time of reading from now on; 0 is no limit.
func (s *socket) readWithin(limit time.Duration) error {
	if limit == 0 {
		return s.SetReadDeadline(time.Time{})
	}
	return s.SetReadDeadline(clock.Deadline(limit))
}

// send writes all of p, with one system call if the client keeps up. The error is a timeout if the client
// does not take a part of p within writeTimeout.
func (s *socket) send(p []byte) error {
	s.traffic.out.Add(int64(len(p)))
	if s.raw != nil {
		n, err := s.raw.write(p)
		if err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
	if err := s.SetWriteDeadline(clock.Deadline(s.writeTimeout)); err != nil {
		return err
	}
	if _, err := s.Write(p); err != nil {
		return err
	}
	return s.SetWriteDeadline(time.Time{})
}

// shutDown ends the connection at once. The goroutine that reads or writes sees the end and closes it. Any
// goroutine may call it, whatever locks it holds. Closing here would wait for reads and writes, which may
// wait for one of those locks.
func (s *socket) shutDown() {
	raw, err := rawConn(s.Conn) // TLS itself would wait for the client
	if err == errors.ErrUnsupported {
		_ = s.Conn.Close() // the connection is gone, whatever it returns
		return
	}
	if err == nil {
		_ = raw.Control(func(fd uintptr) { shutDown(int(fd)) }) // fails if the connection is closed
	}
}

// shutDown ends the connection of a descriptor without closing it.
func shutDown(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_RDWR) } // fails if the client has gone

// shutDownWrites tells the other side that nothing more comes, without waiting for writes under way. A
// connection within this process cannot: its other side stops by itself.
func shutDownWrites(nc net.Conn) {
	if raw, err := rawConn(nc); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_WR) }) // fails if it is gone
	}
}

// lingerClose ends the connection from our side so that the last reply arrives. Closing a socket with unread
// bytes of the client would reset the connection and might destroy the reply.
func (s *socket) lingerClose() {
	const timeout, most = time.Second, 1 << 20
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || s.readWithin(timeout) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, s.Conn, most) // the connection is over, whatever it returns
}

// ended reports whether the client sends no more, without waiting or reading. Redis ends a connection then,
// also if the client has closed only its half.
func (s *socket) ended() bool {
	return s.ask(hungUp)
}

// isReset reports whether the client takes no replies any more, as far as the system knows.
func (s *socket) isReset() bool { return s.ask(hasReset) }

// hasUnread reports whether bytes of the client, or its end, have arrived and were not read.
func hasUnread(fd int) bool {
	var next [1]byte
	_, _, err := syscall.Recvfrom(fd, next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == nil
}

// ask returns what a question about the descriptor yields, true if the connection is closed.
func (s *socket) ask(question func(fd int) bool) bool {
	raw, err := rawConn(s.Conn)
	if err != nil {
		return false // the end is seen by reading
	}
	answer := false
	err = raw.Control(func(fd uintptr) { answer = question(int(fd)) })
	return answer || err != nil
}

// rawConn returns the descriptor of a connection, plain or TLS.
func rawConn(nc net.Conn) (syscall.RawConn, error) {
	for {
		above, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		nc = above.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}

// rawSocket reads and writes the file descriptor itself, where net.Conn would cost something on every call.
// It takes memory to read into only when there is something to read, so an idle connection holds none.
// A write deadline is set only if the client does not take a reply at once.
type rawSocket struct {
	raw syscall.RawConn

	// Arguments and results of the call under way. The callbacks are made once, because a closure for each
	// call would be an allocation.
	readable, writable func(fd uintptr) bool
	guard              *resp.Guard
	rest               []byte
	n                  int
	err                error
}

// newRawSocket returns nil if the connection is not a plain socket.
func newRawSocket(nc net.Conn) *rawSocket {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &rawSocket{raw: raw}
	s.readable, s.writable = s.tryRead, s.tryWrite
	return s
}

func (s *rawSocket) read(g *resp.Guard) (int, error) {
	s.guard, s.n, s.err = g, 0, nil
	if err := s.raw.Read(s.readable); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// tryRead reads once and reports whether the call under way is done. If not it is called again when there is
// something to read.
func (s *rawSocket) tryRead(fd uintptr) bool {
	room, err := s.guard.Room()
	if err != nil {
		s.err = err
		return true
	}
	n, err := readNow(int(fd), room)
	switch {
	case err == syscall.EAGAIN:
		s.guard.Release()
		return false
	case err != nil:
		s.err = err
	case n == 0:
		s.err = io.EOF
	default:
		s.n = n
		s.guard.Filled(n)
	}
	return true
}

// write writes what the client takes without waiting and returns how much that was.
func (s *rawSocket) write(p []byte) (int, error) {
	s.rest, s.n, s.err = p, 0, nil
	err := s.raw.Write(s.writable)
	s.rest = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

func (s *rawSocket) tryWrite(fd uintptr) bool {
	s.n, s.err = writeNow(int(fd), s.rest)
	return true
}
