package commands

// What makes a command lengthy by its size.
const (
	slowArgs  = 256 // arguments
	slowQueue = 32  // commands queued for EXEC
)

// lengthy tells whether a command may take much longer than it takes to look a few items up, or may
// make others send to the session. There are commands that are so by nature, and those that are given
// too much to do.
func (s *Session) isSlow(r *row, args []string) bool {
	if s.multi.open && r.Flags&Immediate == 0 {
		return false // it is queued
	}
	if r.Scope == ScopeQueue {
		return s.multi.slow || len(s.multi.commands) > slowQueue
	}
	return r.isSlow(len(args))
}

// lengthy tells it of a command by itself, with so many arguments.
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
