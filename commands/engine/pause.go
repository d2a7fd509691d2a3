package engine

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

// pause is the state of CLIENT PAUSE, until its end or CLIENT UNPAUSE. It stops clients, not time. As in
// Redis nothing is removed meanwhile: dead items are absent, but stay in memory, and nothing is evicted. The
// zero value is no pause. Safe for concurrent use.
type pause struct {
	gate     atomic.Pointer[gate]      // what holds commands back; nil: nothing does
	keepDead func(until int64)         // keeps dead items in memory until a time (ms), 0 for no longer
	term     atomic.Pointer[pauseTerm] // nil without a pause
	mu       sync.Mutex                // held while term and gate change; protects what follows, and keepDead
	busy     bool                      // see setBusy
	stepping bool                      // a clock that clients move does what is due
	keepNext int64                     // ms; for keepDead, when it has done so; negative: nothing new
}

// gate is what holds commands back: a pause, a busy script or both.
type gate struct{ paused, busy bool }

// setBusy sets whether a script has exceeded the time limit, so that commands are refused.
func (p *pause) setBusy(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = busy
	p.setGateLocked()
}

func (p *pause) setGateLocked() {
	g := &gate{paused: p.term.Load() != nil, busy: p.busy}
	if *g == (gate{}) {
		g = nil
	}
	p.gate.Store(g)
}

// heldBack reports whether a command must wait, or is refused, as the outcome says.
func (e *Engine) heldBack(s *Session, args []string, g *gate, out *Outcome) bool {
	if g.paused {
		if out.Resume = e.PausedUntil(s, args); out.Resume != nil {
			out.Deferred = true
			return true
		}
	}
	return g.busy && e.refuseBusy(s, args, out)
}

// pauseTerm is a pause with a fixed end. A longer one may replace it.
type pauseTerm struct {
	end   int64         // ms
	all   bool          // pauses all commands, not only writes
	over  chan struct{} // closed when the term ends or is replaced
	timer *time.Timer
}

// Extend pauses for ms from now. A running pause neither ends earlier nor pauses fewer commands for it.
func (p *pause) Extend(now, ms int64, all bool, keepDead func(until int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepDead = keepDead
	term := &pauseTerm{end: now + min(ms, math.MaxInt64-now), all: all, over: make(chan struct{})}
	if old := p.term.Load(); old != nil && old.end > now {
		term.end, term.all = max(term.end, old.end), term.all || old.all
	}
	const longest = math.MaxInt64 / int64(time.Millisecond)
	left := time.Duration(min(term.end-now, longest)) * time.Millisecond
	term.timer = time.AfterFunc(left, func() { p.Finish(term) })
	p.replaceLocked(term)
}

// Finish ends the term, or any term if it is nil.
func (p *pause) Finish(term *pauseTerm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term == nil || term == p.term.Load() {
		p.replaceLocked(nil)
	}
}

func (p *pause) replaceLocked(term *pauseTerm) {
	switch {
	case term != nil:
		p.keepLocked(term.end)
	case p.keepDead != nil:
		p.keepLocked(0)
	}
	old := p.term.Swap(term)
	p.setGateLocked()
	if old != nil {
		old.timer.Stop()
		close(old.over)
	}
}

func (p *pause) keepLocked(until int64) {
	if p.keepNext = until; !p.stepping {
		p.keepDead(until)
	}
}

// BeginStep begins a step of a clock that clients move: until EndStep, a new pause keeps no dead. So those of
// the step are removed at their moment. If clients are paused it returns a channel to wait for instead.
func (p *pause) BeginStep() (over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term := p.term.Load(); term != nil {
		return term.over
	}
	p.stepping, p.keepNext = true, -1
	return nil
}

// EndStep ends what BeginStep has begun.
func (p *pause) EndStep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stepping = false; p.keepNext >= 0 {
		p.keepDead(p.keepNext)
	}
}

// PausedUntil returns a channel if clients are paused and the command must wait. When the channel closes, the
// caller asks again. It returns nil if the command need not wait, for example because it cannot run.
func (e *Engine) PausedUntil(s *Session, args []string) <-chan struct{} {
	term := e.Pause.term.Load()
	if term == nil {
		return nil
	}
	r, err := s.Resolve(args)
	if err != nil || e.Admit(s, r, args) != nil || e.PauseTime() >= term.end {
		return nil
	}
	flags := e.flagsOf(r, args)
	if r.Scope == ScopeQueue {
		flags |= s.Multi.flags
	}
	if !term.all && flags&(Write|MayWrite|Publishes) == 0 {
		return nil
	}
	return term.over
}

// PauseTime is the time in ms by which a pause ends: a real one, even if clients move the clock.
func (e *Engine) PauseTime() int64 {
	if e.Clock != nil {
		return clock.Monotonic().Milliseconds()
	}
	return e.Now()
}

// KeepDeadUntil keeps dead items in memory until a time in ms, as PauseTime says; 0 ends that.
func (e *Engine) KeepDeadUntil(until int64) {
	if e.Clock != nil && until != 0 {
		until = math.MaxInt64 // the end of the pause ends it
	}
	if ks := e.Keyspace(); ks != nil {
		ks.KeepDeadUntil(until)
	}
}

// paused reports whether clients are paused.
func (e *Engine) paused() bool {
	term := e.Pause.term.Load()
	return term != nil && e.PauseTime() < term.end
}
