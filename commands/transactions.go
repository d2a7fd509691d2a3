package commands

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"mayfly/commands/redisfmt"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
)

var transactionCommands = []Command{
	{
		Name: "discard", Summary: "Discard all commands issued after MULTI",
		Group: "transactions", Since: "2.0.0", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | Immediate,
		Parse: noParse(runDiscard),
	},
	{
		Name: "exec", Summary: "Execute all commands issued after MULTI",
		Group: "transactions", Since: "1.2.0", Arity: 1, Flags: NoScript | Loading | Stale | SkipSlowlog | Immediate,
		Scope:   ScopeQueue,
		Differs: "Replies that are together longer than the [limit](limits.md) become errors. Messages to the own connection come before the reply; in Redis 7.0 in its middle",
		Parse:   noParse(runExec),
	},
	{
		Name: "multi", Summary: "Mark the start of a transaction block",
		Group: "transactions", Since: "1.2.0", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | Immediate,
		Parse: noParse(runMulti),
	},
	{
		Name: "unwatch", Summary: "Forget about all watched keys",
		Group: "transactions", Since: "2.2.0", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Parse: noParse(runUnwatch),
	},
	{
		Name: "watch", Syntax: "key [key ...]", Summary: "Watch the given keys to determine execution of the MULTI/EXEC block",
		Group: "transactions", Since: "2.2.0", Arity: -2, Flags: NoScript | Loading | Stale | Fast | AllowBusy | Immediate,
		Keys: AllKeys, Access: "RO",
		Parse: parseWatch,
	},
}

// transaction is what a session has between MULTI and EXEC, and what it watches. The way of a
// transaction:
//
//  1. MULTI opens it. From then on the engine queues commands instead of running them, but for those
//     that are carried out at once. An error while queueing fails the transaction.
//  2. EXEC: the queued commands are parsed, without locks; an error is the reply of its command only.
//  3. One keyspace transaction begins, which locks all ids that the commands name and all that are
//     watched, and whose time is that of all commands.
//  4. If the transaction has failed or what is watched has changed, that is all. Else the commands
//     run, each seeing what those before it did; what they write is one group in the journal,
//     committed entirely or not at all.
//  5. If one of them panics, nothing of the transaction has happened: see Engine.run. What commands do
//     besides (CONFIG SET, SUBSCRIBE) stays done, but for SELECT.
type transaction struct {
	open     bool
	failed   bool  // EXEC will only say so
	flags    Flags // of all commands that were queued, together
	slow     bool  // one of them may take long
	size     int   // bytes that they take
	commands []queuedCommand
	args     []string // of all commands; each has a piece of it

	watcher     keyspace.Watcher
	watcherSize int // bytes that the watched ids take
}

// queued is a command that waits for EXEC.
type queuedCommand struct {
	row     *row
	in      Input
	run     Run   // once it is parsed
	failure Reply // or an error, why it cannot run
}

// What is queued and what is watched are both bounded for each session (for all of them together see
// [ClientMemory]), by this multiple of the largest value and not less than the other. What a client may send in one command, which the server
// bounds, always fits.
const (
	queueFactor   = 8
	minQueueLimit = 64 << 20
)

// checkQueue refuses a queue of size bytes, the largest value being of maxValue bytes.
func checkQueue(what string, size, maxValue int) error {
	if most := max(minQueueLimit, queueFactor*maxValue); size > most {
		return fmt.Errorf("%s take too much memory: legal are up to %d bytes, more with a larger max-value-size", what, most)
	}
	return nil
}

// enqueue keeps a command for EXEC. Its arguments are views of what the connection has read: they are
// cloned, in one piece.
func (e *Engine) enqueue(s *Session, r *row, args []string) Reply {
	t := &s.multi
	t.flags |= r.Flags
	t.slow = t.slow || r.isSlow(len(args))
	s.noteCommand(r, e.Keyspace.Now())
	if t.failed { // what will never run is not kept
		return Status("QUEUED")
	}
	length := 0
	for _, arg := range args {
		length += len(arg)
	}
	cost := length + len(args)*int(unsafe.Sizeof("")) + int(unsafe.Sizeof(queuedCommand{}))
	if err := checkQueue("the commands of a transaction", t.size+cost, e.Host.MaxValueSize()); err != nil {
		return e.reject(s, r, args, err)
	}
	if !s.Memory.Reserve(cost) {
		return e.reject(s, r, args, errClientMemory)
	}
	t.size += cost
	var text strings.Builder
	text.Grow(length)
	for _, arg := range args {
		text.WriteString(arg)
	}
	first, rest := len(t.args), text.String()
	for _, arg := range args {
		t.args = append(t.args, rest[:len(arg)])
		rest = rest[len(arg):]
	}
	t.commands = append(t.commands, queuedCommand{row: r, in: Input{Args: t.args[first:len(t.args):len(t.args)]}})
	s.update(func() { s.queued, s.queuedSize = len(t.commands), t.size })
	return Status("QUEUED")
}

// reject answers a command that cannot be run or queued; its row is nil if there is no such command. It
// fails the transaction; EXEC itself ends it, with an answer of its own even outside of one, as in
// Redis.
func (e *Engine) reject(s *Session, r *row, args []string, err error) Reply {
	if r != nil {
		e.stats.countRejected(s, r)
	}
	if redisfmt.EqualFold(args[0], "exec") {
		e.discard(s)
		return Fail(execAborted(err))
	}
	if t := &s.multi; t.open {
		t.failed = true
		t.clearQueue(s.Memory)
	}
	return Fail(err)
}

// drop lets go of the queued commands, and takes them off the account. Room for a few more is kept.
func (t *transaction) clearQueue(a *ClientMemory) {
	const most = 1 << 10
	a.Release(t.size)
	clear(t.commands)
	clear(t.args)
	t.commands, t.args, t.size = t.commands[:0], t.args[:0], 0
	if cap(t.commands) > most || cap(t.args) > most {
		t.commands, t.args = nil, nil
	}
}

// end goes back to where there is no transaction. What is watched is not its concern.
func (t *transaction) close(s *Session) {
	t.clearQueue(s.Memory)
	t.open, t.failed, t.flags, t.slow = false, false, 0, false
	s.update(func() { s.queued, s.queuedSize = noTransaction, 0 })
}

// discard ends the session's transaction, if there is one, and all watches.
func (e *Engine) discard(s *Session) {
	s.multi.close(s)
	e.unwatch(s)
}

func (e *Engine) unwatch(s *Session) {
	e.Keyspace.Unwatch(&s.multi.watcher)
	s.multi.unwatched(s.Memory)
}

// unwatched notes that nothing is watched any more.
func (t *transaction) unwatched(a *ClientMemory) {
	a.Release(t.watcherSize)
	t.watcherSize = 0
}

// CloseSession lets go of what a session holds in the engine. Whoever has made a session calls it
// when the session's last command has ended.
func (e *Engine) CloseSession(s *Session) {
	e.discard(s)
	e.Broker.dropSession(s)
}

func runMulti(x *Context) Reply {
	s := x.Session
	if s.multi.open {
		return Fail(errNestedMulti)
	}
	s.multi.open = true
	s.update(func() { s.queued = 0 })
	return OK
}

func runDiscard(x *Context) Reply {
	if !x.Session.multi.open {
		return Fail(errNoMulti("DISCARD"))
	}
	x.Engine.discard(x.Session)
	return OK
}

func parseWatch(in *Input) (Run, error) {
	keys, maxValue := in.Args[1:], in.MaxValue
	return func(x *Context) Reply {
		t := &x.Session.multi
		if t.open {
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
		if err := checkQueue("watched keys", t.watcherSize+cost, maxValue); err != nil {
			return Fail(err)
		}
		if !x.Session.Memory.Reserve(cost) {
			return Fail(errClientMemory)
		}
		t.watcherSize += cost
		for _, key := range keys {
			x.Tx.Watch(&t.watcher, c, key)
		}
		return OK
	}, nil
}

// watchCost is about what the keyspace needs in bytes to watch an id, besides the id.
const watchCost = 200

// unwatch, queued, finds the watches ended already by EXEC.
func runUnwatch(x *Context) Reply {
	x.Engine.unwatch(x.Session)
	return OK
}

// beginQueue parses what is queued and starts the session's transaction for it.
func (e *Engine) beginQueue(s *Session) {
	t := &s.multi
	ids, all := t.watcher.IDs(), false
	maxValue := e.Host.MaxValueSize()
	for i := range t.commands {
		c := &t.commands[i]
		c.in.MaxValue = maxValue
		e.parseQueued(s, c)
		if c.run == nil {
			continue
		}
		ids = c.row.items.ids(ids, c.in.Args)
		all = all || c.row.Scope == ScopeSweep || c.row.Scope == ScopeAll
	}
	switch {
	case all:
		e.Keyspace.BeginAll(&s.tx)
	case len(ids) > 0:
		e.Keyspace.BeginKeys(&s.tx, ids)
	default:
		e.Keyspace.BeginNone(&s.tx)
	}
}

// prepare parses a queued command.
func (e *Engine) parseQueued(s *Session, c *queuedCommand) {
	defer e.recoverPanic(s, c.in.Args, &c.failure)
	run, err := c.row.Parse(&c.in)
	if err == nil {
		err = checkIDs(c.row.items.ids(nil, c.in.Args))
	}
	if err != nil {
		c.failure = Fail(err)
		return
	}
	c.run = run
}

// runQueue is EXEC: it runs what is queued, in the transaction that beginQueue has begun.
func runExec(x *Context) Reply {
	t := &x.Session.multi
	if !t.open {
		return Fail(errNoMulti("EXEC"))
	}
	defer t.close(x.Session)
	changed := x.Tx.Changed(&t.watcher)
	x.Tx.Unwatch(&t.watcher)
	t.unwatched(x.Session.Memory)
	if t.flags&Write != 0 {
		if err := x.Engine.Keyspace.Writable(); err != nil {
			return Fail(execAborted(Misconf(err)))
		}
	}
	switch {
	case t.failed:
		return Fail(errExecAbort)
	case changed:
		return NullArray
	}
	x.Session.lastEnd = clock.Monotonic()
	database := x.Session.Database()
	replies := make([]Reply, len(t.commands))
	budget := replyBudget{limit: max(minRepliesLimit, queueFactor*x.Engine.Host.MaxValueSize())}
	proto, since := x.Session.Proto, 0 // of the replies since that one
	for i := range t.commands {
		replies[i] = x.Engine.runQueued(x, &t.commands[i], &budget)
		if x.panicked {
			x.Session.update(func() { x.Session.database = database })
			return Fail(errExecInternal)
		}
		if x.Session.Proto != proto { // HELLO, whose own reply is in the new one
			for j := since; j < i; j++ {
				replies[j] = Reply{Kind: KindProtocol, Int: int64(proto), Elems: []Reply{replies[j]}}
			}
			proto, since = x.Session.Proto, i
		}
		if replies[i].Kind == KindNone { // of CLIENT REPLY; here every command has its element
			replies[i] = OK
		}
	}
	return Array(replies...)
}

// leastReplies is what the replies of a transaction may take at least, whatever the largest value.
const minRepliesLimit = 256 << 20

// replyBudget bounds the replies of a transaction, which are all kept until the last command has run:
// a short command may have a long reply. What has used it up hits the commands after it.
type replyBudget struct{ used, limit int } // bytes

// exceeded is the error of a command when there is no room for its reply.
func (b *replyBudget) exceeded() Reply {
	return Fail(Error("ERR the replies of this transaction exceed " + strconv.Itoa(b.limit) + " bytes"))
}

// full tells whether a command is not to be run because there is no room for its reply. Only one that
// reads the data is left out: what others do counts.
func (b *replyBudget) refuses(r *row) bool { return b.used > b.limit && r.Flags&ReadOnly != 0 }

// take makes room for the reply of a command that has run. If there is none, what tells the client
// neither what it has written nor what it subscribes to, such as the list of all clients, is dropped
// unless it is short.
func (b *replyBudget) charge(r *row, reply Reply) Reply {
	const short = 1 << 10
	size := replySize(&reply)
	if b.used > b.limit && size > short && r.Flags&(Write|AllowSubscribed) == 0 {
		return b.exceeded()
	}
	b.used += size
	return reply
}

// replySize is about how many bytes a reply takes.
func replySize(r *Reply) int {
	size := int(unsafe.Sizeof(*r)) + len(r.Str)
	for i := range r.Elems {
		size += replySize(&r.Elems[i])
	}
	return size
}

// perform runs a queued command.
func (e *Engine) runQueued(x *Context, c *queuedCommand, budget *replyBudget) (reply Reply) {
	s, start := x.Session, x.Session.startTime()
	defer func() {
		e.recordCall(s, c.row, c.in.Args, start, &reply)
		e.stats.countReply(s, &reply)
	}()
	defer e.recoverPanic(s, c.in.Args, &reply)
	if c.run == nil {
		return c.failure
	}
	if budget.refuses(c.row) {
		return budget.exceeded()
	}
	x.Input = &c.in
	return budget.charge(c.row, c.run(x))
}
