package engine

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster/topology"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
)

// Cluster is the cluster around the engine's node, as the engine needs it. Safe for concurrent use.
type Cluster interface {
	// View returns the cluster as this node sees it. It costs an atomic load, and never returns nil.
	View() *topology.View
	// Add announces a node, which may join then. It returns when the change is committed. Any node
	// takes it, and passes it on to the leader.
	Add(ctx context.Context, name, addr string) error
	// Remove removes a node by name. It returns when the change is committed.
	Remove(ctx context.Context, name string) error
	// Transfer makes a node the leader; with an empty name the most up to date of the others. It returns
	// when that node leads.
	Transfer(ctx context.Context, name string) error
	// Replicated waits until n other nodes have all on disk that is committed now, or until ctx ends. It
	// returns the number of nodes that have it.
	Replicated(ctx context.Context, n int) int
	// DialClient opens a connection at whose other end the node with an id runs a session for a client of
	// this node. The error is [topology.ErrKnowsNoUsers] if the client would get more rights there.
	DialClient(ctx context.Context, id uint64, client topology.Client) (net.Conn, error)
}

// Loaded reports whether a keyspace is open that commands may use.
func (e *Engine) Loaded() bool { return !e.suspended.Load() && e.Keyspace() != nil }

// KeyspaceStats returns the figures of the keyspace, none if no one is open.
func (e *Engine) KeyspaceStats() keyspace.Stats {
	if ks := e.Keyspace(); ks != nil {
		return ks.Stats()
	}
	return keyspace.Stats{}
}

// term returns the term of the cluster; 0 without one.
func (e *Engine) term() uint64 {
	if e.Cluster == nil {
		return 0
	}
	return e.Cluster.View().Term
}

// Mode is the mode of the server in HELLO and INFO.
func (e *Engine) Mode() string {
	if e.Cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// Role is the role of the server in HELLO.
func (e *Engine) Role() string {
	if e.Cluster != nil && !e.Cluster.View().Leads() {
		return "replica"
	}
	return "master"
}

// Suspend ends the use of the keyspace, before the node closes it without committing. It disconnects all
// clients; commands that need a keyspace are answered with LOADING until [Engine.SetKeyspace]. No reply
// leaves afterwards that reports or reveals what the keyspace has not committed. It waits a moment for what
// runs without locks: that may be what has removed the node, and ends about now.
func (e *Engine) Suspend() {
	e.suspended.Store(true)
	e.Scripts.EndAll(errScriptDeposed)
	e.Broker.TellAll()
	ending, cancel := context.WithTimeout(context.Background(), deposedGrace)
	e.awaitNone(ending, func(s *Session) bool { return s.unanswered.Load()&unansweredOutside != 0 })
	cancel()
	// A session that passes the check from here on has begun after it: what it executes is refused. The
	// others are disconnected.
	e.Host.Disconnect(func(*Session) bool { return true })
}

// leadership is what the engine remembers of the view before.
type leadership struct {
	mu     sync.Mutex // protects what follows
	led    bool       // this node was the leader
	master topology.Member
	known  bool // master is the last leader that was known

	After func(d time.Duration, f func()) // calls f after a time; nil: time.AfterFunc

	closing   atomic.Bool   // deposed sessions are to be disconnected soon
	movedAt   atomic.Int64  // monotonic time at which a client was last sent to the leader, ns
	LostAt    atomic.Int64  // monotonic time since which no leader is known to serve, ns; 0: there is one
	changedMu sync.Mutex    // protects changed
	changed   chan struct{} // closed when commands that wait for a leader are to try again; nil: none waits
}

// LeaderChanged applies a change of leaders. The node calls it with each View whose leader, or whose own
// role, differs from the one before, before it applies what another leader has written.
//
// At a node that does not lead any more, blocked commands end with an error. The connections of clients that
// it has served as the leader close a little later, but for those that can only receive messages: these come
// from any node. Every node publishes a new leader as a Sentinel does.
func (e *Engine) LeaderChanged(v *topology.View) {
	l := &e.Leadership
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake(nil)
	if v.Leader != nil && v.Quorum {
		l.found()
	} else {
		l.lost()
	}
	if v.Leader != nil {
		if l.known && l.master.Client != v.Leader.Client {
			e.publishSwitch(v.Name, &l.master, v.Leader)
		}
		l.master, l.known = *v.Leader, true
	}
	if l.led && !v.Leads() {
		e.Waiters.EndAll()
		e.Scripts.EndAll(errScriptDeposed)
		if !e.proxy.Load() { // else they are served on
			e.disconnectLed()
		}
	}
	if !l.led && v.Leads() { // a transfer has failed, perhaps
		for _, s := range e.Host.Sessions() {
			s.Deposed.Store(false)
			s.stranded.Store(false)
		}
	}
	l.led = v.Leads()
	e.Broker.TellAll()
}

// deposedGrace is the time between two looks for clients of a deposed leader that have their replies.
const deposedGrace = 100 * time.Millisecond

// disconnectLed disconnects, soon, the clients that the node has served as the leader, once they have the
// replies under way. Clients of Sentinels keep their connections as long as these work, and do not understand
// MOVED; Sentinels make a deposed master disconnect its clients for the same reason. What such a client sends
// meanwhile does not run and gets no reply: see awaitsLeader. A transaction that has begun is told who leads:
// no library repeats one whose connection breaks. A client that can only receive messages stays until it
// unsubscribes. One that has greeted the leader, and was not served, is disconnected at its first command:
// see awaitsLeader.
func (e *Engine) disconnectLed() {
	for _, s := range e.Host.Sessions() {
		if s.led.Load() && !s.Proxied {
			s.Deposed.Store(true)
		}
	}
	e.disconnectDeposed(CommandPatience)
}

// disconnectDeposed disconnects deposed sessions after a while, and later those whose replies have not left,
// that are in a transaction, or have sent what is not read yet: a client that loses a reply sends its command
// again. After the patience it waits for none.
func (e *Engine) disconnectDeposed(patience time.Duration) {
	after := e.Leadership.After
	if after == nil {
		after = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	after(deposedGrace, func() {
		busy := false
		e.Leadership.closing.Store(false)
		e.Host.Disconnect(func(s *Session) bool {
			if !s.Deposed.Load() || s.onlyReceives() {
				return false
			}
			waits := patience > 0 && s.AwaitsReply()
			busy = busy || waits
			return !waits
		})
		if busy {
			e.disconnectDeposed(patience - deposedGrace)
		}
	})
}

// AwaitAnswered waits until the replies to all that the node has run as the leader have left, or until ctx
// ends. A client of Sentinels that hears of the next leader closes its connections, and sends again what had
// no reply.
func (e *Engine) AwaitAnswered(ctx context.Context) {
	e.awaitNone(ctx, func(s *Session) bool { return s.unanswered.Load()&unansweredLead != 0 })
}

// AwaitQuiet waits until no client has been sent to the leader for a moment, or until ctx ends. A library
// goes on to ask a deposed leader until it has looked for the next one, and repeats no transaction.
func (e *Engine) AwaitQuiet(ctx context.Context) {
	const moment = 100 * time.Millisecond
	left := func() time.Duration { return moment - (clock.Monotonic() - time.Duration(e.Leadership.movedAt.Load())) }
	for d := left(); d > 0 && ctx.Err() == nil; d = left() {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

// awaitNone waits until a condition holds for no session, or until ctx ends.
func (e *Engine) awaitNone(ctx context.Context, holds func(*Session) bool) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for slices.ContainsFunc(e.Host.Sessions(), holds) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// publishSwitch publishes a change of leaders on Sentinel's channel.
func (e *Engine) publishSwitch(name string, from, to *topology.Member) {
	oldHost, oldPort := from.Split()
	newHost, newPort := to.Split()
	e.Broker.Queue.push(Event{
		local: true, Kind: SubChannel, Channel: "+switch-master",
		Text: name + " " + oldHost + " " + oldPort + " " + newHost + " " + newPort,
	})
	e.Broker.ensureHelper()
}

// vetoed returns the error of a command whose transaction the keyspace refuses.
func (e *Engine) vetoed(s *Session, r *Row, args []string, veto error) error {
	if errors.Is(veto, replica.ErrFollower) {
		if s.Proxied {
			return ErrElsewhere
		}
		return e.notServed(s, r, args)
	}
	if errors.As(veto, new(*keyspace.HeldError)) {
		return Error("HELD " + veto.Error())
	}
	return CommitFailure(veto, false)
}
