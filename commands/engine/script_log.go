package engine

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds of what scripts log in a LogPeriod, in lines: a script in a loop would fill the disk.
const (
	LogPeriod   = 10 * time.Second
	scriptLines = 100  // of a script
	allLines    = 1000 // of all scripts
)

// scriptLog counts the lines that scripts log. The zero value is ready. Safe for concurrent use.
type scriptLog struct {
	mu    sync.Mutex    // protects what follows
	since time.Duration // begin of the period, as clock.Monotonic says
	lines int
	left  int                        // out, of scripts below their own bound
	bySHA map[string]*scriptLogCount // of scripts with lines
}

// scriptLogCount counts the lines of one script.
type scriptLogCount struct{ lines, left int }

// allow reports whether a script may log a line.
func (l *scriptLog) allow(sha string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.bySHA[sha]
	switch {
	case c != nil && c.lines == scriptLines:
		c.left++
		return false
	case l.lines == allLines:
		l.left++
		return false
	case c == nil:
		if l.bySHA == nil {
			l.bySHA = map[string]*scriptLogCount{}
		}
		c = &scriptLogCount{}
		l.bySHA[sha] = c
	}
	c.lines++
	l.lines++
	return true
}

// next begins the next period if it is time, and returns the lines that were left out in the last one: of
// scripts by their SHA1, and of others.
func (l *scriptLog) next(now time.Duration) (bySHA map[string]*scriptLogCount, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.since < LogPeriod {
		return nil, 0
	}
	bySHA, left = l.bySHA, l.left
	l.since, l.lines, l.left, l.bySHA = now, 0, 0, nil
	return bySHA, left
}

// reportScriptLog logs once a period how many lines of scripts were left out.
func (e *Engine) reportScriptLog(now time.Duration) {
	bySHA, left := e.Scripts.log.next(now)
	for _, sha := range slices.Sorted(maps.Keys(bySHA)) {
		if c := bySHA[sha]; c.left > 0 {
			e.Log.Warn().Str("script", sha).Int("left_out", c.left).Msgf("a script has logged more than %d lines in %s", scriptLines, LogPeriod)
		}
	}
	if left > 0 {
		e.Log.Warn().Int("left_out", left).Msgf("scripts have logged more than %d lines in %s", allLines, LogPeriod)
	}
}
