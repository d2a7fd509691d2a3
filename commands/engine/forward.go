package engine

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"mayfly/cluster/topology"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// With cluster-proxy a follower does not reply MOVED: it passes the command on to the leader, where a session
// of its own runs the client's commands.
//
//  1. What any node runs, it runs here. So the session here has the client's name, protocol and selected
//     container, and the other gets them with the commands. Reads after READONLY run here, too.
//     Both judge the user's rights. A leader that knows no users gets no commands of restricted ones.
//  2. MULTI queues here. EXEC passes on the whole transaction if a command of it needs the leader or anything
//     is watched.
//  3. WATCH is passed on. If the other session ends before EXEC, EXEC replies null, as if a watched key had
//     changed.
//  4. The other session never waits for a leader. It replies MOVED to what it has not run: see
//     [Session.Proxied].

// Forward is a command that the leader runs.
type Forward struct {
	Commands [][]string // to send, in order; the client gets the reply of the last one
	Kind     ForwardKind
	Silent   bool // the client wants no reply
	Writes   bool // it may change something
	Unwatch  bool // the first command is UNWATCH: what was watched before does not count
	State    SessionState
	Waited   time.Duration // for a leader
	Moved    string        // the error if the leader knows no users; may be empty
	Done     func()        // called after an array as the reply; nil: nothing is to be done
}

// ForwardKind says what a [Forward] means for watched keys.
type ForwardKind uint8

// The kinds.
const (
	ForwardPlain ForwardKind = iota
	ForwardWatch
	ForwardExec
)

// SessionState is what a session at the leader has in common with the one of the client.
type SessionState struct {
	Proto      int    // of RESP
	Database   string // the selected container
	Name       string // CLIENT SETNAME
	LibName    string
	LibVer     string
	NoTouch    bool // CLIENT NO-TOUCH
	User       string
	Restricted bool // the user may not do everything
}

// Errors of commands that are passed on.
const (
	ErrElsewhere = Error("MOVED 0 another node") // of a session of a proxy
	// ErrUnknownFate is the error of a command that writes, without a reply, whose leader is gone.
	ErrUnknownFate = Error("UNCERTAIN the connection to the leader broke: the command may have been run or not")
	// ErrNotRun is the error of a command that no leader has run, or that changes nothing.
	ErrNotRun = ErrNoMajority
)

// ErrKnowsNoUsers is the error of [Leaders.Dial] for a leader that would not restrict a restricted client.
var ErrKnowsNoUsers = topology.ErrKnowsNoUsers

// remoteWatch says what a session watches at the leader.
type remoteWatch uint8

const (
	watchesNothing remoteWatch = iota
	watches
	unwatches // it has watched something, and has not told the leader that it does no more
)

// SetProxy sets whether a follower passes commands on to the leader (cluster-proxy).
func (e *Engine) SetProxy(on bool) { e.proxy.Store(on) }

// queuesFor reports whether a command that this node refuses for want of the lead is queued all the same:
// EXEC is passed on.
func (e *Engine) queuesFor(s *Session, r *Row, refusal error) bool {
	return e.proxy.Load() && !s.Proxied && s.Multi.Open && r.Flags&Immediate == 0 && isRedirection(refusal) && r.Flags&NoMulti == 0
}

// forward passes a command on that this node refuses for want of the lead, or that is about keys watched at
// the leader. It reports whether the outcome is complete. If not, the command runs here, or is refused with
// the error.
func (e *Engine) forward(s *Session, r *Row, args []string, refusal error, out *Outcome) (err error, done bool) {
	moved := refusal != nil && strings.HasPrefix(refusal.Error(), "MOVED ")
	exec := r.Scope == ScopeQueue && s.Multi.Open
	if moved {
		if err := s.admitMode(r); err != nil {
			return err, false
		}
		if s.Multi.Open && r.Flags&NoMulti != 0 {
			return errNotInMulti, false
		}
	}
	switch {
	case refusal != nil && !moved:
		return refusal, false
	case exec && s.Multi.failed:
		return nil, false
	case !moved && !(exec && s.remote == watches):
		return nil, false
	case s.Multi.Open && !exec:
		return nil, false // WATCH: an error of its own
	case s.OnLoop:
		out.Deferred = true
		return nil, true
	}
	if exec && s.Multi.WatcherSize > 0 { // this node led when it was watched
		e.discard(s)
		out.Reply, s.Current = NullArray, r
		return nil, true
	}
	needs := r.Flags
	if exec {
		needs = s.Multi.flags
	}
	f := &Forward{State: s.state(), Waited: s.endWaits(), Writes: needs&(Write|MayWrite) != 0}
	if refusal != nil {
		f.Moved = refusal.Error()
	}
	switch {
	case exec:
		if err := cmp.Or(s.checkForwarded(), e.mayForward(s)); err != nil {
			return err, false
		}
		f.Kind = ForwardExec
		if s.remote == unwatches {
			f.Commands, f.Unwatch = append(f.Commands, []string{"UNWATCH"}), true
		}
		f.Commands = append(f.Commands, []string{"MULTI"})
		var selected string
		for i := range s.Multi.Commands {
			c := s.Multi.Commands[i]
			f.Commands = append(f.Commands, slices.Clone(e.withBody(c.row, c.in.Args)))
			if c.row.Name == "select" && len(c.in.Args) == 2 {
				selected = c.in.Args[1]
			}
			e.trackForwarded(s, c.row, c.in.Args)
		}
		if selected != "" {
			if s.Tracking.reads { // what it reads there has no notes here
				e.Broker.OnTold(&keyspace.Told{Clients: []int64{s.ID}})
			}
			f.Done = func() { e.selectAsLeader(s, selected) }
		}
		e.discard(s)
		s.remote = watchesNothing
	default:
		if s.remote == unwatches {
			f.Commands, f.Unwatch = append(f.Commands, []string{"UNWATCH"}), true
			s.remote = watchesNothing
		}
		if r.Name == "watch" {
			f.Kind, s.remote = ForwardWatch, watches
		}
	}
	if !exec {
		e.trackForwarded(s, r, args)
	}
	f.Commands = append(f.Commands, e.withBody(r, args))
	s.noteCommand(r, e.Now())
	reply := OK
	s.Replies.filter(&reply)
	f.Silent = reply.Kind == KindNone
	s.ResetTimer()
	out.Forward = f
	return nil, true
}

// withBody returns the arguments of a command for the leader. It may not know a script that this node has
// cached: EVALSHA becomes EVAL with the body.
func (e *Engine) withBody(r *Row, args []string) []string {
	if r.Scope != ScopeScript || !NamesScript(args) {
		return args
	}
	script, ok := e.Scripts.Cache.Get(args[1])
	if !ok {
		return args
	}
	args = slices.Clone(args)
	args[0], args[1] = strings.ReplaceAll(r.Name, "sha", ""), script.Body()
	return args
}

// checkForwarded returns an error if a queued command is about this node or this connection: the leader
// cannot run it.
func (s *Session) checkForwarded() error {
	for i := range s.Multi.Commands {
		r := s.Multi.Commands[i].row
		if r.Flags&(Write|ReadOnly|OnLeader|Publishes) != 0 {
			continue
		}
		switch r.Name {
		case "ping", "echo", "time", "select", "unwatch", "multi":
		default:
			return Errorf(errNotForwarded, strings.ToUpper(r.FullName))
		}
	}
	return nil
}

const errNotForwarded = "ERR %s is about this node, and the leader runs the rest of the transaction: send it before MULTI"

// selectAsLeader selects the container that a transaction has selected at the leader. This node may not know
// it yet.
func (e *Engine) selectAsLeader(s *Session, name string) {
	var out Outcome
	e.execute(s, []string{"SELECT", name}, &out)
	s.In = Input{}
	if _, number := redisfmt.ParseInt(name); out.Reply.Kind == KindError && !number {
		s.Update(func() { s.Database, s.DatabaseNumber = name, 0 })
	}
}

// state returns what the session at the leader is to have.
func (s *Session) state() SessionState {
	return SessionState{
		Proto: s.Proto, Database: s.Database, Name: s.Name, LibName: s.LibName, LibVer: s.LibVer, NoTouch: s.noTouch,
		User: s.User(), Restricted: !s.rights.Open()}
}

// Leader returns the raft id of the node to which commands are passed on. If there is none, the id is 0, and
// the channel closes when it is time to look again; nil: there has been none for too long.
func (e *Engine) Leader() (id uint64, again <-chan struct{}) {
	if v := e.Cluster.View(); v.Leader != nil && e.LeaderReachable(v.Leader.ID) {
		return v.Leader.ID, nil
	}
	return 0, e.Leadership.Await()
}

// LeaderReachable reports whether a node is the leader, as far as this node knows, and has been heard of.
func (e *Engine) LeaderReachable(id uint64) bool {
	v := e.Cluster.View()
	return v.Leader != nil && v.Leader.ID == id && (v.Role.Open() || v.Role == topology.Loading) && v.Quorum && !v.Silent() && (!v.Leader.Self || v.Leads())
}

// Patience is how long commands wait for the cluster in all, and for a leader.
func Patience() (all, election time.Duration) { return CommandPatience, ElectionPatience }

// Leaders is where the commands of a client are passed on to.
type Leaders struct {
	*Engine
	session *Session
}

// Leaders returns where the commands of a session are passed on to.
func (e *Engine) Leaders(s *Session) Leaders { return Leaders{e, s} }

// Dial opens a connection to a session that a node runs for the client, with the user of the state.
func (l Leaders) Dial(ctx context.Context, id uint64, state *SessionState) (net.Conn, error) {
	return l.Cluster.DialClient(ctx, id, topology.Client{Addr: l.session.Addr, LAddr: l.session.LAddr, User: state.User, Restricted: state.Restricted})
}
