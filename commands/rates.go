package commands

import (
	"sync"
	"time"
)

// SampleInterval is how often [Engine.Sample] should be called.
const SampleInterval = 100 * time.Millisecond

// rates are how fast some counters have grown of late: over 16 samples, as in Redis. The zero value is
// ready; safe for concurrent use.
type rates struct {
	mu   sync.Mutex // protects what follows
	ring [16]rateSample
	next int // where the next sample goes; before it is the newest, after it the oldest
	held int
}

// rateSample is what the counters were at a moment of the monotonic clock.
type rateSample struct {
	at                            time.Duration
	commands, netInput, netOutput int64
}

// perSecond is what the counters grow by in a second.
type perSecond struct{ commands, netInput, netOutput float64 }

// Sample notes how far the counters are at a moment of the monotonic clock, for the instantaneous
// figures of INFO.
func (e *Engine) Sample(now time.Duration) {
	host := e.Host.Info()
	s := rateSample{at: now, netInput: host.NetInput, netOutput: host.NetOutput}
	for i := range e.stats.shards {
		s.commands += e.stats.shards[i].ran.Load()
	}
	r := &e.stats.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = s
	r.next = (r.next + 1) % len(r.ring)
	r.held = min(r.held+1, len(r.ring))
}

// now gives the rates; zero before there are two samples.
func (r *rates) now() perSecond {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.ring)
	newest, oldest := &r.ring[(r.next+n-1)%n], &r.ring[(r.next+n-r.held)%n]
	seconds := (newest.at - oldest.at).Seconds()
	if r.held < 2 || seconds <= 0 {
		return perSecond{}
	}
	return perSecond{
		commands:  float64(newest.commands-oldest.commands) / seconds,
		netInput:  float64(newest.netInput-oldest.netInput) / seconds,
		netOutput: float64(newest.netOutput-oldest.netOutput) / seconds,
	}
}

// reset forgets the samples.
func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = 0
}
