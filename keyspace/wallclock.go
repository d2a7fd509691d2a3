package keyspace

import (
	"sync"
	"time"

	"mayfly/expiry/clock"
)

// The wall clock is followed forward only, so a step forward stays after it was corrected. Both are logged beyond these.
const (
	clockStep  = 10 * time.Second // forward, within a second
	clockAhead = 5 * time.Second  // of the wall clock
)

// clockLog logs what happens to the wall clock.
type clockLog struct {
	mu    sync.Mutex   // protects what follows
	watch *clock.Watch // nil if the clock does not follow a wall clock
	ahead bool         // that the clock is ahead was logged
}

// ClockAhead returns how far the keyspace's time is ahead of the wall clock, which was set back.
func (ks *Keyspace) ClockAhead() time.Duration {
	if c, ok := ks.opt.Clock.(*clock.System); ok {
		return c.Ahead()
	}
	return 0
}

// watchClock logs steps of the wall clock since the last call.
func (ks *Keyspace) watchClock() {
	w := &ks.clockLog
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watch == nil {
		return
	}
	forward, ahead := w.watch.Look()
	if forward >= clockStep {
		ks.opt.Log.Warn().Dur("forward_ms", forward).
			Msg("the wall clock went forward: it was set, or the machine slept; everything has aged by as much")
	}
	switch {
	case ahead >= clockAhead && !w.ahead:
		w.ahead = true
		ks.opt.Log.Warn().Dur("ahead_ms", ahead).
			Msg("the time of the data is ahead of the wall clock, which was set back: it goes on from there, and does not go back")
	case ahead < clockAhead && w.ahead:
		w.ahead = false
		ks.opt.Log.Info().Msg("the wall clock has reached the time of the data")
	}
}
