package expiry

import (
	"sync"
	"time"
)

// Runner runs the cycles of a purge in the background: a slow one each [Interval], fast ones between them
// while items die, and the samples of pools whose timers are due.
type Runner struct {
	purge *Purge
	stop  chan struct{}
	done  sync.WaitGroup

	// What follows is used by the goroutine only.
	slowAt time.Duration // when the next slow cycle is due
	fastAt time.Duration // when the next fast cycle is due
	state  State         // as the last slow or fast cycle left it
}

// NewRunner returns a runner that is not started.
func NewRunner(p *Purge) *Runner {
	return &Runner{purge: p, stop: make(chan struct{})}
}

// Start starts the goroutine. It is called at most once.
func (r *Runner) Start() {
	r.done.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-r.purge.timers.ring:
			case <-timer.C:
			}
			timer.Reset(r.step())
		}
	})
}

// Stop ends the goroutine and waits for its end. It is called at most once, whether the runner is started or
// not.
func (r *Runner) Stop() {
	close(r.stop)
	r.done.Wait()
}

// step runs the cycle that is due and returns the time until the next. An earlier timer rings.
func (r *Runner) step() (wait time.Duration) {
	p := r.purge
	p.timers.awake()
	pause := time.Duration(0)
	switch now := p.mono(); {
	case now >= r.slowAt:
		r.slowAt = now + Interval
		r.planFast(p.Slow())
	case now >= r.fastAt || r.state != Pressed && p.unseen.Load() > 0:
		r.planFast(p.Fast())
	case !p.Timed():
		pause = rest
	}
	return p.timers.sleep(p.clock.Micros(), max(min(r.slowAt, r.fastAt)-p.mono(), 0), pause)
}

// planFast sets the time of the next fast cycle after one that has left a state.
func (r *Runner) planFast(state State) {
	pace := paceOf(r.purge.Effort())
	pause := Interval // the slow cycle comes first
	r.state = state
	switch state {
	case Busy:
		pause = pace.pause
	case Pressed:
		pause = min(pace.pause, pace.fast)
	}
	r.fastAt = r.purge.mono() + pause
}
