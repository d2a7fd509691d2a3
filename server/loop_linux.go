package server

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/server/resp"

	"golang.org/x/sys/unix"
)

// A loop serves many connections in one goroutine, in turns:
//
//  1. Ask the system which clients have sent something (epoll).
//  2. Read once from each of them, until some tens of whole commands are there. Prefetch what these will
//     look up, side by side.
//  3. Execute them and render the replies, all into one batch. Go on with 2 and the next clients.
//  4. Wait until all that the replies report is committed: one group commit for the whole turn. In a cluster,
//     ask the system once more before that: see gather. If the commit fails or takes long, its clients leave:
//     see park.
//  5. Write each client's replies with one system call.
//
// A client with a long pipeline executes a part of it in each turn: see [turnBudget].
//
// The loop waits for nothing else. A connection that needs more leaves it for good, and goes on in a
// goroutine of its own ([conn.resume]), with all that has been read and not yet sent. These connections
// leave:
//
//   - The next command may take long or has to wait (engine.Outcome.Deferred).
//   - The client receives messages, because others send to it.
//   - A reply is large, or the client does not take its replies at once.
//   - The cluster does not commit what a reply reports, or takes long.
//   - A large command is half read.
//   - The connection ends with a reply that must arrive (QUIT).
//
// Go's network poller does not watch the descriptors of a loop. It would wake threads for nothing.
type loop struct {
	server  *Server
	poller  *poller
	clients atomic.Int64
	conns   []*conn // by descriptor

	turn

	number uint64        // of the turn
	due    time.Duration // when to look for silent clients; 0: never
	now    time.Duration // at the beginning of the turn, as clock.Monotonic says

	mu      sync.Mutex    // protects what follows
	added   []*conn       // that enter the loop
	timeout time.Duration // the new value of the option; 0: none
	recheck bool          // deadlines have changed
	halting bool          // end all connections, then the loop
	halted  bool
}

// gatherTime is how long a turn lasts in which the loop still looks for more clients before a commit of the
// cluster.
const gatherTime = 4 * time.Millisecond

// sweepInterval is the least time between two looks for silent clients.
const sweepInterval = 10 * time.Millisecond

// newLoops makes at most n loops, or one per two processors if n is -1. A loop keeps a processor busy. The
// operating system, and clients on this machine, keep another one busy. On two processors a second loop
// gives a tenth more of short requests for a fourth more processor time.
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

func newLoop(s *Server) (*loop, error) {
	poller, err := newPoller()
	if err != nil {
		return nil, err
	}
	return &loop{server: s, poller: poller, turn: turn{pipe: pipeline{limit: fullTurn}}}, nil
}

// enterLoop moves a new connection into the loop that has the fewest. It reports false if it cannot. Any
// goroutine may call it.
func (s *Server) enterLoop(c *conn) bool {
	if len(s.loops) == 0 {
		return false
	}
	return slices.MinFunc(s.loops, func(a, b *loop) int { return cmp.Compare(a.clients.Load(), b.clients.Load()) }).enqueue(c)
}

// enqueue hands a connection to the loop. It returns false if the connection cannot be served there.
func (l *loop) enqueue(c *conn) bool {
	if !c.detach() {
		return false
	}
	c.loop, c.pipe = l, &l.pipe
	c.guard.SetReadAhead(resp.MediumBuffer)
	l.clients.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added = append(l.added, c)
	l.wakeLocked()
	return true
}

// limitIdle applies a new timeout to idle clients. Any goroutine may call it.
func (l *loop) limitIdle(timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = timeout
	l.wakeLocked()
}

// recheckDeadlines makes the loop compute all deadlines anew. Any goroutine may call it.
func (l *loop) recheckDeadlines() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recheck = true
	l.wakeLocked()
}

// halt ends each connection when it waits for its client, and then the loop. No connection may enter any
// more. Any goroutine may call it.
func (l *loop) halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halting = true
	l.wakeLocked()
}

// wakeLocked wakes the loop. l.mu must be held.
func (l *loop) wakeLocked() {
	if !l.halted {
		l.poller.Wake()
	}
}

// run serves turns until the loop is halted.
func (l *loop) run() {
	for {
		events := l.wait()
		l.now = clock.Monotonic()
		rested := l.takeRested()
		l.number++
		woken, _ := l.serveEvents(events)
		l.resume(rested)
		woken = l.gather() || woken
		l.flush()
		l.countTraffic()
		if woken && !l.handleWake() {
			return
		}
		if l.due > 0 && l.now >= l.due {
			l.sweep()
		}
	}
}

// serveEvents serves clients that have sent something, but none twice in a turn. woken says that the loop was
// woken, more that there was such a client.
func (l *loop) serveEvents(events []unix.EpollEvent) (woken, more bool) {
	for i := range events {
		fd := int(events[i].Fd)
		if l.poller.IsWake(fd) {
			woken = true
			continue
		}
		if c := l.conns[fd]; c != nil && c.served != l.number {
			more = true
			l.receive(c, events[i].Events)
		}
		if len(l.queue) >= prefetchDepth {
			l.executeReady()
		}
	}
	l.executeReady()
	return woken, more
}

// gather serves clients that have sent something since the turn began, if the turn has to wait for a commit
// of the cluster. That takes some ms, for many commands hardly more than for few. gather reports whether the
// loop was woken.
func (l *loop) gather() (woken bool) {
	for more := true; more && l.pipe.lsn > 0 && l.server.engine.Deadline(0) > 0 && clock.Monotonic()-l.now < gatherTime; {
		again, others := l.serveEvents(l.poller.Wait(0))
		woken, more = woken || again, others
	}
	return woken
}

// wait waits until clients have sent something, or the loop is woken, or silent clients are due.
func (l *loop) wait() []unix.EpollEvent {
	timeout := -1 // ms
	if len(l.rested) > 0 {
		timeout = 0
	} else if l.due > 0 {
		timeout = int(max(l.due-clock.Monotonic()+time.Millisecond-1, 0) / time.Millisecond)
	}
	// A first call that does not wait, and so bypasses Go's scheduler, rarely finds an event.
	return l.poller.Wait(timeout)
}

// handleWake does what other goroutines have asked for. It reports false if the loop ends.
func (l *loop) handleWake() bool {
	l.poller.Reset()
	l.mu.Lock()
	added, timeout, halting := l.added, l.timeout, l.halting
	if l.recheck {
		l.due = l.now
	}
	l.added, l.timeout, l.recheck = nil, 0, false
	l.mu.Unlock()
	for _, c := range added {
		l.add(c)
	}
	if timeout > 0 {
		l.restartTimeouts(timeout)
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
	l.poller.Close()
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
	l.scheduleSweep(c)
	if err := l.poller.Add(c.fd); err != nil {
		l.end(c, os.NewSyscallError("epoll_ctl", err))
	}
}

// rest lets a connection wait for more from its client.
func (l *loop) rest(c *conn) {
	if c.guard.HalfReadSize() > resp.MediumBuffer {
		l.leave(c, nil)
		return
	}
	if c.renewDeadline() {
		c.since = l.now
	}
	c.guard.Release()
	c.showUnread(nil)
	l.scheduleSweep(c)
	if l.spans[len(l.spans)-1].from == len(l.pipe.out) {
		l.dropSpan()
		c.session.Answered()
	}
}

// deadlineOf is when a client must have sent something; 0: it need not.
func (l *loop) deadlineOf(c *conn) time.Duration {
	deadline := c.authDeadline()
	limit := l.server.Settings().Timeout
	if c.stalling.Load() {
		limit = l.server.timeouts.stall
	}
	if limit > 0 && (deadline == 0 || c.since+limit < deadline) {
		deadline = c.since + limit
	}
	return deadline
}

// restartTimeouts gives idle clients a new timeout from now on. The sweep decides whether it has passed.
func (l *loop) restartTimeouts(timeout time.Duration) {
	for _, c := range l.conns {
		if c != nil && !c.stalling.Load() {
			c.since = l.now
		}
	}
	if l.due == 0 || l.due > l.now+timeout {
		l.due = l.now + timeout
	}
}

// scheduleSweep makes the next sweep come in time for a client.
func (l *loop) scheduleSweep(c *conn) {
	if deadline := l.deadlineOf(c); deadline > 0 && (l.due == 0 || deadline < l.due) {
		l.due = deadline
	}
}

// sweep ends connections whose clients have been silent for too long.
func (l *loop) sweep() {
	l.due = 0
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		if deadline := l.deadlineOf(c); deadline > 0 && deadline <= l.now {
			why := errTimeout
			if c.authTimedOut() {
				why = errAuthTimeout
			}
			l.end(c, why)
			continue
		}
		l.scheduleSweep(c)
	}
	if l.due > 0 {
		l.due = max(l.due, l.now+sweepInterval)
	}
}

// leave lets a connection go on in a goroutine of its own. Its replies, the last of the turn, go with it.
// first is what it does there first, if not nil. leave returns errLeft.
func (l *loop) leave(c *conn, first handOff) error {
	own := newPipeline()
	l.takeSpan(own)
	l.handOff(c, own, first)
	return errLeft
}

// handOff starts the goroutine of a connection that leaves, with the replies in its pipeline.
func (l *loop) handOff(c *conn, own *pipeline, first handOff) {
	l.remove(c)
	c.session.OnLoop = false
	c.pipe = own
	c.stalling.Store(false)
	c.guard.SetReadAhead(resp.LargeBuffer)
	if err := c.attach(); err != nil {
		l.server.log.Error().Err(err).Int64("client", c.session.ID).Msg("cannot go on with a connection")
		l.end(c, err)
		return
	}
	l.server.serving.Go(func() {
		c.run(func() error { return c.resume(first) })
	})
}

// remove takes a connection out of the loop.
func (l *loop) remove(c *conn) {
	l.conns[c.fd] = nil
	l.clients.Add(-1)
	l.poller.Remove(c.fd)
	c.loop = nil
}

// end ends a connection.
func (l *loop) end(c *conn, why error) {
	if c.loop != nil {
		l.remove(c)
	}
	defer l.server.remove(c)
	defer c.closeFD()
	c.close()
	c.logClose(why)
}
