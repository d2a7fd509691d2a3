package engine

import "time"

// Work is paid by bytes. A short command may walk a long value, so its arguments alone do not tell what it
// costs:
//
//  1. A command that may take long leaves a loop (Session.OnLoop). Some commands are slow by nature, some by
//     the number of their arguments, some by the size of the values that they name (Command.Walks).
//  2. A command that computes for long waits for a turn (Session.Paced). So long commands leave a processor
//     to others, and sessions with long commands alternate.
//  3. A long value is walked without locks: values never change ([Context.compute], [DocTarget.edit]).
//  4. What cannot run without locks is bounded: see MaxExecWork. A loop does not wait for such locks: the
//     sessions that want them leave it (Session.LocksLong).

// The sizes from which a command is slow.
const (
	SlowArgs     = 256      // arguments
	SlowArgBytes = 1 << 20  // bytes of arguments
	SlowQueue    = 32       // commands queued for EXEC
	SlowBytes    = 64 << 10 // bytes of stored values that a command walks or writes anew
)

// The sizes from which locks are held for long, so that no loop waits for them.
const (
	LongIDs   = 1 << 10 // ids, or commands of an EXEC
	LongBytes = 1 << 20 // bytes of values
)

// isSlow reports whether a command may take much longer than a few look-ups, or may send messages to the
// session. Some commands are slow by nature, some by their size.
func (s *Session) isSlow(r *Row, args []string) bool {
	if s.Multi.Open && r.Flags&Immediate == 0 {
		return false // it is queued
	}
	if r.Scope == ScopeQueue {
		return s.Multi.slow || len(s.Multi.Commands) > SlowQueue
	}
	if r.Scope == ScopeScript && SizeOf(args) <= MaxLoopScript {
		return r.computes(args) // a script that takes long leaves its loop: see script_run.go
	}
	return r.isSlow(args)
}

// MaxLoopScript is the size in bytes of the longest call of a script that a loop runs. It compiles what is
// not cached.
const MaxLoopScript = 4 << 10

// isSlow reports whether a command with these arguments is slow by itself.
func (r *Row) isSlow(args []string) bool {
	switch {
	case r.Flags&(Admin|Waits|Receives) != 0:
	case r.Flags&PubSub != 0 && r.Flags&Publishes == 0:
	case r.Scope == ScopeSweep, r.Scope == ScopeAll, r.Scope == ScopeScript:
	default:
		return r.computes(args)
	}
	return true
}

// computes reports whether a command with these arguments may compute for long. Commands that rather
// wait, for locks, the disk or messages, do not, nor does INFO: it must answer beside long commands.
func (r *Row) computes(args []string) bool {
	return r.Flags&(Admin|PubSub) == 0 && (r.Flags&Slow != 0 || len(args) > SlowArgs || r.Reads != nil && r.Reads(args))
}

// needsTurn reports whether a command may compute for long, as far as its arguments tell.
func (s *Session) needsTurn(r *Row, args []string) bool {
	t := &s.Multi
	if r.Scope == ScopeQueue {
		return t.computes || len(t.Commands) > SlowQueue || t.Size > SlowArgBytes
	}
	if t.Open && r.Flags&Immediate == 0 {
		return false // it is queued
	}
	if s.Wait != nil {
		return false // it returns at most BlockedCount entries
	}
	if r.computes(args) {
		return true
	}
	return SizeOf(args) > SlowArgBytes
}

// Always is the Walks of a command that walks values whatever its arguments.
func Always([]string) bool { return true }

// IfLonger returns the Walks of a command that walks values only with more than n arguments.
func IfLonger(n int) func([]string) bool { return func(args []string) bool { return len(args) > n } }

// walks reports whether the command walks the values of its items.
func (r *Row) walks(args []string) bool { return r.Walks != nil && r.Walks(args) }

// walks reports whether a command, or one that EXEC would run, walks the values of its items.
func (s *Session) walks(r *Row, args []string) bool {
	return r.walks(args) || r.Scope == ScopeQueue && s.Multi.walks
}

// weigh returns about how many bytes the items with the ids take that a command names. The session's
// transaction must have locked them.
func (s *Session) weigh(r *Row, args, ids []string) (size int64) {
	name := s.Database
	if r.Group == "document" {
		name = args[1]
	}
	c := s.Tx.Container(name)
	if c == nil {
		return 0
	}
	for _, id := range ids {
		n, _ := s.Tx.Memory(c, id)
		size += n
	}
	return size
}

// weight returns about how many bytes of values the command or transaction walks whose locks are held.
func (s *Session) weight(r *Row, args []string) (size int64) {
	if r.Scope != ScopeQueue {
		return s.weigh(r, args, s.idBuffer)
	}
	for i := range s.Multi.Commands {
		if c := s.Multi.Commands[i]; c.run != nil && c.row.walks(c.in.Args) {
			s.idBuffer = c.row.ids(s.idBuffer[:0], c.in.Args)
			size += s.weigh(c.row, c.in.Args, s.idBuffer)
		}
	}
	return size
}

// LocksLong reports whether a command will keep its locks for long. weight is that of the values that it
// walks.
func (s *Session) LocksLong(r *Row, args []string, weight int64) bool {
	if r.Scope == ScopeQueue {
		return weight >= LongBytes || len(s.Multi.Commands) > LongIDs || s.Multi.Size > LongBytes
	}
	if r.Flags&Write != 0 {
		weight += int64(SizeOf(args))
	} else {
		weight = 0 // walked without locks
	}
	return weight >= LongBytes || len(args) > LongIDs
}

// SizeOf returns the size of arguments in bytes.
func SizeOf(args []string) (size int) {
	for _, arg := range args {
		size += len(arg)
	}
	return size
}

// Compute returns what f makes of size bytes of values, which f walks. From SlowBytes on f runs after the
// transaction, without locks, and the reply here is void. f must not touch the keyspace.
func (x *Context) Compute(size int, f func() Reply) Reply {
	if size < SlowBytes {
		return f()
	}
	x.Outside = func() (reply Reply, again bool) { return f(), false }
	return Reply{}
}

// maxExecTime bounds for how long the commands of a transaction may run, whatever they do. It is as long as
// Redis tolerates a script (busy-reply-threshold).
const maxExecTime = 5 * time.Second

// MaxExecWork bounds the bytes of values and keys that the commands of a transaction walk and write, by the
// largest value in bytes. All of them run under the locks of all ids that the transaction names, because
// others must not see its half. So the limit bounds for how long the others wait, whatever the sizes of the
// values. Everything that can be queued can also be written.
func MaxExecWork(maxValue int) int64 { return 2 * int64(max(MinQueueLimit, QueueFactor*maxValue)) }
