package commands

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pause holds commands back: from CLIENT PAUSE to its end or to CLIENT UNPAUSE. It stops clients, not
// time: what dies meanwhile is removed, unlike in Redis, where replicas have to see it. The zero value
// is no pause. Safe for concurrent use.
type pause struct {
	term atomic.Pointer[pauseTerm] // nil without a pause
	mu   sync.Mutex                // held while term changes
}

// pauseTerm is a pause with a fixed end. A longer one takes its place if need be.
type pauseTerm struct {
	end   int64         // ms
	all   bool          // of all commands, not only those that write
	over  chan struct{} // closed when the pause has ended, or has another term
	timer *time.Timer
}

// extend pauses for another ms from now on. A pause that is under way neither ends earlier nor holds
// back less for it.
func (p *pause) extend(now, ms int64, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	term := &pauseTerm{end: now + min(ms, math.MaxInt64-now), all: all, over: make(chan struct{})}
	if old := p.term.Load(); old != nil && old.end > now {
		term.end, term.all = max(term.end, old.end), term.all || old.all
	}
	const longest = math.MaxInt64 / int64(time.Millisecond)
	left := time.Duration(min(term.end-now, longest)) * time.Millisecond
	term.timer = time.AfterFunc(left, func() { p.finish(term) })
	p.replaceLocked(term)
}

// finish ends a term, whichever it is if that is nil.
func (p *pause) finish(term *pauseTerm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term == nil || term == p.term.Load() {
		p.replaceLocked(nil)
	}
}

func (p *pause) replaceLocked(term *pauseTerm) {
	if old := p.term.Swap(term); old != nil {
		old.timer.Stop()
		close(old.over)
	}
}

// Held tells whether a command must wait because clients are paused: until the channel is closed, when
// it is to be asked again. Nil means that the command need not wait, if only because it cannot run.
func (e *Engine) Paused(s *Session, args []string) <-chan struct{} {
	term := e.pause.term.Load()
	if term == nil {
		return nil
	}
	r, err := s.resolve(args)
	if err != nil || e.admit(s, r) != nil || e.Keyspace.Now() >= term.end {
		return nil
	}
	flags := r.Flags
	if r.Scope == ScopeQueue {
		flags |= s.multi.flags
	}
	if !term.all && flags&(Write|Publishes) == 0 {
		return nil
	}
	return term.over
}
