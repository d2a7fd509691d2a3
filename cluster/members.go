package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/entry"
	"mayfly/cluster/forming"
	"mayfly/cluster/topology"
	"mayfly/cluster/transport"
	"mayfly/expiry/clock"
	"mayfly/keyspace/replica"
)

// errNoLeader is the error of a request that needs a leader, while none is known.
var errNoLeader = replica.ErrNoMajority

// requestPath is the path of control requests that a node passes on to the leader.
const requestPath = "/cluster/request"

// request is a change that any node takes, and passes on to the leader.
type request struct {
	Op     string `json:"op"` // add, remove, transfer or update
	Name   string `json:"name"`
	Addr   string `json:"addr,omitempty"`
	Client string `json:"client,omitempty"`
	ID     uint64 `json:"id,omitempty,string"`
	Wait   int64  `json:"wait"` // ms
}

// requestTime bounds a request whose context has no end.
const requestTime = 30 * time.Second

// Add announces a node, which may join then. It returns when the change is committed.
func (n *Node) Add(ctx context.Context, name, addr string) error {
	return n.request(ctx, request{Op: "add", Name: name, Addr: addr})
}

// Remove removes a node. It returns when the change is committed.
func (n *Node) Remove(ctx context.Context, name string) error {
	return n.request(ctx, request{Op: "remove", Name: name})
}

// Transfer makes a node the leader; with an empty name the most up to date of the others. It returns when
// that node leads.
func (n *Node) Transfer(ctx context.Context, name string) error {
	return n.request(ctx, request{Op: "transfer", Name: name})
}

// requestPatience is how long a request waits for a leader, in times of cluster-node-timeout. An election
// takes one or two.
const requestPatience = 3

// requestPause is the time between two looks for a leader.
const requestPause = 50 * time.Millisecond

// request does what a request asks for if this node leads, or passes it on to the leader. It waits during an
// election, and while this node or the leader loads. A request may be done twice, if the connection to the
// leader breaks: that changes nothing more.
func (n *Node) request(ctx context.Context, r request) error {
	broken := false // a request whose answer was lost may have been done
	for began := clock.Monotonic(); ; {
		err := n.requestOnce(ctx, r)
		switch {
		case broken && r.Op == "remove" && n.isRemoved(r.Name, err):
			return nil
		case !isPassing(err, r.Op) || n.ctx.Err() != nil || clock.Monotonic()-began > requestPatience*n.options.NodeTimeout:
			return err
		}
		broken = broken || mayBeDone(err)
		pause := time.NewTimer(requestPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// isRemoved reports whether an error says that a node is no member: the leader knows none of the name, or the
// node is this one and has learnt that it is out.
func (n *Node) isRemoved(name string, err error) bool {
	return isError(err, notMember(name)) || name == n.options.Name && isError(err, errRemoved)
}

// errBroken is wrapped by the error of a request that the leader has not answered.
var errBroken = errors.New("the leader does not answer")

// isPassing reports whether a request may succeed at the next leader: no node leads, another one does, or the
// leader does not answer, or loads. A transfer that may have begun is not begun again.
func isPassing(err error, op string) bool {
	return isError(err, errNoLeader) || isError(err, errRestarting) || op != "transfer" && mayBeDone(err)
}

// mayBeDone reports whether a request has begun whose fate is not known.
func mayBeDone(err error) bool { return errors.Is(err, errBroken) || isError(err, errInterrupted) }

// isError reports whether this node, or the leader that it has asked, has returned the error is. Of the
// leader's only the words arrive.
func isError(err, is error) bool {
	return errors.Is(err, is) || err != nil && err.Error() == is.Error()
}

// notMember is the error for the removal of a node that does not exist.
func notMember(name string) error { return fmt.Errorf("%s is neither a member nor announced", name) }

func (n *Node) requestOnce(ctx context.Context, r request) error {
	inc := n.running.Load()
	if inc == nil {
		if v := n.View(); v.Role == topology.Removed || v.Role == topology.Failed {
			return errors.New(v.Cause)
		}
		return errRestarting
	}
	if _, leads := inc.leading(); leads {
		return n.serve(ctx, inc, r)
	}
	leader := n.View().Leader
	if leader == nil || leader.Self {
		return errNoLeader
	}
	r.Wait = requestTime.Milliseconds()
	if deadline, ok := ctx.Deadline(); ok {
		r.Wait = max(clock.Until(deadline).Milliseconds(), 1)
	}
	err := n.listener.Call(ctx, leader.Addr, requestPath, r, new(struct{}))
	refused, network := (*transport.RefusedError)(nil), (*net.OpError)(nil)
	switch {
	case err == nil || errors.As(err, &refused):
		return err
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w: %w", errNoLeader, err)
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// serve does what a request asks for. This node leads.
func (n *Node) serve(ctx context.Context, inc *incarnation, r request) error {
	switch r.Op {
	case "add":
		return n.add(ctx, inc, r.Name, r.Addr)
	case "remove":
		return n.remove(ctx, inc, r.Name)
	case "transfer":
		return n.handOver(ctx, inc, r.Name)
	case "update":
		return inc.propose(entry.Join, entry.Member{ID: r.ID, Name: r.Name, Addr: r.Addr, Client: r.Client})
	}
	return fmt.Errorf("the request %q is unknown: this node may be of an older version", r.Op)
}

func (n *Node) add(ctx context.Context, inc *incarnation, name, addr string) error {
	state := &inc.loop.status.Load().State
	if m := state.Named(name); m != nil && !m.Leaving {
		return fmt.Errorf("%s is a member already, at %s", name, m.Addr)
	}
	if err := inc.propose(entry.Announce, entry.Member{Name: name, Addr: addr}); err != nil {
		return err
	}
	return inc.await(ctx, func(s *core.Status) bool { return s.State.Expected(name) })
}

func (n *Node) remove(ctx context.Context, inc *incarnation, name string) error {
	state := &inc.loop.status.Load().State
	m := state.Named(name)
	if m == nil && !state.Expected(name) {
		return notMember(name)
	}
	if m != nil && len(state.Voters) == 1 && state.Voter(m.ID) {
		return fmt.Errorf("%s is the only node that votes", name)
	}
	if m != nil && m.ID == inc.identity.ID && n.handOver(ctx, inc, "") == nil {
		return errNoLeader // the next one removes this node, whose last writes have been answered
	}
	if err := inc.propose(entry.Leave, entry.Member{Name: name}); err != nil {
		return err
	}
	return inc.await(ctx, func(s *core.Status) bool { return !s.State.Expected(name) })
}

func (inc *incarnation) propose(op entry.Op, m entry.Member) error {
	err := inc.loop.call(func() error { return inc.loop.core.ProposeMember(op, m) })
	if errors.Is(err, core.ErrNotLeading) {
		return errNoLeader
	}
	return err
}

// await waits until a status of the incarnation satisfies a condition.
func (inc *incarnation) await(ctx context.Context, done func(*core.Status) bool) error {
	for {
		inc.node.mu.Lock()
		changed := inc.node.changed
		inc.node.mu.Unlock()
		if done(inc.loop.status.Load()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return replica.ErrNoMajority
		case <-inc.stop:
			return errInterrupted
		}
	}
}

// Replicated waits until n other nodes have all on disk that is committed now, or until ctx ends. It returns
// the number of nodes that have it. A node that does not lead knows of none.
func (n *Node) Replicated(ctx context.Context, nodes int) int {
	inc := n.running.Load()
	if inc == nil {
		return 0
	}
	var commit uint64
	if inc.loop.call(func() error {
		inc.loop.refresh()
		commit = inc.loop.status.Load().Commit
		return nil
	}) != nil {
		return 0
	}
	reached := 0
	_ = inc.await(ctx, func(s *core.Status) bool { // the number says all
		reached = 0
		for _, p := range s.Progress {
			if p.ID != inc.identity.ID && p.Match >= commit {
				reached++
			}
		}
		return reached >= nodes || s.Session == 0
	})
	return reached
}

// announce tells the cluster the addresses of this node if it has others: those for clients are not known at
// first.
func (n *Node) announce(inc *incarnation) {
	state := &inc.loop.status.Load().State
	m := state.WithID(inc.identity.ID)
	if m == nil || m.Name != n.options.Name || m.Leaving || m.Addr == n.options.Addr && m.Client == n.options.ClientAddr {
		return
	}
	if m.Addr != n.options.Addr {
		if err := n.conflict(); err != nil { // the peers had not answered at the start
			inc.end(err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(n.ctx, announceEvery)
	defer cancel()
	err := n.request(ctx, request{Op: "update", Name: n.options.Name, Addr: n.options.Addr, Client: n.options.ClientAddr, ID: m.ID})
	if err != nil {
		n.options.Log.Debug().Err(err).Msg("cannot tell the leader the addresses of this node yet")
	}
}

// announceEvery is the time between two attempts of announce.
const announceEvery = time.Second

// announceAll calls announce until the node is closed.
func (n *Node) announceAll() {
	for n.ctx.Err() == nil {
		if inc := n.running.Load(); inc != nil {
			n.announce(inc)
		}
		n.sleep(announceEvery)
	}
}

// membership is the node as the forming of clusters needs it.
type membership struct{ n *Node }

// Leader returns the leader, if this node knows it.
func (m membership) Leader() (forming.Member, bool) {
	leader := m.n.View().Leader
	if leader == nil {
		return forming.Member{}, false
	}
	return forming.Member{Name: leader.Name, ID: leader.ID, Addr: leader.Addr, Client: leader.Client}, true
}

// Members returns who is in the cluster or announced.
func (m membership) Members() []forming.Member {
	inc := m.n.running.Load()
	if inc == nil {
		return nil
	}
	state := &inc.loop.status.Load().State
	var list []forming.Member
	for _, members := range [][]entry.Member{state.Members, state.Announced} {
		for _, member := range members {
			list = append(list, forming.Member{Name: member.Name, ID: member.ID, Addr: member.Addr, Client: member.Client})
		}
	}
	return list
}

// Removed reports whether an id is known to have left the cluster.
func (m membership) Removed(id uint64) bool { return m.n.removed.has(id) }

// Join makes a node a member in place of the one with its name. A node that is in contact is not replaced:
// another server has its name.
func (m membership) Join(ctx context.Context, joiner forming.Member) error {
	inc := m.n.running.Load()
	if inc == nil {
		return errRestarting
	}
	s, leads := inc.leading()
	if !leads {
		return errNoLeader
	}
	present := s.State.Named(joiner.Name)
	switch {
	case !s.State.Expected(joiner.Name):
		return fmt.Errorf("%s is not expected: CLUSTER ADD %s=%s on a node of the cluster announces it", joiner.Name, joiner.Name, joiner.Addr)
	case present != nil && present.ID == joiner.ID:
		return nil
	case present != nil && inc.heard(present.ID):
		return fmt.Errorf("%s is in contact with the cluster at %s, as another server", joiner.Name, present.Addr)
	}
	member := entry.Member{ID: joiner.ID, Name: joiner.Name, Addr: joiner.Addr, Client: joiner.Client}
	if err := inc.propose(entry.Join, member); err != nil {
		return err
	}
	return inc.await(ctx, func(s *core.Status) bool {
		now := s.State.Named(joiner.Name)
		return now != nil && now.ID == joiner.ID
	})
}

// heard reports whether a member has sent a message lately.
func (inc *incarnation) heard(id uint64) bool {
	last := inc.transport.LastContact(id)
	return last != 0 && clock.Monotonic()-last < 2*inc.node.options.NodeTimeout
}

// handler answers the control requests of other nodes.
func (n *Node) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", n.former)
	mux.HandleFunc("POST "+requestPath, n.answer)
	mux.HandleFunc("POST "+roomPath, n.answerRoom)
	mux.HandleFunc("POST "+usersPath, n.answerUsers)
	return mux
}

// answer does what another node passes on.
func (n *Node) answer(w http.ResponseWriter, hr *http.Request) {
	var r request
	if err := json.NewDecoder(http.MaxBytesReader(w, hr.Body, 1<<16)).Decode(&r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(hr.Context(), min(time.Duration(r.Wait)*time.Millisecond, requestTime))
	defer cancel()
	inc := n.running.Load()
	err := errRestarting
	if inc != nil {
		if _, leads := inc.leading(); leads {
			err = n.serve(ctx, inc, r)
		} else {
			err = errNoLeader
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_, _ = w.Write([]byte("{}")) // the other node may have gone
}

// drainPatience is how long a transfer of the lead waits for the last batches to be committed.
const drainPatience = time.Second

// answerPatience is how long a transfer waits for the clients to take their replies.
const answerPatience = 100 * time.Millisecond

// Errors of a transfer.
var (
	errTransfer  = errors.New("the transfer has failed: this node still leads")
	errElsewhere = errors.New("this node leads no more, and the other one does not lead yet")
)

// handOver makes another node the leader. First the keyspace refuses new changes, commits the others and
// confirms that it has led: their replies leave, and this node goes on as a follower.
func (n *Node) handOver(ctx context.Context, inc *incarnation, name string) error {
	select {
	case n.transfer <- struct{}{}:
		defer func() { <-n.transfer }()
	case <-inc.stop:
		return errRestarting
	case <-ctx.Done():
		return ctx.Err()
	}
	s, leads := inc.leading()
	if !leads {
		return errNoLeader
	}
	var to uint64
	if name != "" {
		m := s.State.Named(name)
		switch {
		case m == nil:
			return fmt.Errorf("%s is not a member", name)
		case m.ID == inc.identity.ID:
			return nil
		case !s.State.Voter(m.ID):
			return fmt.Errorf("%s does not vote yet", name)
		case !inc.heard(m.ID):
			return fmt.Errorf("%s is not in contact", name)
		}
		to = m.ID
	} else if !slices.ContainsFunc(s.State.Voters, func(id uint64) bool { return id != inc.identity.ID && inc.heard(id) }) {
		return errors.New("no other node that votes is in contact")
	}
	session := s.Session
	drained := make(chan struct{})
	inc.applier.push(task{drain: drained})
	var err error
	for waits := true; waits && err == nil; {
		select {
		case <-drained:
			waits = false
		case <-inc.stop:
			return errInterrupted
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(roomPeriod):
			waits = inc.rep.leads(session) // if the disk hangs, watchRoom ends the session
		}
	}
	if err == nil && inc.rep.leads(session) {
		ended := make(chan error, 1)
		go func() { ended <- inc.ks.EndDrain(clock.Monotonic() + drainPatience) }() // a disk that hangs may hold it for longer
		unfinished := replica.ErrNoMajority
		select {
		case unfinished = <-ended:
		case <-time.After(drainPatience + roomPeriod):
		case <-inc.stop:
			return errInterrupted
		}
		if unfinished != nil {
			inc.log.Warn().Err(unfinished).Msg("hands the lead over before its last writes are known to be committed")
		}
		answered, cancel := context.WithTimeout(ctx, answerPatience)
		n.options.Answered(answered)
		cancel()
	}
	if err == nil && inc.rep.leads(session) {
		err = inc.loop.call(func() error {
			err := inc.loop.core.Transfer(to, clock.Monotonic())
			inc.loop.publish()
			return err
		})
	}
	if err == nil {
		waiting, cancel := context.WithTimeout(ctx, 2*n.options.NodeTimeout)
		defer cancel()
		err = n.await(waiting, func(v *topology.View) bool {
			return v.Leader != nil && !v.Leader.Self && (to == 0 || v.Leader.ID == to)
		})
	}
	if err != nil && inc.rep.leads(session) {
		inc.applier.push(task{lead: session}) // it goes on
		return errTransfer
	}
	if err != nil {
		return errElsewhere
	}
	return nil
}

// StepDown hands the lead over before the node stops, if it leads, and reports whether another node leads
// then that this one has made the leader. It does nothing if no other node can lead.
func (n *Node) StepDown(ctx context.Context) bool {
	inc := n.running.Load()
	if inc == nil {
		return false
	}
	if _, leads := inc.leading(); !leads {
		return false
	}
	err := n.handOver(ctx, inc, "")
	if err != nil {
		n.options.Log.Info().Err(err).Msg("no other node takes the lead before this one stops")
	}
	return err == nil
}
