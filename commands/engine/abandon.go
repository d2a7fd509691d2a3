package engine

import (
	"time"

	"mayfly/expiry/clock"
)

// Commands that may run for long end when their reply has no receiver: the client has left, or the
// server stops. They ask [watch.abandoned] as they go. It also lets others have their turn.

// AbandonInterval is the time for which a command runs before it looks whether it is abandoned, and between
// two looks. A look costs a system call.
const abandonInterval = 100 * time.Millisecond

// WorkOfCall is the work of a step besides that on its bytes.
const WorkOfCall = 100

// workToLook is the work after which to look at the clock.
const workToLook = 16 << 10

// Watch looks from time to time whether the running command of a session is abandoned.
type Watch struct {
	X    *Context
	work int           // bytes since the clock was read
	next time.Duration // of the monotonic clock: when to look

	Locked bool // the command holds locks while it asks: only InPieces looks, between two pieces
}

// WatchClient starts the watch of a command that may run for long.
func (x *Context) WatchClient() Watch {
	w := Watch{X: x}
	if x.Session != nil && x.Session.Abandoned != nil {
		w.next = clock.Monotonic() + x.Session.AbandonInterval
	}
	return w
}

// Abandoned reports whether to end the command, after work on that many more bytes. If so, the connection
// ends, too, and none of its commands runs any more.
func (w *Watch) Abandoned(work int) bool {
	if w.X.Queued {
		if w.X.Work += int64(work + WorkOfCall); w.X.Work > w.X.mostWork {
			return true // EXEC gives up
		}
	}
	if w.X.Abandoned || w.Locked || w.X.Session == nil || w.X.Session.Abandoned == nil {
		return w.X.Abandoned
	}
	if w.work += work + WorkOfCall; w.work < workToLook {
		return false
	}
	w.work = 0
	now := clock.Monotonic()
	if now < w.next {
		return false
	}
	if w.X.Session.Yield != nil && !w.X.Queued { // a transaction holds locks
		w.X.Session.Yield()
	}
	w.next = clock.Monotonic() + w.X.Session.AbandonInterval
	w.X.Abandoned = w.X.Session.Abandoned()
	return w.X.Abandoned
}
