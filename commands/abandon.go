package commands

import (
	"time"

	"mayfly/expiry/clock"
)

// Commands that may run for long end when their reply has no receiver: the client has left, or the
// server stops. They ask [watch.abandoned] as they go. It also lets others have their turn.

// abandonInterval is the time for which a command runs before it looks whether it is abandoned, and between
// two looks. A look costs a system call.
const abandonInterval = 100 * time.Millisecond

// workOfCall is the work of a step besides that on its bytes.
const workOfCall = 100

// workToLook is the work after which to look at the clock.
const workToLook = 16 << 10

// watch looks from time to time whether the running command of a session is abandoned.
type watch struct {
	x    *Context
	work int           // bytes since the clock was read
	next time.Duration // of the monotonic clock: when to look

	locked bool // the command holds locks while it asks: only inPieces looks, between two pieces
}

// watchClient starts the watch of a command that may run for long.
func (x *Context) watchClient() watch {
	w := watch{x: x}
	if x.Session != nil && x.Session.Abandoned != nil {
		w.next = clock.Monotonic() + x.Session.abandonInterval
	}
	return w
}

// abandoned reports whether to end the command, after work on that many more bytes. If so, the connection
// ends, too, and none of its commands runs any more.
func (w *watch) abandoned(work int) bool {
	if w.x.queued {
		if w.x.work += int64(work + workOfCall); w.x.work > w.x.mostWork {
			return true // EXEC gives up
		}
	}
	if w.x.abandoned || w.locked || w.x.Session == nil || w.x.Session.Abandoned == nil {
		return w.x.abandoned
	}
	if w.work += work + workOfCall; w.work < workToLook {
		return false
	}
	w.work = 0
	now := clock.Monotonic()
	if now < w.next {
		return false
	}
	if w.x.Session.Yield != nil && !w.x.queued { // a transaction holds locks
		w.x.Session.Yield()
	}
	w.next = clock.Monotonic() + w.x.Session.abandonInterval
	w.x.abandoned = w.x.Session.Abandoned()
	return w.x.abandoned
}
