package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"mayfly/commands"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/resp"

	"golang.org/x/sys/unix"
)

// A loop serves many connections in one goroutine, in turns:
//
//  1. ask the system which clients have sent something (epoll);
//  2. read once from each of them, until there are some tens of whole commands, and let what these will
//     look up be fetched from memory side by side;
//  3. carry them out and render the replies, all into one batch; go on with 2 and the next clients;
//  4. wait until all that the replies report is committed: one group for the whole turn;
//  5. write each client's replies with one system call.
//
// Nothing else is waited for. A connection that needs more leaves the loop for good, with all that it
// has read and not yet sent, and goes on in a goroutine of its own ([conn.goOn]), for which waiting is
// easy. These are those
//
//   - whose next command may take long or has to wait (commands.Session.PutOff, CLIENT PAUSE);
//   - that subscribe to something, since others send to them;
//   - with a reply to be sent in pieces, or that do not take theirs at once;
//   - with a big command under way;
//   - that end with a reply which must arrive, which takes patience (QUIT).
//
// The descriptors of a loop's connections are not those that Go's own network poller watches, which
// would wake up threads for nothing.
type loop struct {
	server  *Server
	epoll   int
	bell    int // wakes the loop up (an eventfd)
	clients atomic.Int64
	conns   []*conn // by descriptor
	events  [256]unix.EpollEvent

	// What has been read and is to be carried out.
	visits []visit
	queue  []resp.Command // of the visits, one after the other
	more   []resp.Command // of the visit that is going on, after those in the queue
	parser resp.Parser
	ahead  commands.Lookahead

	// The replies of the turn.
	batch batch
	parts []part

	due time.Duration // when to look for clients that have been silent for too long; 0: never
	now time.Duration // at the beginning of the turn, as clock.Monotonic says

	in, out int // bytes since they were counted

	committing bool // in the keyspace, waiting for the disk

	mu       sync.Mutex // protects what follows
	arrivals []*conn
	patience time.Duration // the new value of the option timeout; 0: none
	halting  bool          // end all connections, then the loop
	halted   bool
}

// A part of the batch is what one connection is answered.
type part struct {
	c      *conn
	marks  int // the first of its marks is that with this index
	from   int // where it begins in the batch
	ticket keyspace.LSN
}

// A visit is what the loop does for one client in a turn: commands that have been read, and what follows
// them.
type visit struct {
	c        *conn
	from, to int   // its commands in the queue
	then     error // nil: nothing whole follows; errMore: there may be more; else the end, or a departure
}

const (
	fullTurn = 1 << 20 // bytes of replies that wait for the end of a turn at most

	// mostAhead is how many commands are looked at before their turn: so many as the processor's cache
	// can hold the items of.
	mostAhead = 32

	// sweepInterval is the least time between two looks for silent clients.
	sweepInterval = 10 * time.Millisecond
)

// errTimeout means that a client has been silent for too long.
var errTimeout = os.ErrDeadlineExceeded

// newLoops makes loops, n at most, or one to two processors if n is -1: a loop keeps a processor busy,
// the operating system's share of the work and the clients, if they are on this machine, another one.
// On two processors a second loop gives a tenth more of short requests, for a fourth more processor
// time.
func newLoops(s *Server, n int) []*loop {
	if n < 0 {
		n = max(runtime.GOMAXPROCS(0)/2, 1)
	}
	var loops []*loop
	for range n {
		l, err := newLoop(s)
		if err != nil {
			s.log.Warn().Err(err).Int("io-threads", len(loops)).Msg("cannot have as many io-threads as asked for")
			break
		}
		loops = append(loops, l)
	}
	return loops
}

func newLoop(s *Server) (_ *loop, err error) {
	l := &loop{server: s}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = l.watch(l.bell)
		if err == nil {
			return l, nil
		}
		_ = unix.Close(l.bell) // it was never used
	}
	_ = unix.Close(l.epoll) // it was never used
	return nil, os.NewSyscallError("eventfd", err)
}

// watch lets the system tell when there is something to read from a descriptor.
func (l *loop) watch(fd int) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// enterLoop takes a new connection into the loop that has the fewest; false if it cannot. Any goroutine
// may call it.
func (s *Server) enterLoop(c *conn) bool {
	if len(s.loops) == 0 {
		return false
	}
	return slices.MinFunc(s.loops, func(a, b *loop) int { return cmp.Compare(a.clients.Load(), b.clients.Load()) }).admit(c)
}

func (l *loop) admit(c *conn) bool {
	if !c.detach() {
		return false
	}
	c.loop = l
	c.guard.SetReadAhead(resp.MediumBuffer)
	l.clients.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals = append(l.arrivals, c)
	l.ring()
	return true
}

// limitIdle applies a new timeout to clients that are idle. Any goroutine may call it.
func (l *loop) limitIdle(timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patience = timeout
	l.ring()
}

// halt ends the connections, each when it waits for its client, and the loop. Any goroutine may call
// it; no connection is admitted any more.
func (l *loop) halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halting = true
	l.ring()
}

// ring wakes the loop up. l.mu must be held.
func (l *loop) ring() {
	if l.halted {
		return
	}
	one := [8]byte{7: 1}              // in either order of bytes it is not 0
	_, _ = unix.Write(l.bell, one[:]) // it fails only if the bell has been rung very often already
}

// run goes round until the loop is halted.
func (l *loop) run() {
	for {
		n := l.wait()
		l.now = clock.Monotonic()
		rung := false
		for i := range l.events[:n] {
			fd := int(l.events[i].Fd)
			if fd == l.bell {
				rung = true
				continue
			}
			if c := l.conns[fd]; c != nil {
				l.receive(c)
			}
			if len(l.queue) >= mostAhead {
				l.serveAll()
			}
		}
		l.serveAll()
		l.flush()
		l.count()
		if rung && !l.answerBell() {
			return
		}
		if l.due > 0 && l.now >= l.due {
			l.sweep()
		}
	}
}

// wait waits until clients have sent something, or the bell rings, or it is time to look for silent
// clients, and returns the number of events.
func (l *loop) wait() int {
	patience := -1 // ms
	if l.due > 0 {
		patience = int(max(l.due-clock.Monotonic()+time.Millisecond-1, 0) / time.Millisecond)
	}
	// To ask first without waiting, which the scheduler need not know of, would be a system call in vain in
	// most turns of short requests.
	n, err := unix.EpollWait(l.epoll, l.events[:], patience)
	if err != nil && err != unix.EINTR {
		panic(os.NewSyscallError("epoll_wait", err)) // only for mistakes of ours
	}
	return max(n, 0)
}

// answerBell does what others have asked for; false ends the loop.
func (l *loop) answerBell() bool {
	var rings [8]byte
	_, _ = unix.Read(l.bell, rings[:]) // sets it back
	l.mu.Lock()
	arrivals, patience, halting := l.arrivals, l.patience, l.halting
	l.arrivals, l.patience = nil, 0
	l.mu.Unlock()
	for _, c := range arrivals {
		l.add(c)
	}
	if patience > 0 {
		l.limitFromNow(patience)
	}
	if !halting {
		return true
	}
	for _, c := range l.conns {
		if c != nil {
			l.end(c, errTimeout) // as if interrupted while waiting
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = true
	_ = unix.Close(l.bell)  // nobody uses it any more
	_ = unix.Close(l.epoll) // nor this
	return false
}

// add begins to serve a connection.
func (l *loop) add(c *conn) {
	for c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*conn, len(l.conns)+64)...)
	}
	l.conns[c.fd] = c
	c.session.OnLoop = true
	c.since = l.now
	l.expect(c)
	if err := l.watch(c.fd); err != nil {
		l.end(c, os.NewSyscallError("epoll_ctl", err))
	}
}

// receive reads once from a client, and adds to the queue what commands there are.
func (l *loop) receive(c *conn) {
	v := visit{c: c, from: len(l.queue)}
	defer func() {
		if p := recover(); p != nil {
			l.failed(c, p)
		}
	}()
	var n int
	n, v.then = c.take()
	l.in += n
	c.received += n
	if v.then == nil {
		l.queue, v.then = l.parse(c, l.queue)
	}
	v.to = len(l.queue)
	l.visits = append(l.visits, v)
}

// parse appends to list the next commands of those that have been read, mostAhead at most, and says what
// follows, as visit.then does.
func (l *loop) parse(c *conn, list []resp.Command) ([]resp.Command, error) {
	limits := c.limits()
	for range mostAhead {
		command, err := l.parser.Next(&c.guard, limits)
		switch {
		case err != nil:
			return list, departure(func(b *batch) error { return c.reject(b, err) })
		case command.Args == nil:
			return list, nil
		}
		list = append(list, command)
		if command.Alone {
			break
		}
	}
	return list, errMore
}

// serveAll carries out what is in the queue.
func (l *loop) serveAll() {
	if len(l.visits) == 0 {
		return
	}
	if l.shouldLookAhead(l.queue) {
		for i := range l.visits {
			v := &l.visits[i]
			l.lookAhead(v.c, l.queue[v.from:v.to])
		}
		l.warm()
	}
	for i := range l.visits {
		l.serve(&l.visits[i])
	}
	clear(l.visits)
	clear(l.queue)
	clear(l.more)
	l.visits, l.queue, l.more = l.visits[:0], l.queue[:0], l.more[:0]
	l.parser.Forget(0)
}

// shouldLookAhead tells whether it is worth its while to look ahead in a list of commands.
func (l *loop) shouldLookAhead(list []resp.Command) bool {
	return len(list) > 1 && l.server.engine.WorthPrefetching()
}

// lookAhead notes what commands will look up, for warm to fetch.
func (l *loop) lookAhead(c *conn, list []resp.Command) {
	for i := range list {
		args := list[i].Args
		l.ahead.Add(c.session, args[:min(len(args), commands.LookaheadArgs)])
	}
}

// warm fetches what has been noted from memory side by side, where one after the other would wait for it.
// It is not needed: if it fails inside, the commands are carried out without.
func (l *loop) warm() {
	defer func() {
		if p := recover(); p != nil {
			l.ahead = commands.Lookahead{}
			l.server.log.Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("looking ahead failed inside")
		}
	}()
	l.server.engine.Prefetch(&l.ahead)
}

// serve carries out what a client has sent.
func (l *loop) serve(v *visit) {
	c := v.c
	start := part{c: c, marks: len(l.batch.marks), from: len(l.batch.out)}
	l.parts = append(l.parts, start)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if l.committing {
			panic(p)
		}
		if len(l.parts) > 0 && l.parts[len(l.parts)-1].c == c {
			l.drop()
		}
		l.failed(c, p)
	}()
	c.session.ResetTimer()
	err := errKilled // maybe by a command of those before it
	if !c.killed.Load() {
		err = l.pipeline(v)
	}
	switch departure, leaves := err.(departure); {
	case leaves:
		l.depart(c, departure)
	case err == errAway:
	case err != nil:
		l.drop()
		l.end(c, err)
	default:
		l.rest(c)
	}
}

// failed ends a connection, if it has not ended, after a panic while the loop was at work for it.
func (l *loop) failed(c *conn, p any) {
	l.server.log.Error().Int64("client", c.session.ID).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).
		Msg("a connection failed inside")
	if c.loop != nil {
		l.end(c, errFailed)
	}
}

// A departure is why a connection leaves its loop: what it is to do first.
type departure func(*batch) error

func (departure) Error() string { return "leaves its loop" }

func nothing(*batch) error { return nil }

var (
	errAgain  = errors.New("the command is to be carried out outside of the loop")
	errAway   = errors.New("has left its loop")
	errMore   = errors.New("there may be more commands")
	errFailed = errors.New("failed inside")
)

// pipeline carries out the commands of a visit and what follows them. The error is nil if the connection
// stays; errAway if it has left already.
func (l *loop) pipeline(v *visit) error {
	room := l.parser.Mark()
	list, then := l.queue[v.from:v.to], v.then
	for {
		switch err := l.carryOut(v.c, list); {
		case err == errMore:
			then = errMore
		case err != nil:
			return err
		}
		if then != errMore {
			return then
		}
		l.parser.Forget(room)
		list, then = l.parseMore(v.c)
	}
}

// carryOut carries out commands one after the other. If it does not get to the last, the error says why,
// and the guard has those that follow again: errMore if the replies had to be sent, and the connection
// stays.
func (l *loop) carryOut(c *conn, list []resp.Command) error {
	for i := range list {
		command := &list[i]
		if err := l.execute(c, command); err == errAgain {
			c.guard.Rewind(command.Start)
			return departure(nothing)
		} else if err != nil {
			c.guard.Rewind(command.End)
			return err
		}
		switch {
		case c.session.Closing, c.server.stopping.Load(), c.killed.Load():
			c.guard.Rewind(command.End)
			return departure(nothing)
		case len(l.batch.out) >= fullTurn, len(l.batch.marks) >= fullMarks:
			c.guard.Rewind(command.End)
			l.flush()
			if c.loop == nil {
				return errAway
			}
			l.parts = append(l.parts, part{c: c})
			return errMore
		}
	}
	return nil
}

// parseMore is parse for a connection of which all has been carried out that was in the queue.
func (l *loop) parseMore(c *conn) ([]resp.Command, error) {
	clear(l.more)
	var then error
	l.more, then = l.parse(c, l.more[:0])
	if l.shouldLookAhead(l.more) {
		l.lookAhead(c, l.more)
		l.warm()
	}
	return l.more, then
}

// execute carries out one command, unless it may take long, and adds its reply to the batch.
func (l *loop) execute(c *conn, command *resp.Command) error {
	if isHTTP(command.Args[0]) {
		return errAttack
	}
	if l.server.engine.Paused(c.session, command.Args) != nil {
		return errAgain
	}
	c.session.LSN = 0
	reply := l.server.engine.Execute(c.session, command.Args)
	if c.session.Deferred {
		c.session.Deferred = false
		return errAgain
	}
	c.executed++
	if resp.Exceeds(&reply, bigReply) {
		return c.piecemeal(reply)
	}
	l.batch.add(c.session.Proto, &reply, c.session.LSN)
	part := &l.parts[len(l.parts)-1]
	part.ticket = max(part.ticket, c.session.LSN)
	return nil
}

// piecemeal leaves the loop to send a big reply.
func (c *conn) piecemeal(reply commands.Reply) error {
	return departure(func(b *batch) error { return c.answer(b, &reply) })
}

// rest lets a connection wait for more from its client.
func (l *loop) rest(c *conn) {
	half := c.guard.HalfRead()
	switch {
	case c.guard.HalfReadSize() > resp.MediumBuffer:
		l.depart(c, nothing)
		return
	case half:
		progress := c.executed + c.received/stallBytes
		if c.deadline && progress == c.progress {
			break // the deadline stands
		}
		c.progress, c.since = progress, l.now
	default:
		c.since = l.now
	}
	c.deadline = half
	c.guard.Release()
	l.expect(c)
	part := &l.parts[len(l.parts)-1]
	if len(l.batch.out) == part.from {
		l.drop()
	}
}

// limit is when a client must have sent something, 0 if it need not.
func (l *loop) limit(c *conn) time.Duration {
	if c.deadline {
		return c.since + l.server.timeouts.stall
	}
	if timeout := l.server.Settings().Timeout; timeout > 0 {
		return c.since + timeout
	}
	return 0
}

// limitFromNow gives the clients that are idle so much time from now on. Whether it is really over is
// decided then.
func (l *loop) limitFromNow(patience time.Duration) {
	for _, c := range l.conns {
		if c != nil && !c.deadline {
			c.since = l.now
		}
	}
	if l.due == 0 || l.due > l.now+patience {
		l.due = l.now + patience
	}
}

// expect sees to it that somebody looks when a client has been silent for too long.
func (l *loop) expect(c *conn) {
	if limit := l.limit(c); limit > 0 && (l.due == 0 || limit < l.due) {
		l.due = limit
	}
}

// sweep ends the connections whose clients have been silent for too long.
func (l *loop) sweep() {
	l.due = 0
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		if limit := l.limit(c); limit > 0 && limit <= l.now {
			l.end(c, errTimeout)
			continue
		}
		l.expect(c)
	}
	if l.due > 0 {
		l.due = max(l.due, l.now+sweepInterval)
	}
}

// drop forgets the last part of the batch.
func (l *loop) drop() {
	last := len(l.parts) - 1
	p := &l.parts[last]
	l.batch.out, l.batch.marks = l.batch.out[:p.from], l.batch.marks[:p.marks]
	l.parts = l.parts[:last]
}

// flush sends the replies of the turn once all they report is committed.
func (l *loop) flush() {
	l.batch.commit(l.commit)
	from := 0
	for i := range l.parts {
		marks, to := len(l.batch.marks), 0
		if i+1 < len(l.parts) {
			marks = l.parts[i+1].marks
		}
		if marks > 0 {
			to = l.batch.marks[marks-1].end
		}
		l.deliver(l.parts[i].c, l.batch.out[from:to])
		from = to
	}
	clear(l.parts)
	l.parts = l.parts[:0]
	l.batch.reset()
}

// commit waits until what a ticket covers is committed. A panic meanwhile is the end of the process:
// the store is in an unknown state.
//
// The loop waits for the disk itself, with appendfsync always, too. To hand the turn to a goroutine and to
// serve others meanwhile was tried: waking threads twice a turn takes a third more processor time a
// command, and on two processors, one of them the clients', a fifth of the throughput.
func (l *loop) commit(ticket keyspace.LSN) error {
	l.committing = true
	err := l.server.engine.CommitNow(ticket)
	l.committing = false
	return err
}

// deliver sends a client's replies. A panic ends this connection only: those of the others must leave, once.
func (l *loop) deliver(c *conn, replies []byte) {
	defer func() {
		if p := recover(); p != nil {
			l.failed(c, p)
		}
	}()
	l.send(c, replies)
}

// send writes a client's replies. If it does not take them at once the connection leaves.
func (l *loop) send(c *conn, replies []byte) {
	if len(replies) == 0 {
		return
	}
	n, err := writeNow(c.fd, replies)
	switch {
	case err != nil:
		l.end(c, err)
	case n < len(replies):
		rest := newBatch()
		rest.out = append(rest.out, replies[n:]...)
		l.out += n
		l.leave(c, rest, func(b *batch) error { return c.send(b) })
	default:
		l.out += n
	}
}

// count adds up the bytes of the turn.
func (l *loop) count() {
	if l.in > 0 {
		l.server.traffic.in.Add(int64(l.in))
		l.server.traffic.out.Add(int64(l.out))
		l.in, l.out = 0, 0
	}
}

// depart lets a connection leave, with its part of the batch, which is the last.
func (l *loop) depart(c *conn, first departure) {
	p := &l.parts[len(l.parts)-1]
	own := newBatch()
	own.out = append(own.out, l.batch.out[p.from:]...)
	for _, m := range l.batch.marks[p.marks:] {
		own.marks = append(own.marks, mark{m.end - p.from, m.ticket})
	}
	own.ticket = p.ticket
	l.drop()
	l.leave(c, own, first)
}

// leave lets a connection go on in a goroutine of its own.
func (l *loop) leave(c *conn, own *batch, first departure) {
	l.remove(c)
	c.session.OnLoop = false
	c.guard.SetReadAhead(resp.LargeBuffer)
	if err := c.attach(); err != nil {
		l.server.log.Error().Err(err).Int64("client", c.session.ID).Msg("cannot go on with a connection")
		l.end(c, err)
		return
	}
	l.server.serving.Go(func() {
		c.run(func() error { return c.goOn(own, first) })
	})
}

// remove takes a connection out of the loop.
func (l *loop) remove(c *conn) {
	l.conns[c.fd] = nil
	l.clients.Add(-1)
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, c.fd, nil) // fails if it has not been watched yet
	c.loop = nil
}

// end ends a connection.
func (l *loop) end(c *conn, why error) {
	if c.loop != nil {
		l.remove(c)
	}
	defer l.server.remove(c)
	defer c.closeFD()
	c.end()
	c.over(why)
}

func (c *conn) closeFD() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd != noFD {
		_ = unix.Close(c.fd) // whatever it says, the connection is gone
		c.fd = noFD
	}
}

// detach makes the connection one for a loop: a descriptor of its own takes the place of the net.Conn.
func (c *conn) detach() bool {
	raw := c.socket.raw
	if raw == nil {
		return false
	}
	fd := noFD
	err := raw.raw.Control(func(old uintptr) {
		if dup, err := unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = dup
		}
	})
	if err != nil || fd == noFD {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.socket.Close() // the connection itself stays open
	c.socket = socket{}
	c.fd = fd
	if c.killed.Load() {
		cutOff(fd)
	}
	return true
}

// attach is the opposite of detach.
func (c *conn) attach() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := os.NewFile(uintptr(c.fd), "client")
	c.fd = noFD
	nc, err := net.FileConn(f)
	_ = f.Close() // there is another descriptor
	if err != nil {
		return err
	}
	keepAlive(nc, c.server.Settings().TCPKeepAlive)
	c.socket = newSocket(nc, c.server.timeouts.write, &c.server.traffic)
	return nil
}

// take reads once, without waiting. The error is io.EOF if the client sends no more, errKilled if nothing
// more is to be carried out for it.
func (c *conn) take() (int, error) {
	room, err := c.guard.Room()
	if err != nil {
		return 0, departure(func(b *batch) error { return c.reject(b, err) })
	}
	n, err := readNow(c.fd, room)
	switch {
	case err == unix.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	case c.killed.Load(): // what it has sent before can still be read
		return 0, errKilled
	}
	c.guard.Filled(n)
	return n, nil
}

// Reading and writing do not wait, so there is no need to tell Go's scheduler about them, which costs more
// than the shortest of these system calls.

func readNow(fd int, p []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, err
	}
}

// writeNow writes what the client takes without waiting and returns how much that was.
func writeNow(fd int, p []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return 0, nil
		}
		return 0, err
	}
}
