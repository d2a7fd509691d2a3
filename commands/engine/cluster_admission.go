package engine

import (
	"errors"
	"strings"
	"time"

	"mayfly/cluster/topology"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
)

// In a cluster each command has a place, which its row gives:
//
//   - OnNode: the node that gets it runs it. Its reply says nothing that only a leader knows, so it waits for
//     no commit.
//   - Write, ReadOnly and OnLeader: the leader runs it. Its reply leaves once a majority has confirmed, after
//     the command has run, that the node leads.
//   - ReadOnly again: after READONLY on its connection any node runs it, on its own past, unless keys are
//     watched at the leader: what is read then must be as new as the watch.
//
// EXEC has the place of what it runs. Another node replies with MOVED and the leader's address.

// service is how a node serves a command.
type service uint8

const (
	serveAlone    service = iota // without a cluster
	ServeOnNode                  // OnNode
	ServeDetached                // OnNode, while no keyspace is open
	serveLeads                   // as the leader
	serveStale                   // a read of this node's past
)

// loadingCode is the code of a node without a keyspace.
const loadingCode = "LOADING "

// The errors of a node that does not serve a command, in Redis' words where Redis has the case.
const (
	errMoved       = "MOVED %d %s" // slot, host:port
	ErrLoadingData = Error(loadingCode + "Redis is loading the dataset in memory")
	ErrOutside     = Error("CLUSTERDOWN this node is not in the cluster, or does not know its leader yet")
	ErrNoMajority  = Error("CLUSTERDOWN no majority of nodes is reachable")
	ErrUnsettled   = Error("CLUSTERDOWN the leader has changed; the fate of its last writes is not known yet")
	errNotLeading  = Error("CLUSTERDOWN this node does not lead any more; nothing was changed")
	errHandsOver   = Error("CLUSTERDOWN the disk of this node is full: another node is to lead")
	errFullLeader  = Error("CLUSTERDOWN the disk of the leader is full; the fate of its last writes is not known yet")
	ErrDeposed     = Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
)

// The errors of a command that has changed something, if the cluster does not say in time whether it keeps
// that. Libraries repeat a command after CLUSTERDOWN by themselves, and none after a code that Redis does not
// have.
const (
	ErrNotConfirmed   = Error("UNCERTAIN no majority of nodes has answered in time: the change may be kept or not")
	errLeaderChanged  = Error("UNCERTAIN the leader has changed: the change may be kept or not")
	errFullNotDecided = Error("UNCERTAIN the disk of the leader is full: the change may be kept or not")
	errDoneInPart     = Error("UNCERTAIN the command has ended before all of its pieces were done: a part of them may be kept")
)

// admitInCluster returns the error of a command that this node does not serve now, or nil. It notes how the
// node serves it.
func (e *Engine) admitInCluster(s *Session, r *Row, args []string) error {
	needs := r.Flags
	if r.Scope == ScopeQueue {
		needs = s.Multi.flags
	}
	loaded := e.Loaded()
	if needs&(Write|ReadOnly|OnLeader) == 0 {
		s.Service, s.greeted = ServeOnNode, s.greeted || e.Cluster.View().Leads()
		if !loaded {
			s.Service = ServeDetached
			if r.Flags&Loading == 0 && r.Group != "cluster" || r.Scope == ScopeQueue {
				return e.NotLoaded()
			}
		}
		return nil
	}
	v := e.Cluster.View()
	if s.Readonly && s.remote != watches && needs&(Write|OnLeader) == 0 && !v.Leads() && (v.Role.Open() || v.Role == topology.Loading) {
		s.Service = serveStale
		if !loaded || v.Role == topology.Loading {
			return ErrLoadingData
		}
		return nil
	}
	s.Service = serveLeads
	if loaded && v.Leads() && v.Quorum {
		e.Leadership.found()
		if !s.led.Load() { // a load is far cheaper than a store
			s.led.Store(true)
		}
		return nil
	}
	return e.notServed(s, r, args)
}

// NotLoaded returns the error of a command that needs a keyspace, while there is none. A node that does not
// load says what it waits for. The code is LOADING all the same: libraries wait then.
func (e *Engine) NotLoaded() error {
	if v := e.Cluster.View(); v.Cause != "" && !v.Role.Open() && v.Role != topology.Loading {
		return Error(loadingCode + OneLine.Replace(v.Cause))
	}
	return ErrLoadingData
}

// notServed returns the error of a command that only a leader serves, at a node that does not lead.
func (e *Engine) notServed(s *Session, r *Row, args []string) error {
	v := e.Cluster.View()
	switch {
	case v.Leader != nil && !v.Leader.Self && v.Leader.Client != "" && v.Quorum: // as in Redis a node that loads redirects, too
		if !v.Silent() {
			e.Leadership.found()
		}
		if r.AtFollower != "" && !s.Proxied && !e.proxy.Load() { // MOVED tells a proxy that the leader runs it
			return r.AtFollower
		}
		if !e.proxy.Load() { // else the leader runs it for the client
			e.Leadership.movedAt.Store(int64(clock.Monotonic()))
		}
		return Errorf(errMoved, s.slotOf(r, args), v.Leader.Client)
	case v.Role == topology.Loading, v.Role.Open() && !e.Loaded():
		return ErrLoadingData
	case v.Cause != "" && !v.Role.Open():
		return Error("CLUSTERDOWN " + OneLine.Replace(v.Cause))
	}
	return ErrNoMajority
}

// CommandPatience is how long a command waits for the cluster in all: for a leader, to be written, and for
// its commit. Clients have the refusal within 3 s. The time that a command computes does not count.
const CommandPatience = 2800 * time.Millisecond

// ElectionPatience is how long commands wait for a leader after one was lost, and for a node that loads its
// data anew. It leaves some of the patience for the commit.
const ElectionPatience = 2 * time.Second

// awaitPeriod is the time between two looks for a leader, if the cluster does not say that it has changed.
const awaitPeriod = 100 * time.Millisecond

// awaitsLeader returns a channel that closes when it is time to try a command again that was refused with
// err, because there may be a leader soon. It returns nil if the command is to be refused now. So clients see
// nothing of an election but the time it takes, and long outages at once.
func (e *Engine) awaitsLeader(s *Session, err error) <-chan struct{} {
	v := e.Cluster.View()
	if s.greeted && !v.Leads() && !e.proxy.Load() && isRedirection(err) {
		s.greeted = false
		if !s.Deposed.Swap(true) && !e.Leadership.closing.Swap(true) {
			e.disconnectDeposed(CommandPatience)
		}
	}
	switch {
	case s.Wait != nil:
	case s.Deposed.Load() && !s.InSubscribedMode() && !s.Multi.Open && isRedirection(err):
		s.stranded.Store(true)
		return e.Leadership.next() // the end of the connection ends the wait: clients send again then what had no reply
	case (err == ErrNoMajority || err == ErrLoadingData || err == errHandsOver) && (v.Role.Open() || v.Role == topology.Loading),
		isRedirection(err) && v.Silent():
		return e.awaitsElection(s)
	}
	return nil
}

// awaitsElection is awaitsLeader, whatever the error.
func (e *Engine) awaitsElection(s *Session) <-chan struct{} {
	now := clock.Monotonic()
	if s.Awaits == 0 {
		s.Awaits = now
	}
	if s.waited+now-s.Awaits > ElectionPatience {
		return nil
	}
	return e.Leadership.Await()
}

// notBegun is what becomes of a command that was admitted at the leader, and found that the node follows when
// it was to begin. It comes again, as if it had not come. The error is that of a command that cannot wait for
// a leader.
func (e *Engine) notBegun(s *Session, r *Row, args []string, out *Outcome) error {
	s.Current = nil
	if s.Proxied {
		return ErrElsewhere
	}
	if s.Wait == nil {
		if out.Resume = e.awaitsElection(s); out.Resume != nil {
			out.Deferred = true
			return nil
		}
	}
	return e.notServed(s, r, args)
}

// NoteWait notes that the next commands, which were read together, have waited for the cluster before they
// are executed. What each waits for adds to that of those behind it. The next call of NoteWait begins anew.
func (s *Session) NoteWait(d time.Duration) {
	if d != 0 || !s.Proxied { // the proxy tells the wait of each command
		s.waited = d
	}
}

// endWaits returns how long the command that ends has waited for the cluster, besides its commit.
func (s *Session) endWaits() time.Duration {
	if s.Awaits != 0 {
		s.waited += clock.Monotonic() - s.Awaits
		s.Awaits = 0
	}
	waited := s.waited
	if s.Proxied && !s.Multi.Open { // the next command has a wait of its own
		s.waited = 0
	}
	return waited
}

// Deadline returns when the commit of commands fails that have waited for the cluster before, as
// clock.Monotonic says; 0 without a cluster.
func (e *Engine) Deadline(waited time.Duration) time.Duration {
	if e.Cluster == nil {
		return 0
	}
	return clock.Monotonic() + max(CommandPatience-waited, 1)
}

// ErrCommitting is the error of a commit that goes on.
var ErrCommitting = errors.New("the commit goes on")

const (
	// LoopPatience is how long a commit of the cluster may keep the other clients of a loop waiting. It is
	// longer than nearly all commits of a cluster that works.
	LoopPatience = 500 * time.Millisecond

	// stuckPatience is LoopPatience after a commit that took longer, until one does not.
	stuckPatience = 10 * time.Millisecond
)

// commitBriefly is Wait in a cluster, but fails with ErrCommitting if that takes long: Wait has the outcome
// then.
func (e *Engine) commitBriefly(lsn keyspace.LSN, until time.Duration) error {
	patience := LoopPatience
	if e.Stuck.Load() {
		patience = stuckPatience
	}
	brief := min(clock.Monotonic()+patience, until)
	var err error
	if ks := e.Keyspace(); ks == nil || ks.Committed(lsn) {
		// What is left is the confirmation that the node leads. It may end early: only this caller waits for
		// it.
		err = e.commit(lsn, brief, true)
		if brief < until && errors.Is(err, replica.ErrNoMajority) && clock.Monotonic() >= brief {
			err = ErrCommitting
		}
	} else {
		// A commit that ends early fails for all who wait for it. So another goroutine goes on with it.
		done := make(chan error, 1)
		go func() { done <- e.commit(lsn, until, true) }()
		select {
		case err = <-done:
		case <-time.After(brief - clock.Monotonic()):
			err = ErrCommitting
		}
	}
	e.Stuck.Store(err == ErrCommitting)
	return err
}

// throttle limits the uncommitted bytes before a command that may write. In a cluster it fails when the
// command has waited for too long.
func (e *Engine) throttle(s *Session) error {
	ks := e.Keyspace()
	if !ks.Throttles() {
		return nil
	}
	waited, start := s.endWaits(), clock.Monotonic()
	err := ks.Throttle(e.Deadline(waited))
	if e.Cluster == nil {
		return nil // see Writable
	}
	s.waited = waited + clock.Monotonic() - start
	if err != nil {
		return CommitFailure(err, false)
	}
	return nil
}

// Await returns a channel that closes at the next change of leaders or soon; nil if there has been none for
// too long.
func (l *leadership) Await() <-chan struct{} {
	l.lost()
	if since := l.LostAt.Load(); since != 0 && int64(clock.Monotonic())-since > int64(ElectionPatience) {
		return nil
	}
	return l.next()
}

// next returns a channel that closes at the next change of leaders or soon.
func (l *leadership) next() <-chan struct{} {
	l.changedMu.Lock()
	defer l.changedMu.Unlock()
	if l.changed == nil {
		changed := make(chan struct{})
		l.changed = changed
		time.AfterFunc(awaitPeriod, func() { l.wake(changed) })
	}
	return l.changed
}

// wake makes the commands that wait try again. With a channel it does so only if they wait for that.
func (l *leadership) wake(which chan struct{}) {
	l.changedMu.Lock()
	defer l.changedMu.Unlock()
	if l.changed != nil && (which == nil || which == l.changed) {
		close(l.changed)
		l.changed = nil
	}
}

// lost notes that there is no leader.
func (l *leadership) lost() {
	if l.LostAt.Load() == 0 {
		l.LostAt.CompareAndSwap(0, int64(clock.Monotonic())+1)
	}
}

// found notes that there is a leader.
func (l *leadership) found() {
	if l.LostAt.Load() != 0 { // a load is far cheaper than a store
		l.LostAt.Store(0)
	}
}

// slotOf returns the hash slot of the first key of a command, of EXEC that of the first queued one with a
// key, as clients compute it; 0 without a key.
func (s *Session) slotOf(r *Row, args []string) int {
	keys := r.KeysOf(args)
	if r.Scope == ScopeQueue {
		for i := 0; i < len(s.Multi.Commands) && len(keys) == 0; i++ {
			c := s.Multi.Commands[i]
			keys = c.row.KeysOf(c.in.Args)
		}
	}
	if len(keys) == 0 {
		return 0
	}
	return topology.Slot(keys[0])
}

// isRedirection reports whether an error says that another node, or none, serves a command. As in Redis, EXEC
// replies it as it is.
func isRedirection(err error) bool {
	return strings.HasPrefix(err.Error(), "MOVED ") || strings.HasPrefix(err.Error(), "CLUSTERDOWN ")
}

// isLoading reports whether an error says that there is no keyspace.
func isLoading(err error) bool { return strings.HasPrefix(err.Error(), loadingCode) }

// settle returns what must be committed before the reply of a command of a cluster leaves. lsn covers what it
// has read and written. The error is that of a read that would reveal what may never be committed.
func (s *Session) settle(lsn keyspace.LSN) (keyspace.LSN, error) {
	switch s.Service {
	case ServeOnNode, ServeDetached:
		return 0, nil
	case serveLeads:
		return max(lsn, 1), nil // the commit confirms the leader, whatever it covers
	}
	switch ks := s.keyspace; {
	case ks.Leads():
		return max(lsn, 1), nil
	case ks.Unsettled():
		return 0, ErrUnsettled
	}
	return 0, nil
}

// commitFailures are the errors of a command whose commit fails for a cause: one that has changed nothing,
// one that has.
var commitFailures = []struct {
	cause              error
	unchanged, changed Error
}{
	{replica.ErrNoMajority, ErrNoMajority, ErrNotConfirmed},
	{replica.ErrFollower, errNotLeading, errNotLeading},
	{replica.ErrVoid, ErrUnsettled, errLeaderChanged},
	{replica.ErrFull, errFullLeader, errFullNotDecided},
}

// CommitFailure returns the error of a command whose commit fails, or is refused, for a cause. changed says
// that it has changed something.
func CommitFailure(cause error, changed bool) error {
	for _, f := range commitFailures {
		switch {
		case !errors.Is(cause, f.cause):
		case changed:
			return f.changed
		default:
			return f.unchanged
		}
	}
	return Error("MISCONF Errors writing to the journal: " + cause.Error())
}
