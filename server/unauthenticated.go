package server

import (
	"container/list"
	"errors"
	"time"

	"mayfly/expiry/clock"
)

// Clients that have not given the password must not keep out those that have it. Each has auth-timeout for
// it. When there are maxclients, the one that has waited the longest makes room for the next client.

var errAuthTimeout = errors.New("gave no password in time")

// mostLeaving is the number of clients at most that make room and still have a descriptor.
const mostLeaving = 32

// unauthenticated reports whether the client must give the password first.
func (c *conn) unauthenticated() bool {
	return !c.session.Authenticated.Load() && c.server.Users().Table().NeedsLogin()
}

// authDeadline returns when the client must have given the password, as clock.Monotonic says; 0: it need
// not. Only the goroutine that serves the connection may call it.
func (c *conn) authDeadline() time.Duration {
	timeout := time.Duration(c.server.authTimeout.Load())
	if timeout == 0 || !c.unauthenticated() {
		if c.asked != 0 {
			c.asked = 0
		}
		return 0
	}
	if c.asked == 0 {
		c.asked = clock.Monotonic()
	}
	return c.asked + timeout
}

// limitAuth shortens the time for which to wait for the client, 0 for no limit, to what it has left to give
// the password. The error is errAuthTimeout.
func (c *conn) limitAuth(limit time.Duration) (time.Duration, error) {
	deadline := c.authDeadline()
	if deadline == 0 {
		return limit, nil
	}
	left := deadline - clock.Monotonic()
	switch {
	case left <= 0:
		return 0, errAuthTimeout
	case limit == 0 || left < limit:
		return left, nil
	}
	return limit, nil
}

// authTimedOut reports whether the client has used up the time to give the password.
func (c *conn) authTimedOut() bool {
	deadline := c.authDeadline()
	return deadline > 0 && deadline <= clock.Monotonic()
}

// waitingClients are connections in the order in which they were accepted, that had to give a password. Some
// may have done so. The server's mutex protects it.
type waitingClients struct {
	order   list.List
	leaving int // clients that make room and are not gone
}

// addLocked adds a connection.
func (w *waitingClients) addLocked(c *conn) { c.waiting = w.order.PushBack(c) }

// removeLocked removes a connection that ends.
func (w *waitingClients) removeLocked(c *conn) {
	if c.waiting != nil {
		w.order.Remove(c.waiting)
		c.waiting = nil
	}
	if c.madeRoom {
		c.madeRoom = false
		w.leaving--
	}
}

// makeRoomLocked disconnects the client that has waited the longest with its password, and returns it; nil if
// there is none.
func (w *waitingClients) makeRoomLocked() *conn {
	for w.leaving < mostLeaving && w.order.Len() > 0 {
		c := w.order.Remove(w.order.Front()).(*conn)
		c.waiting = nil
		if c.killed.Load() || !c.unauthenticated() {
			continue
		}
		c.madeRoom = true
		w.leaving++
		c.kill()
		return c
	}
	return nil
}
