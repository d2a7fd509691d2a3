package expiry

import (
	"sync"
	"time"
)

// Runner runs the cycles of a purge in the background: a slow one each [Interval], and fast ones between them while
// items die.
type Runner struct {
	purge  *Purge
	stop   chan struct{}
	done   sync.WaitGroup
	slowAt time.Duration // when the next slow cycle is due; used by the goroutine only
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
			case <-timer.C:
				timer.Reset(r.step())
			}
		}
	})
}

// Stop ends the goroutine and waits for its end. It is called at most once, whether the runner is started or not.
func (r *Runner) Stop() {
	close(r.stop)
	r.done.Wait()
}

// step runs the cycle that is due and returns the time until the next.
func (r *Runner) step() (wait time.Duration) {
	mono := r.purge.mono
	var state State
	if now := mono(); now >= r.slowAt {
		state = r.purge.Slow()
		r.slowAt = now + Interval
	} else {
		state = r.purge.Fast()
	}
	wait = max(r.slowAt-mono(), 0)
	pace := paceOf(r.purge.Effort())
	switch state {
	case Busy:
		wait = min(wait, pace.pause)
	case Pressed:
		wait = min(wait, pace.pause, pace.fast)
	}
	return wait
}
