package undo

import "sync/atomic"

const (
	// MaxWindow is the longest window in seconds: 7 days.
	MaxWindow = 604800
	// AutoWindow is the window in seconds of a horizon that nobody has set.
	AutoWindow = 300
)

// Horizon bounds the moments at which windows are open. The zero value opens none. Safe for concurrent use.
type Horizon struct {
	window atomic.Int64 // seconds in which a change can be taken back; 0: it cannot
	auto   atomic.Bool  // see SetAuto
	until  atomic.Int64 // ms; no window is open from then on
}

// SetWindow sets the time in seconds in which changes to come can be taken back; 0: they cannot.
func (h *Horizon) SetWindow(seconds int64) {
	h.auto.Store(false)
	h.window.Store(seconds)
}

// SetAuto sets the window to AutoWindow, but for changes that are to free room, and for those of empty
// containers, whose new items should not outlive the new rule.
func (h *Horizon) SetAuto() {
	h.auto.Store(true)
	h.window.Store(AutoWindow)
}

// Opens reports whether a change can be taken back. frees says that it is to free room, as a flush is, and
// all are on a full disk; empty that its container is.
func (h *Horizon) Opens(frees, empty bool) bool {
	return h.window.Load() > 0 && !(h.auto.Load() && (frees || empty))
}

// Window returns what SetWindow or SetAuto has set.
func (h *Horizon) Window() int64 { return h.window.Load() }

// End returns the end of the window of a change at a moment, both in ms.
func (h *Horizon) End(now int64) (until int64) { return now + 1000*h.window.Load() }

// Extend notes that a window is open until a moment in ms. Calls follow one another.
func (h *Horizon) Extend(until int64) {
	if until > h.until.Load() {
		h.until.Store(until)
	}
}

// Any reports whether a window has been open since all were closed, so that containers may be set aside.
func (h *Horizon) Any() bool { return h.until.Load() != 0 }

// Open reports whether a window may be open at a moment in ms. If not, none is.
func (h *Horizon) Open(now int64) bool { return h.until.Load() > now }

// Close notes that all windows have ended.
func (h *Horizon) Close() { h.until.Store(0) }
