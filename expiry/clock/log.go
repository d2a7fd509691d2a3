package clock

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// The clock follows the wall clock forward only, so a step forward stays after it was corrected. Both are
// logged beyond these.
const (
	loggedStep  = 10 * time.Second // forward, between two looks
	loggedAhead = 5 * time.Second  // of the wall clock
)

// Log logs when the wall clock was set. The zero value logs nothing until [Log.Begin]. Safe for concurrent
// use.
type Log struct {
	mu    sync.Mutex // protects what follows
	watch *Watch     // nil if the clock does not follow a wall clock
	ahead bool       // that the clock is ahead was logged
}

// Begin begins to watch the wall clock of a clock.
func (l *Log) Begin(c *System) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = c.Watch()
}

// Look logs how the wall clock was set since the last call.
func (l *Log) Look(log *zerolog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == nil {
		return
	}
	forward, ahead := l.watch.Look()
	if forward >= loggedStep {
		log.Warn().Dur("forward_ms", forward).
			Msg("the wall clock went forward: it was set, or the machine slept; everything has aged by as much")
	}
	switch {
	case ahead >= loggedAhead && !l.ahead:
		l.ahead = true
		log.Warn().Dur("ahead_ms", ahead).
			Msg("the time of the data is ahead of the wall clock, which was set back: it goes on from there, and does not go back")
	case ahead < loggedAhead && l.ahead:
		l.ahead = false
		log.Info().Msg("the wall clock has reached the time of the data")
	}
}
