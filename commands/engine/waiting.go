package engine

import (
	"mayfly/commands/waiting"
	"mayfly/keyspace"
	"mayfly/keyspace/streamid"
)

// errUnblocked is the reply of a command that CLIENT UNBLOCK ends with ERROR.
const errUnblocked = Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// blocked is a session's command that waits.
type blocked struct {
	*waiting.Wait
	after []streamid.ID // of XREAD: what its ids stand for
}

func (b *blocked) memory() int { return b.Memory() + 16*len(b.after) }

// Wait says for what a command waits that has nothing to return.
type Wait struct {
	Time    int64                // ms; 0 for ever
	After   []streamid.ID        // what its ids stand for when it runs again
	MinIdle int64                // ms, of CLAIM; negative without
	Oldest  int64                // ms; when what is pending longest was delivered; math.MaxInt64: nothing is
	Lines   func() []waiting.Key // they keep nothing of the arguments
}

// Block ends the run of a command that has nothing to return: it waits.
func (x *Context) Block(of Wait) Reply {
	s, e := x.Session, x.Engine
	if s.Wait == nil {
		w := &blocked{Wait: waiting.New(s.ID, of.Lines(), of.MinIdle), after: of.After}
		if !s.Memory.Reserve(w.memory()) {
			return Fail(ErrClientMemory)
		}
		e.Waiters.Join(w.Wait, of.Time, e.Clock, e.Now)
		s.Wait = w
		s.Update(func() { s.blocked = true })
		x.Outside = func() (Reply, bool) { return Reply{}, true } // look again
		return Reply{}
	}
	x.resume = s.Wait.Woken()
	e.Waiters.Calm(s.Wait.Wait, of.Oldest)
	return Reply{}
}

// HasWaited reports whether the command runs again after it has waited.
func (x *Context) HasWaited() bool { return x.Session.Wait != nil && x.Session.Wait.Runs() > 1 }

// WaitsAfter returns what the ids of a command stand for that runs again, else nil.
func (x *Context) WaitsAfter() []streamid.ID {
	if w := x.Session.Wait; w != nil {
		return w.after
	}
	return nil
}

// Turns returns those of the keys of a command that waits, or would, that it may take from: those for whose
// collections of a kind no other client has waited longer.
func (x *Context) Turns(keys []string, kind keyspace.Kind) []string {
	if w := x.Session.Wait; w != nil {
		return x.Engine.Waiters.Turns(w.Wait, x.Session.Database)
	}
	return x.Engine.Waiters.Unawaited(keys, x.Session.Database, kind)
}

// WaitEnded begins another run of a command that waits. It returns the reply if the wait is over.
func (x *Context) WaitEnded() (reply Reply, over bool) {
	w := x.Session.Wait
	if w == nil || x.Queued {
		return Reply{}, false
	}
	switch x.Engine.Waiters.Again(w.Wait) {
	case waiting.Timeout:
		return NullArray, true
	case waiting.Refused:
		return Fail(errUnblocked), true
	}
	return Reply{}, false
}

// HeldByClock reports whether a command that may wait runs again later, because the clock moves.
func (x *Context) HeldByClock() bool {
	standing := x.Engine.Waiters.Standing()
	if standing == nil || x.Session.Wait != nil || x.Queued {
		return false
	}
	x.resume = standing
	return true
}

// endWait ends the wait of a session's command. served reports that it has returned entries.
func (e *Engine) endWait(s *Session, served bool) {
	w := s.Wait
	s.Wait = nil
	if e.Waiters.Leave(w.Wait, served) {
		s.stirred = w.Wait
	}
	s.Memory.Release(w.memory())
	s.Update(func() { s.blocked = false })
}
