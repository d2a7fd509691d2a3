package commands

// The sizes from which a command is slow.
const (
	slowArgs  = 256 // arguments
	slowQueue = 32  // commands queued for EXEC
)

// isSlow reports whether a command may take much longer than a few look-ups, or may send messages to the
// session. Some commands are slow by nature, some by their size.
func (s *Session) isSlow(r *row, args []string) bool {
	if s.multi.open && r.Flags&Immediate == 0 {
		return false // it is queued
	}
	if r.Scope == ScopeQueue {
		return s.multi.slow || len(s.multi.commands) > slowQueue
	}
	return r.isSlow(len(args))
}

// isSlow reports whether a command with that many arguments is slow by itself.
func (r *row) isSlow(args int) bool {
	switch {
	case r.Flags&(Admin|Slow) != 0:
	case r.Flags&PubSub != 0 && r.Flags&Publishes == 0:
	case r.Scope == ScopeSweep, r.Scope == ScopeAll:
	case args > slowArgs:
	default:
		return false
	}
	return true
}
