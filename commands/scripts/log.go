package scripts

import (
	"sync"
	"time"
)

// The bounds of what scripts log in a LogPeriod, in lines: a script in a loop would fill the disk.
const (
	LogPeriod     = 10 * time.Second
	MostLogged    = 100  // of a script
	MostLoggedAll = 1000 // of all scripts
)

// Log counts the lines that scripts log. The zero value is ready. Safe for concurrent use.
type Log struct {
	mu    sync.Mutex    // protects what follows
	since time.Duration // begin of the period, as clock.Monotonic says
	lines int
	left  int                   // out, of scripts below their own bound
	bySHA map[string]*lineCount // of scripts with lines
}

// lineCount counts the lines of one script.
type lineCount struct{ lines, left int }

// Allow reports whether a script may log a line.
func (l *Log) Allow(sha string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.bySHA[sha]
	switch {
	case c != nil && c.lines == MostLogged:
		c.left++
		return false
	case l.lines == MostLoggedAll:
		l.left++
		return false
	case c == nil:
		if l.bySHA == nil {
			l.bySHA = map[string]*lineCount{}
		}
		c = &lineCount{}
		l.bySHA[sha] = c
	}
	c.lines++
	l.lines++
	return true
}

// Next begins the next period if it is time, and returns the lines that were left out in the last one: of
// scripts by their SHA1, and of others.
func (l *Log) Next(now time.Duration) (bySHA map[string]int, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.since < LogPeriod {
		return nil, 0
	}
	bySHA, left = make(map[string]int), l.left
	for sha, c := range l.bySHA {
		if c.left > 0 {
			bySHA[sha] = c.left
		}
	}
	l.since, l.lines, l.left, l.bySHA = now, 0, 0, nil
	return bySHA, left
}
