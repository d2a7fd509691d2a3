package engine

import (
	"fmt"
	"strings"
	"unsafe"

	"mayfly/commands/access"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
)

var TransactionCommands = []Command{
	{
		Name: "discard", Since: "2.0.0", Summary: "Discard all commands issued after MULTI",
		Flags: NoScript | Loading | Stale | Fast | AllowBusy | Immediate | OnNode, Parse: NoParse(runDiscard),
	},
	{
		Name: "exec", Since: "1.2.0", Summary: "Execute all commands issued after MULTI",
		Differs: "Replies that are together longer than the [limit](limits.md) become errors. Messages to the own connection come before the reply; in Redis 7.0 in its middle",
		Flags:   NoScript | Loading | Stale | SkipSlowlog | Immediate | OnNode, Scope: ScopeQueue, Parse: NoParse(runExec),
	},
	{
		Name: "multi", Since: "1.2.0", Summary: "Mark the start of a transaction block",
		Flags: NoScript | Loading | Stale | Fast | AllowBusy | Immediate | OnNode, Parse: NoParse(runMulti),
	},
	{
		Name: "unwatch", Since: "2.2.0", Summary: "Forget about all watched keys",
		Flags: NoScript | Loading | Stale | Fast | AllowBusy | OnNode, Parse: NoParse(runUnwatch),
	},
	{
		Name: "watch", Syntax: "key [key ...]", Since: "2.2.0",
		Summary: "Watch the given keys to determine execution of the MULTI/EXEC block",
		Flags:   NoScript | Loading | Stale | Fast | AllowBusy | Immediate | OnLeader, Keys: AllKeys, Access: "RO", Touches: TouchesSelected, Parse: parseWatch,
	},
}

// transaction is what a session has queued between MULTI and EXEC, and what it watches:
//
//  1. MULTI opens it. The engine now queues commands, but for those that run immediately. An error while
//     queueing fails the transaction.
//  2. EXEC parses the queued commands, without locks. An error is the reply of its command only.
//  3. One keyspace transaction begins. It locks all ids of the commands and all watched ids, and freezes
//     one time for all commands.
//  4. If the transaction has failed or a watched id has changed, EXEC ends here. Else the commands run,
//     and each sees the changes of those before. All changes are one group in the journal, committed
//     entirely or not at all. Replies that walk long values are computed after the locks are released.
//  5. A panic of a command, or the veto of a container on hold, rolls everything back: see Engine.run.
//     Effects beyond the keyspace (CONFIG SET, SUBSCRIBE) stay, but for SELECT.
type transaction struct {
	Open      bool
	failed    bool   // EXEC only reports an error
	database  string // the container that a queued SELECT will have chosen; empty: none is known
	elsewhere bool   // a command was refused for want of the lead; of a session of a proxy
	flags     Flags  // the union of the queued commands' flags
	slow      bool   // a queued command is slow

	computes   bool // a queued command may compute for long
	walks      bool // a queued command walks values
	grows      bool // a queued command is a write without the flag Frees
	subscribes bool // a queued command changes the session's subscriptions

	Size     int // of the queued commands, bytes
	Commands []*queuedCommand
	block    []queuedCommand // the newest commands; full ones are left to Commands, so that none is ever moved
	Args     []string        // likewise, theirs
	replies  []Reply         // of the commands, while EXEC runs

	Watcher     keyspace.Watcher
	WatcherSize int    // of the watched ids, bytes
	watchTerm   uint64 // of the cluster when the first id was watched
}

// queuedCommand is a command that waits for EXEC.
type queuedCommand struct {
	row     *Row
	in      Input
	run     Run   // after parsing; nil if the command cannot run
	failure Reply // why it cannot run
}

// Each session may queue and watch up to QueueFactor times the largest value, and at least
// MinQueueLimit bytes. So every command that the server accepts fits. [ClientMemoryLimit] bounds all
// sessions together.
const (
	QueueFactor   = 8
	MinQueueLimit = 64 << 20
)

// checkQueue returns an error if size bytes of queued commands or watched keys are too much. maxValue is
// the largest value in bytes.
func checkQueue(what string, size, maxValue int) error {
	if limit := max(MinQueueLimit, QueueFactor*maxValue); size > limit {
		return fmt.Errorf("%s take too much memory: legal are up to %d bytes, more with a larger max-value-size", what, limit)
	}
	return nil
}

// enqueue queues a command for EXEC. It clones the arguments, which are views of the connection's read
// buffer, in one piece.
func (e *Engine) enqueue(s *Session, r *Row, args []string) Reply {
	t := &s.Multi
	t.flags |= e.flagsOf(r, args)
	t.grows = t.grows || r.Flags&(Write|Frees) == Write
	t.subscribes = t.subscribes || r.Flags&(PubSub|AllowSubscribed) == PubSub|AllowSubscribed
	matches := e.matchesSlowly(r, args)
	t.slow = t.slow || matches || r.isSlow(args)
	t.computes = t.computes || matches || r.computes(args) || r.Scope == ScopeScript
	t.walks = t.walks || r.walks(args)
	s.noteCommand(r, e.Now())
	if t.failed { // the command never runs
		return Status("QUEUED")
	}
	length := 0
	for _, arg := range args {
		length += len(arg)
	}
	cost := length + len(args)*int(unsafe.Sizeof("")) + int(unsafe.Sizeof(queuedCommand{}))
	if err := checkQueue("the commands of a transaction", t.Size+cost, e.Host.MaxValueSize()); err != nil {
		return e.reject(s, r, err)
	}
	if !s.Memory.Reserve(cost) {
		return e.reject(s, r, ErrClientMemory)
	}
	t.Size += cost
	var text strings.Builder
	text.Grow(length)
	for _, arg := range args {
		text.WriteString(arg)
	}
	t.Args = withRoom(t.Args, len(args))
	first, rest := len(t.Args), text.String()
	for _, arg := range args {
		t.Args = append(t.Args, rest[:len(arg)])
		rest = rest[len(arg):]
	}
	t.block = append(withRoom(t.block, 1), queuedCommand{row: r, in: Input{Args: t.Args[first:len(t.Args):len(t.Args)]}})
	t.Commands = append(t.Commands, &t.block[len(t.block)-1])
	s.Update(func() { s.Queued, s.queuedSize = len(t.Commands), t.Size })
	return Status("QUEUED")
}

// withRoom returns a block with room for n more: the block, or a new one. What a client queues is made in
// small pieces: a growing slice is moved as a whole, while the loop's other clients wait.
func withRoom[T any](block []T, n int) []T {
	const most = 1 << 8
	if cap(block)-len(block) >= n {
		return block
	}
	return make([]T, 0, max(n, min(2*cap(block), most), 8))
}

// reject returns the reply of a command that cannot be run or queued; r is nil if there is no such
// command. It fails the transaction. A rejected EXEC ends the transaction, with an error of its own even
// outside of one, as in Redis.
func (e *Engine) reject(s *Session, r *Row, err error) Reply {
	if r != nil {
		e.Stats.countRejected(s, r)
	}
	if r != nil && r.Scope == ScopeQueue {
		e.discard(s)
		if isRedirection(err) {
			return Fail(err)
		}
		return Fail(execAborted(err))
	}
	if t := &s.Multi; t.Open {
		t.failed = true
		t.clearQueue(s.Memory)
	}
	return Fail(err)
}

// clearQueue drops the queued commands and releases their memory. It keeps room for a few.
func (t *transaction) clearQueue(a *ClientMemory) {
	const maxKept = 1 << 10
	a.Release(t.Size)
	clear(t.Commands)
	clear(t.block)
	clear(t.Args)
	t.Commands, t.block, t.Args, t.Size = t.Commands[:0], t.block[:0], t.Args[:0], 0
	if cap(t.Commands) > maxKept || cap(t.Args) > maxKept {
		t.Commands, t.block, t.Args = nil, nil, nil
	}
}

// close returns to the state without a transaction. Watches stay.
func (t *transaction) close(s *Session) {
	t.clearQueue(s.Memory)
	t.replies, t.database = nil, ""
	t.Open, t.failed, t.elsewhere, t.flags = false, false, false, 0
	t.slow, t.computes, t.walks, t.subscribes, t.grows = false, false, false, false, false
	s.Update(func() { s.Queued, s.queuedSize = NoTransaction, 0 })
}

// discard ends the session's transaction, if there is one, and all watches.
func (e *Engine) discard(s *Session) {
	s.Multi.close(s)
	e.unwatch(s)
}

func (e *Engine) unwatch(s *Session) {
	if s.keyspace != nil {
		s.keyspace.Unwatch(&s.Multi.Watcher)
	}
	s.Multi.unwatched(s.Memory)
	if s.remote == watches {
		s.remote = unwatches
	}
}

// unwatched notes that the session watches nothing any more.
func (t *transaction) unwatched(a *ClientMemory) {
	a.Release(t.WatcherSize)
	t.WatcherSize = 0
}

// CloseSession releases what the engine holds for a session. The owner of the session calls it after the
// last command.
func (e *Engine) CloseSession(s *Session) {
	s.ended.Store(true)
	e.ReleaseSession(s)
	s.Answered() // nothing more leaves
}

// ReleaseSession is CloseSession for a session that goes on as a new one (RESET).
func (e *Engine) ReleaseSession(s *Session) {
	if s.Wait != nil {
		e.endWait(s, false)
	}
	e.discard(s)
	e.Broker.dropSession(s)
	if s.Tracking.On {
		_ = e.Track(s, Tracking{}) // asks for no memory
		e.shareBroadcast(s)
	}
}

func runMulti(x *Context) Reply {
	s := x.Session
	if s.Multi.Open {
		return Fail(errNestedMulti)
	}
	s.Multi.Open = true
	s.Update(func() { s.Queued = 0 })
	return OK
}

func runDiscard(x *Context) Reply {
	if !x.Session.Multi.Open {
		return Fail(Errorf(errNoMulti, "DISCARD"))
	}
	x.Engine.discard(x.Session)
	return OK
}

func parseWatch(in *Input) (Run, error) {
	keys, maxValue := in.Args[1:], in.MaxValue
	return func(x *Context) Reply {
		t := &x.Session.Multi
		if t.Open {
			return Fail(errWatchInMulti)
		}
		c, err := x.Database()
		if err != nil {
			return Fail(err)
		}
		cost := 0
		for _, key := range keys {
			cost += len(key) + watchCost
		}
		if err := checkQueue("watched keys", t.WatcherSize+cost, maxValue); err != nil {
			return Fail(err)
		}
		if !x.Session.Memory.Reserve(cost) {
			return Fail(ErrClientMemory)
		}
		if t.WatcherSize == 0 {
			t.watchTerm = x.Engine.term()
		}
		t.WatcherSize += cost
		for _, key := range keys {
			x.Tx.Watch(&t.Watcher, c, key)
		}
		return OK
	}, nil
}

// watchCost is about the number of bytes that the keyspace needs to watch an id, besides the id.
const watchCost = 200

// runUnwatch is UNWATCH. Within EXEC there is nothing to do: EXEC has ended the watches.
func runUnwatch(x *Context) Reply {
	x.Engine.unwatch(x.Session)
	return OK
}

// beginQueue parses the queued commands, matches the messages they publish, and starts the session's
// transaction for them. The error is ErrAbandoned, when all is discarded, errLocked or ErrBusy.
func (e *Engine) beginQueue(s *Session) error {
	t := &s.Multi
	ids, all, scripts := t.Watcher.IDs(), false, 0
	maxValue, writes := e.Host.MaxValueSize(), 0
	for i := range t.Commands {
		c := t.Commands[i]
		c.in.MaxValue = maxValue
		e.parseQueued(s, c)
		if c.run == nil {
			continue
		}
		ids = c.row.ids(ids, c.in.Args)
		if c.row.Flags&Write != 0 {
			writes++
		}
		all = all || c.row.Scope == ScopeSweep || c.row.Scope == ScopeAll || c.row.Scope == ScopeScript
		if c.row.Scope == ScopeScript {
			c.in.script, _ = e.loadScript(c.in.Args) // else it is looked for again when it runs
			scripts++
		}
	}
	if !e.matchQueue(s) {
		e.discard(s)
		return ErrAbandoned
	}
	for i := range t.Commands {
		if c := t.Commands[i]; c.run != nil && c.row.Flags&Write != 0 {
			s.prepare(&c.in)
		}
	}
	// While the locks are held no memory for many commands is to be made.
	if writes > SlowArgs {
		s.Tx.Reserve(writes)
	}
	t.replies = make([]Reply, len(t.Commands))
	if scripts > 0 {
		e.Scripts.used.Store(true)
	}
	var err error
	switch {
	case scripts > 0 && scripts == len(t.Commands) && len(ids) == 0:
		s.beginLate(true, nil)
	case all:
		err = e.beginAll(s)
	case len(ids) > 0:
		err = e.beginKeys(s, ids)
	default:
		s.keyspace.BeginNone(&s.Tx)
	}
	if err == nil && scripts > 0 {
		s.Tx.MarkLong(false)
	}
	return err
}

// matchQueue counts the receivers of the messages that queued commands publish. Counted later, they would
// keep those waiting who need the transaction's items. With a subscription in the transaction they are
// counted later all the same. matchQueue returns false if the command was abandoned.
func (e *Engine) matchQueue(s *Session) bool {
	t := &s.Multi
	if t.failed || t.flags&Publishes == 0 || t.subscribes || e.Broker.patternCount.Load() == 0 {
		return true
	}
	x := Context{Session: s, Engine: e}
	var last *Input
	for i := range t.Commands {
		in := &t.Commands[i].in
		switch {
		case t.Commands[i].row.Name != "publish":
		case last != nil && last.Args[1] == in.Args[1]:
			in.Receivers, in.Matched = last.Receivers, true
		default:
			if in.Receivers, in.Matched = x.CountReceivers(SubChannel, in.Args[1]); !in.Matched {
				return false
			}
			last = in
		}
	}
	return true
}

// parseQueued parses a queued command.
func (e *Engine) parseQueued(s *Session, c *queuedCommand) {
	defer e.recoverPanic(s, c.in.Args, &c.failure)
	run, err := c.row.Parse(&c.in)
	if err == nil {
		err = checkIDs(c.row.ids(nil, c.in.Args))
	}
	if err != nil {
		c.failure = Fail(err)
		return
	}
	c.run = run
}

// runExec is EXEC: it runs the queued commands in the transaction that beginQueue has begun.
func runExec(x *Context) Reply {
	t := &x.Session.Multi
	if !t.Open {
		return Fail(Errorf(errNoMulti, "EXEC"))
	}
	defer func() {
		if x.Outside == nil {
			t.close(x.Session)
		}
	}()
	changed := x.Tx.Changed(&t.Watcher) || t.WatcherSize > 0 && t.watchTerm != x.Engine.term()
	x.Tx.Unwatch(&t.Watcher)
	t.unwatched(x.Session.Memory)
	if t.flags&Write != 0 {
		if err := x.Engine.DiskRefusal(!t.grows); err != nil {
			return Fail(execAborted(err))
		}
	}
	switch {
	case t.failed:
		return Fail(ErrExecAbort)
	case changed:
		return NullArray
	}
	x.Session.lastEnd = clock.Monotonic()
	database, number := x.Session.Database, x.Session.DatabaseNumber
	replies := t.replies
	budget := replyBudget{limit: max(MinRepliesLimit, QueueFactor*x.Engine.Host.MaxValueSize())}
	proto, since := x.Session.Proto, 0 // the protocol of the replies from index since on
	var pending []pendingReply
	x.Examined = 0
	x.Queued, x.Work, x.mostWork = true, 0, MaxExecWork(x.Engine.Host.MaxValueSize())
	deadline := x.Session.lastEnd + x.Session.ExecTime
	for i := range t.Commands {
		replies[i] = x.Engine.runQueued(x, t.Commands[i], &budget)
		tooMuch, tooLong := x.Work > x.mostWork, x.Session.lastEnd > deadline
		if x.aborted = tooMuch || tooLong || x.undone != nil || x.Tx.Veto() != nil; x.panicked || x.aborted {
			x.Outside = nil
			x.Session.Update(func() { x.Session.Database, x.Session.DatabaseNumber = database, number })
			switch {
			case x.panicked:
				return Fail(ErrExecInternal)
			case x.undone != nil:
				return Fail(execAborted(x.undone))
			case tooMuch:
				return Fail(Errorf(errExecWork, x.mostWork))
			case x.Tx.Veto() != nil:
				return Reply{} // Engine.run replies
			}
			return Fail(Errorf(errExecTime, x.Session.ExecTime))
		}
		if x.Outside != nil {
			pending, x.Outside = append(pending, pendingReply{i, x.Outside}), nil
		}
		if x.Session.Proto != proto { // the command is HELLO; its own reply is in the new protocol
			for j := since; j < i; j++ {
				replies[j] = Reply{Kind: KindProtocol, Int: int64(proto), Elems: []Reply{replies[j]}}
			}
			proto, since = x.Session.Proto, i
		}
		if replies[i].Kind == KindNone { // CLIENT REPLY, or pending; in an array every command has an element
			replies[i] = OK
		}
	}
	if len(pending) > 0 {
		x.Outside = func() (Reply, bool) {
			defer t.close(x.Session)
			x.Queued = false // what is done without locks does not count as work of the transaction
			for i := range pending {
				x.Engine.completeQueued(x.Session, &pending[i], replies, &budget)
			}
			return Array(replies...), false
		}
	}
	return Array(replies...)
}

// pendingReply is the reply of a queued command that is computed after the transaction.
type pendingReply struct {
	index   int // of the command
	outside func() (reply Reply, again bool)
}

// completeQueued computes a pending reply and puts it among the others.
func (e *Engine) completeQueued(s *Session, p *pendingReply, replies []Reply, budget *replyBudget) {
	c, place, start := s.Multi.Commands[p.index], &replies[p.index], s.StartTime()
	if place.Kind == KindProtocol {
		place = &place.Elems[0]
	}
	defer func() {
		e.recordCall(s, c.row, c.in.Args, start, place)
		e.Stats.countReply(s, place)
	}()
	defer e.recoverPanic(s, c.in.Args, place)
	if budget.refuses(c.row) {
		*place = budget.errorReply()
		return
	}
	reply, _ := p.outside()
	*place = budget.charge(c.row, reply)
}

// MinRepliesLimit is the smallest limit in bytes of the replies of a transaction, whatever the largest
// value.
const MinRepliesLimit = 256 << 20

// replyBudget bounds the replies of a transaction, which stay in memory until the last command has run. A
// short command may have a long reply. Commands after the limit get errors.
type replyBudget struct{ used, limit int } // bytes

// errorReply returns the error of a command whose reply does not fit.
func (b *replyBudget) errorReply() Reply {
	return Fail(Errorf(errLongReplies, b.limit))
}

// refuses reports whether a command must not run because the budget is used up. It refuses only commands
// that read data: others have effects.
func (b *replyBudget) refuses(r *Row) bool { return b.used > b.limit && r.Flags&ReadOnly != 0 }

// charge charges the reply of a command that has run. If it does not fit, a long reply becomes an error.
// Replies of writes and subscriptions are kept: they tell the client what it has changed.
func (b *replyBudget) charge(r *Row, reply Reply) Reply {
	const short = 1 << 10
	size := ReplySize(&reply)
	if b.used > b.limit && size > short && r.Flags&(Write|AllowSubscribed) == 0 {
		return b.errorReply()
	}
	b.used += size
	return reply
}

// ReplySize returns about the size of a reply in bytes, as if it were rendered whole.
func ReplySize(r *Reply) int {
	size := int(unsafe.Sizeof(*r)) + len(r.Str)
	if r.Kind == KindText {
		size += r.Text.Size
	}
	for i := range r.Elems {
		size += ReplySize(&r.Elems[i])
	}
	return size
}

// runQueued runs a queued command.
func (e *Engine) runQueued(x *Context, c *queuedCommand, budget *replyBudget) (reply Reply) {
	s, start := x.Session, x.Session.StartTime()
	defer func() {
		if x.Outside == nil { // else completeQueued does it
			e.recordCall(s, c.row, c.in.Args, start, &reply)
			if c.row.Scope != ScopeScript || !x.counted {
				e.Stats.countReply(s, &reply)
			}
		}
	}()
	defer e.recoverPanic(s, c.in.Args, &reply)
	if c.run == nil {
		return c.failure
	}
	if !s.rights.Open() {
		if err := e.mayStillRun(s, c.row, c.in.Args, access.InMulti, s.Database); err != nil {
			return Fail(err)
		}
	}
	if budget.refuses(c.row) {
		return budget.errorReply()
	}
	if c.row.Flags&NoAuth != 0 && e.awaitsDelay(s, c.row, c.in.Args) != nil {
		return Fail(errGuessInMulti)
	}
	if c.row.Flags&Write != 0 && c.row.walks(c.in.Args) {
		s.idBuffer = c.row.ids(s.idBuffer[:0], c.in.Args)
		x.Work += s.weigh(c.row, c.in.Args, s.idBuffer)
	}
	x.Input = &c.in
	if s.tracks(c.row) {
		x.track(c.row, c.in.Args, c.row.ids(nil, c.in.Args))
	}
	reply = c.run(x)
	x.withhold(c.row, &reply)
	return budget.charge(c.row, reply)
}

// withhold takes back what a command has changed whose reply is too long for its client: the reply has what
// it has taken. What InPieces has committed stays.
func (x *Context) withhold(r *Row, reply *Reply) {
	if r.Flags&Write != 0 && reply.Kind == KindError && reply.Str == string(ErrClientMemory) {
		x.aborted, x.undone = true, ErrClientMemory
	}
}
