package commands

import (
	"sync"
	"time"

	"mayfly/expiry/clock"
)

// Sparing keeps what clients can cause as often as they like from filling the log. The zero value is
// ready. Safe for concurrent use.
type LogLimiter struct {
	mu      sync.Mutex    // protects what follows
	next    time.Duration // when it is time again
	skipped int           // since it was time
}

// Now tells whether it is time to log again, at most once a second, and how often it has not been since.
func (s *LogLimiter) Allow() (yes bool, skipped int) {
	const every = time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Monotonic()
	if now < s.next {
		s.skipped++
		return false, 0
	}
	skipped = s.skipped
	s.next, s.skipped = now+every, 0
	return true, skipped
}
