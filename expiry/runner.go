package expiry

import (
	"sync"
	"time"
)

// maxPause is the time between slow cycles when there is nothing that could die.
const maxPause = time.Second

// Runner runs the cycles of a purge in the background: a slow one each [Interval], fast ones between
// them while those do not suffice, and fewer slow ones while nothing could die at all.
type Runner struct {
	purge *Purge
	stop  chan struct{}
	done  sync.WaitGroup

	// For the goroutine only.
	pause  time.Duration // between slow cycles
	slowAt time.Duration // when the next slow cycle is due
}

// NewRunner makes a runner that stands still.
func NewRunner(p *Purge) *Runner {
	return &Runner{purge: p, stop: make(chan struct{}), pause: Interval}
}

// Start starts the goroutine. It is called once at most.
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

// Stop ends the goroutine and waits until it has. It is called once at most, started or not.
func (r *Runner) Stop() {
	close(r.stop)
	r.done.Wait()
}

// step runs the cycle that is due and gives the time to wait for the next.
func (r *Runner) step() (wait time.Duration) {
	mono := r.purge.mono
	var out Outcome
	if now := mono(); now >= r.slowAt {
		out = r.purge.Slow()
		if out.Idle {
			r.pause = min(2*r.pause, maxPause)
		} else {
			r.pause = Interval
		}
		r.slowAt = now + r.pause
	} else {
		out = r.purge.Fast()
	}
	wait = max(r.slowAt-mono(), 0)
	if out.Pressed {
		// A pause as long as the cycle that is to follow.
		wait = min(wait, paceOf(r.purge.Effort()).fast)
	}
	return wait
}
