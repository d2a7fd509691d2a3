package clock

import (
	"sync"
	"time"
)

// LogLimiter limits log lines that clients can cause at will. The zero value allows one line a second.
// Safe for concurrent use.
type LogLimiter struct {
	Every time.Duration // between two lines; 0: a second

	mu      sync.Mutex    // protects what follows
	next    time.Duration // when the next line is allowed
	skipped int           // lines since the last allowed one
}

// Allow reports whether a line may be logged now. skipped is the number of lines refused since the last
// allowed one.
func (l *LogLimiter) Allow() (ok bool, skipped int) {
	every := l.Every
	if every == 0 {
		every = time.Second
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := Monotonic()
	if now < l.next {
		l.skipped++
		return false, 0
	}
	skipped = l.skipped
	l.next, l.skipped = now+every, 0
	return true, skipped
}
