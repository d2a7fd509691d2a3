package server

import (
	"fmt"
	"runtime/debug"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/resp"

	"golang.org/x/sys/unix"
)

// A turn is what a loop works on between two waits: commands that have been read, and replies.
type turn struct {
	ready []readyConn
	queue []resp.Command // of the ready connections, one after the other
	more  []resp.Command // of the connection that is served, after those in the queue
	ahead engine.Lookahead

	pipe  pipeline
	spans []replySpan

	budget turnBudget // of the connection that is served
	rested []*conn    // with commands left for the next turn
	spare  []*conn    // the memory of the last such list

	lastWait commitWait

	read, written int // bytes, for the traffic counters
}

// A readyConn is a connection whose client has sent something, with its commands.
type readyConn struct {
	c        *conn
	from, to int   // its commands in the queue
	then     error // nil: nothing whole follows; errMore: there may be more; else why the connection ends
}

// A replySpan is the part of the turn's replies that belongs to one connection. It ends where the next
// begins.
type replySpan struct {
	c    *conn
	mark int // index of its first mark
	from int // offset of its first byte
}

const (
	fullTurn = 1 << 20 // bytes of replies that wait for the end of a turn at most

	// prefetchDepth is how many commands are prefetched together: the processor's cache holds their items.
	prefetchDepth = 32
)

// A turnBudget bounds what a connection executes in one turn of its loop, so that clients with long pipelines
// alternate with others. The rest of its commands stays in the guard until the next turn.
//
// Time stands for all that a command costs, which its bytes alone do not tell. The engine has read the clock
// for its statistics.
type turnBudget struct {
	commands int
	until    time.Duration // as clock.Monotonic says; 0: not known yet
}

const (
	turnCommands = 1 << 10
	turnTime     = time.Millisecond
)

// spend notes that a command has ended at a time, 0 if unknown. It reports whether the budget is used up.
func (b *turnBudget) spend(end time.Duration) bool {
	b.commands++
	if b.until == 0 && end > 0 {
		b.until = end + turnTime
	}
	return b.commands >= turnCommands || end > 0 && end > b.until
}

// receive reads once from a client and queues the commands that are whole. events is what epoll reports.
func (l *loop) receive(c *conn, events uint32) {
	if c.rested {
		if events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			c.kill() // the client is gone: drop the rest of its commands
		}
		return
	}
	r := readyConn{c: c, from: len(l.queue)}
	if !c.contain(func() {
		var n int
		n, r.then = c.read()
		l.read += n
		c.received += n
		if r.then == nil {
			l.queue, r.then = l.parse(c, l.queue)
		}
	}) {
		l.abandon(c)
		return
	}
	r.to = len(l.queue)
	l.ready = append(l.ready, r)
}

// takeRested returns the connections that have left commands for this turn.
func (l *loop) takeRested() []*conn {
	list := l.rested
	l.rested, l.spare = l.spare, nil
	return list
}

// resume executes commands of connections that have left some for this turn. It comes after the events, which
// leave these connections out: a connection has its part in a turn once.
func (l *loop) resume(list []*conn) {
	for _, c := range list {
		if c.loop != l { // it has ended since
			continue
		}
		r := readyConn{c: c, from: len(l.queue)}
		if !c.contain(func() { l.queue, r.then = l.parse(c, l.queue) }) {
			l.abandon(c)
			continue
		}
		r.to = len(l.queue)
		l.ready = append(l.ready, r)
		if len(l.queue) >= prefetchDepth {
			l.executeReady()
		}
	}
	l.executeReady()
	clear(list)
	l.spare = list[:0]
}

// parse appends the next commands that have been read to list, at most prefetchDepth, and says what follows,
// as readyConn.then does.
func (l *loop) parse(c *conn, list []resp.Command) ([]resp.Command, error) {
	limits := c.limits()
	for range prefetchDepth {
		command, err := l.pipe.Next(&c.guard, limits)
		if err != nil || command.Args == nil {
			return list, err
		}
		list = append(list, command)
		if command.Alone {
			break
		}
	}
	return list, errMore
}

// executeReady executes the queue.
func (l *loop) executeReady() {
	if len(l.ready) == 0 {
		return
	}
	if l.worthPrefetching(l.queue) {
		for i := range l.ready {
			r := &l.ready[i]
			l.addPrefetch(r.c, l.queue[r.from:r.to])
		}
		l.prefetch()
	}
	for i := range l.ready {
		l.serve(&l.ready[i])
	}
	clear(l.ready)
	clear(l.queue)
	clear(l.more)
	l.ready, l.queue, l.more = l.ready[:0], l.queue[:0], l.more[:0]
	l.pipe.Forget(0)
}

// worthPrefetching reports whether prefetching for a list of commands gains anything.
func (l *loop) worthPrefetching(list []resp.Command) bool {
	return len(list) > 1 && l.server.engine.WorthPrefetching()
}

// addPrefetch notes what commands will look up.
func (l *loop) addPrefetch(c *conn, list []resp.Command) {
	for i := range list {
		args := list[i].Args
		l.ahead.Add(c.session, args[:min(len(args), engine.LookaheadArgs)])
	}
}

// prefetch fetches what has been noted from memory, side by side instead of one after the other. A panic
// costs only the prefetch.
func (l *loop) prefetch() {
	defer func() {
		if p := recover(); p != nil {
			l.ahead = engine.Lookahead{}
			l.server.log.Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("prefetching failed inside")
		}
	}()
	l.server.engine.Prefetch(&l.ahead)
}

// serve executes what a client has sent.
func (l *loop) serve(r *readyConn) {
	c := r.c
	c.served = l.number
	l.spans = append(l.spans, replySpan{c, len(l.pipe.marks), len(l.pipe.out)})
	if !c.contain(func() {
		c.session.ResetTimer()
		c.session.NoteWait(l.lastWait.before(l.now))
		c.rested, l.budget = false, turnBudget{}
		err := errKilled // perhaps by a command of those before it
		if !c.killed.Load() {
			err = l.executeAll(r)
		}
		switch err {
		case nil:
			l.rest(c)
		case errTurn:
			c.rested, c.since = true, l.now
			l.rested = append(l.rested, c)
		case errLeft:
		default:
			l.dropSpan()
			l.end(c, err)
		}
	}) {
		l.abandon(c)
	}
}

// abandon ends a connection after a panic in work for it, with its replies if they are the last.
func (l *loop) abandon(c *conn) {
	if n := len(l.spans); n > 0 && l.spans[n-1].c == c {
		l.dropSpan()
	}
	if c.loop != nil {
		l.end(c, errPanic)
	}
}

// executeAll executes all whole commands of a client. It returns nil if the connection waits for more,
// errLeft if it has left the loop, and else why it ends.
func (l *loop) executeAll(r *readyConn) error {
	mark := l.pipe.Mark()
	list, then := l.queue[r.from:r.to], r.then
	for {
		switch err := l.execute(r.c, list); {
		case err == errMore:
			then = errMore
		case err != nil:
			return err
		}
		switch {
		case then == errMore:
		case then != nil && lingers(then):
			c, violation := r.c, then
			return l.leave(c, func() error { return c.reject(violation) })
		default:
			return then
		}
		l.pipe.Forget(mark)
		list, then = l.parseMore(r.c)
	}
}

// execute executes commands one after the other. If it stops before the last, the guard has the rest again,
// and the error says why, as executeAll does; errMore if the replies had to be sent.
func (l *loop) execute(c *conn, list []resp.Command) error {
	for i := range list {
		command := &list[i]
		pending, err := l.pipe.execute(c, command.Args)
		spent := l.budget.spend(c.session.LastEnd())
		if err == nil && !spent {
			continue
		}
		c.guard.Rewind(command.End)
		switch err {
		case errDeferred:
			c.guard.Rewind(command.Start)
			return l.leave(c, nil)
		case errLarge:
			return l.leave(c, func() error { return c.stream(pending) })
		case errQuit, errStopping, errKilled, errHTTP:
			return l.leave(c, func() error { return c.finish(err) })
		case errFull:
			l.flush()
			if c.loop == nil {
				return errLeft
			}
			l.spans = append(l.spans, replySpan{c: c})
			if !spent {
				return errMore
			}
			return errTurn
		case nil:
			return errTurn
		}
		return err
	}
	return nil
}

// parseMore parses for a connection whose queue has been executed.
func (l *loop) parseMore(c *conn) ([]resp.Command, error) {
	clear(l.more)
	var then error
	l.more, then = l.parse(c, l.more[:0])
	if l.worthPrefetching(l.more) {
		l.addPrefetch(c, l.more)
		l.prefetch()
	}
	return l.more, then
}

// dropSpan forgets the last replies.
func (l *loop) dropSpan() {
	last := len(l.spans) - 1
	span := &l.spans[last]
	l.pipe.out, l.pipe.marks = l.pipe.out[:span.from], l.pipe.marks[:span.mark]
	l.spans = l.spans[:last]
}

// takeSpan moves the last replies into another pipeline.
func (l *loop) takeSpan(to *pipeline) {
	span := &l.spans[len(l.spans)-1]
	to.out = append(to.out, l.pipe.out[span.from:]...)
	to.waited = l.pipe.waited
	for _, m := range l.pipe.marks[span.mark:] {
		to.marks = append(to.marks, mark{m.end - span.from, m.lsn, m.changed})
		to.lsn = max(to.lsn, m.lsn)
	}
	l.dropSpan()
}

// flush sends the replies of the turn once all they report is committed.
func (l *loop) flush() {
	if !l.commit() {
		l.park()
		return
	}
	from := 0
	for i := range l.spans {
		marks, to := len(l.pipe.marks), 0
		if i+1 < len(l.spans) {
			marks = l.spans[i+1].mark
		}
		if marks > 0 {
			to = l.pipe.marks[marks-1].end
		}
		l.send(l.spans[i].c, l.pipe.out[from:to])
		from = to
	}
	clear(l.spans)
	l.spans = l.spans[:0]
	l.pipe.reset()
}

// commit waits until the replies of the turn may leave. It returns false if the commit of a cluster fails, or
// takes long and goes on. What is served next has waited as long.
func (l *loop) commit() bool {
	if l.pipe.lsn == 0 {
		return true
	}
	l.pipe.until = l.server.engine.Deadline(l.pipe.waited)
	if l.pipe.until == 0 {
		l.pipe.commit(l.waitCommit, l.waitCommit)
		return true
	}
	began := clock.Monotonic()
	err := l.waitCommit(l.pipe.lsn)
	l.pipe.waited += l.lastWait.note(began)
	return err == nil
}

// park lets connections with replies that are not committed go on in goroutines of their own, which wait for
// the outcome. The other replies leave.
func (l *loop) park() {
	for len(l.spans) > 0 {
		c, own := l.spans[len(l.spans)-1].c, newPipeline()
		l.takeSpan(own)
		if own.lsn > 0 {
			if !c.contain(func() { l.handOff(c, own, c.flush) }) {
				l.abandon(c)
			}
			continue
		}
		l.send(c, own.out)
		own.release()
	}
	l.pipe.reset()
}

// waitCommit waits until what an LSN covers is committed.
//
// The loop waits for the disk itself, also with appendfsync always. Handing the turn to a goroutine to serve
// others meanwhile was tried. Waking threads twice a turn costs a third more processor time a command. On
// two processors shared with the clients it costs a fifth of the throughput.
func (l *loop) waitCommit(lsn keyspace.LSN) error {
	return l.pipe.waitCommit(l.server.engine.CommitNow, lsn)
}

// send writes a client's replies. If the client does not take them at once, its connection leaves. A panic
// ends this connection only: the others' replies leave, once.
func (l *loop) send(c *conn, replies []byte) {
	if len(replies) == 0 {
		c.answered()
		return
	}
	if !c.contain(func() {
		n, err := writeNow(c.fd, replies)
		if err != nil {
			l.end(c, err)
			return
		}
		l.written += n
		if n < len(replies) {
			rest := newPipeline()
			rest.out = append(rest.out, replies[n:]...)
			l.handOff(c, rest, c.flush)
			return
		}
		c.answered()
	}) {
		l.abandon(c)
	}
}

// answered notes that the replies so far have left.
func (c *conn) answered() {
	c.session.Answered()
	if c.rested {
		c.session.Received() // commands are left for the next turn
	}
}

// countTraffic counts the bytes of the turn.
func (l *loop) countTraffic() {
	if l.read > 0 {
		l.server.traffic.in.Add(int64(l.read))
		l.server.traffic.out.Add(int64(l.written))
		l.read, l.written = 0, 0
	}
}
