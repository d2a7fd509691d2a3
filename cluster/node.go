package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster/bus"
	"mayfly/cluster/core"
	"mayfly/cluster/disk"
	"mayfly/cluster/forming"
	"mayfly/cluster/stores"
	"mayfly/cluster/topology"
	"mayfly/cluster/transport"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/replica"
	"mayfly/vfs"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Options say who a node is and what it drives. All fields but the files of credentials are required.
type Options struct {
	Dir   string // the data folder
	Name  string // of this node
	Peers []forming.Peer

	Addr       string // host:port for the other nodes
	ClientAddr string // host:port for clients
	MasterName string // for Sentinel's clients
	Partitions int    // of a data folder that is made

	NodeTimeout time.Duration // without a leader before an election
	ReadIndex   bool          // ask a majority for each read
	LogSize     int64         // bytes of the raft log to keep for nodes that were away

	CertFile, KeyFile, CACertFile, SecretFile string

	// Open opens the keyspace with the replicator, with all settings in force.
	Open func(replica.Replicator) (*keyspace.Keyspace, error)
	// Serve makes clients use a keyspace.
	Serve func(*keyspace.Keyspace)
	// Suspend ends the use of the keyspace that Serve was called with, and disconnects all clients.
	Suspend func()
	// Changed is called with each view whose leader or own role is another than before.
	Changed func(*topology.View)
	// Answered waits until the replies to all that this node has done as the leader have left, or until the
	// context ends.
	Answered func(context.Context)
	// Messages takes published messages of other nodes; EventsWanted hears whether another node wants
	// keyspace events. See [bus.Options].
	Messages     func([]bus.Message)
	EventsWanted func(bool)
	// ServeClient runs a session for a client of another node until conn ends. It returns at once. See
	// [Node.DialClient].
	ServeClient func(conn net.Conn, addr, laddr, user string)
	// Users returns a digest of the node's users, the same on nodes with the same ones. Nil: it has none.
	Users func() string

	Log zerolog.Logger

	storesFS vfs.FS                                                // of stores that arrive or leave, for tests; nil: that of the machine
	wrapLog  func(raftLog) raftLog                                 // a disk for tests; nil: that of the folder
	wrapSend func(func([]*raftpb.Message)) func([]*raftpb.Message) // a network for tests; nil: that of the machine
}

// slowed returns the log as a test wants its disk.
func (n *Node) slowed(log raftLog) raftLog {
	if n.options.wrapLog != nil {
		log = n.options.wrapLog(log)
	}
	return slowed(log)
}

// stores returns the file system for stores that arrive, and for the room of those that leave.
func (n *Node) stores() vfs.FS {
	if n.options.storesFS != nil {
		return n.options.storesFS
	}
	return vfs.OS
}

// Pauses between two attempts to open an incarnation, and the time after which an incarnation counts as good.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	goodAfter    = time.Minute
)

// viewInterval is the longest age of a view.
const viewInterval = 100 * time.Millisecond

// Node is this server as a node of a cluster. Safe for concurrent use.
type Node struct {
	options  Options
	listener *transport.Listener
	former   *forming.Former
	zap      *zap.Logger
	raftLog  raft.Logger
	bus      *bus.Bus
	removed  idSet  // ids that are no members any more
	cleared  uint64 // the id for which the data folder has no files of before; used by run only

	view     atomic.Pointer[topology.View]
	leader   atomic.Pointer[topology.Member] // the last other node that led: a node that was removed or is cut off sends clients there
	learned  atomic.Pointer[learned]         // nil: nothing yet
	users    sync.Map                        // name → what the member has said last: see compareUsers
	running  atomic.Pointer[incarnation]     // nil between two incarnations
	refreshC chan struct{}                   // has room for one: the view is to be made anew

	orderly atomic.Bool // see Close
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	showing sync.Mutex // held while a new view is made and told

	// incoming is held while stores are written, and from when raft has taken them until the incarnation is
	// closed. An earlier incarnation may still write some that it has begun to receive.
	incoming sync.Mutex

	transfer chan struct{} // has room for one, which is in it during a transfer of the lead

	mu      sync.Mutex    // protects what follows
	role    topology.Role // while no incarnation runs
	cause   string        // why none runs
	changed chan struct{} // closed and replaced at each new view
}

// New listens for the other nodes. Errors are one line each. [Node.Start] begins.
func New(o Options) (*Node, error) {
	addrs := []string{o.Addr}
	for _, p := range o.Peers {
		addrs = append(addrs, p.Addr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Node{options: o, ctx: ctx, cancel: cancel, refreshC: make(chan struct{}, 1), transfer: make(chan struct{}, 1), changed: make(chan struct{}),
		role: topology.Loading, cause: "the node starts"}
	n.zap, n.raftLog = transport.NewZap(o.Log), raftLogger{o.Log}
	n.bus = bus.New(bus.Options{Deliver: o.Messages, Wanted: o.EventsWanted, Log: o.Log})
	if err := os.MkdirAll(n.path(), 0o700); err != nil {
		return nil, err
	}
	if err := stores.CheckMount(o.Dir); err != nil {
		return nil, err
	}
	credentials, err := transport.Load(transport.CredentialOptions{CertFile: o.CertFile, KeyFile: o.KeyFile, CACertFile: o.CACertFile,
		SecretFile: o.SecretFile, Dir: n.path(tlsDir), Addrs: addrs})
	if err != nil {
		return nil, err
	}
	n.listener, err = transport.Listen(transport.ListenOptions{Addr: o.Addr, Credentials: credentials, Hosts: n.hosts, Log: o.Log})
	if err != nil {
		return nil, err
	}
	n.former, err = n.readIdentity()
	if err != nil {
		_ = n.listener.Close() // it has no connections
		return nil, err
	}
	n.view.Store(n.makeView())
	n.listener.Handle(n.handler())
	return n, nil
}

// readIdentity reads who this node is. A node whose identity is damaged, or is gone though it has a raft log,
// may only join the cluster of its peers with a new id.
func (n *Node) readIdentity() (*forming.Former, error) {
	o := &n.options
	config := forming.Config{Dir: n.path(), Name: o.Name, Addr: o.Addr, Client: o.ClientAddr, Peers: o.Peers,
		HasData: hasData(o.Dir), Partitions: o.Partitions, NodeTimeout: o.NodeTimeout, Call: n.listener.Call, Log: o.Log}
	former, err := forming.New(config)
	switch damaged := (*forming.DamageError)(nil); {
	case errors.As(err, &damaged):
		o.Log.Error().Msg(err.Error() + "; the node comes back with a new id")
	case err == nil && former.Identity() == nil && disk.Exists(n.path(walDir)):
		o.Log.Error().Str("folder", n.path()).Msg("the identity of this node is gone, but its raft log is there; the node comes back with a new id")
	default:
		return former, err
	}
	if err := forming.WriteLost(n.path(), o.Name); err != nil {
		return nil, err
	}
	return forming.New(config)
}

// path returns a path in DIR/cluster.
func (n *Node) path(names ...string) string {
	return filepath.Join(append([]string{n.options.Dir, clusterDir}, names...)...)
}

// Bus returns the way of published messages to the other nodes.
func (n *Node) Bus() *bus.Bus { return n.bus }

// Start runs the node in the background until [Node.Close].
func (n *Node) Start() {
	n.tasks.Go(n.watch)
	n.tasks.Go(n.run)
	n.tasks.Go(n.announceAll)
	if n.options.Users != nil {
		n.tasks.Go(n.compareUsers)
	}
	n.tasks.Go(n.learn)
}

// Close ends the node. No client is served any more. An orderly close writes what is committed into the
// stores; otherwise commands may still run, and the next start reads the journal.
func (n *Node) Close(orderly bool) error {
	n.orderly.Store(orderly)
	n.cancel()
	n.tasks.Wait()
	n.bus.Close()
	return n.listener.Close()
}

// run runs incarnations until the node is closed.
func (n *Node) run() {
	pause := firstPause
	for n.ctx.Err() == nil {
		identity, err := n.form()
		if err != nil {
			return // the node is closed
		}
		n.set(topology.Loading, "the node opens its files")
		opened := clock.Monotonic()
		inc, err := n.open(identity)
		if err == nil {
			n.running.Store(inc)
			n.former.Serve(membership{n})
			n.tasks.Go(func() { // peers may have begun meanwhile
				if err := n.conflict(); err != nil {
					inc.end(err)
				}
			})
			n.options.Serve(inc.ks)
			n.refresh()
			select {
			case <-n.ctx.Done():
			case <-inc.ended:
			}
			err = n.endIncarnation(inc)
		}
		if n.ctx.Err() != nil {
			return
		}
		if clock.Monotonic()-opened > goodAfter {
			pause = firstPause
		}
		switch {
		case errors.Is(err, errReload) || errors.Is(err, errInstall):
			n.options.Log.Warn().Err(err).Msg("loads the committed state again")
			continue
		case errors.Is(err, errRemoved):
			n.options.Log.Error().Err(err).Msg("this node serves nothing any more")
			n.set(topology.Removed, err.Error())
			err = n.former.Lose()
		case isDamage(err):
			n.options.Log.Error().Err(err).Msg("the files of this node are damaged: sets them aside and gets those of the other nodes")
			n.set(topology.Failed, err.Error())
			if err = n.former.Lose(); err == nil {
				err = n.setAside("damaged")
			}
		}
		if err != nil {
			n.options.Log.Error().Err(err).Dur("pause", pause).Msg("the node cannot go on: tries again")
			n.set(topology.Failed, err.Error())
		}
		n.sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// endIncarnation closes an incarnation and returns why it has ended.
func (n *Node) endIncarnation(inc *incarnation) error {
	inc.rep.end()
	n.keepLearned()
	n.former.Serve(nil)
	n.options.Suspend()
	n.running.Store(nil)
	n.set(topology.Loading, "the node closes its files")
	inc.close(n.orderly.Load())
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return inc.cause
}

// form waits until this node belongs to a cluster. The error is that of the context of the node.
func (n *Node) form() (*forming.Identity, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		id, err := n.tryToForm()
		switch {
		case n.ctx.Err() != nil:
			return nil, n.ctx.Err()
		case err == nil:
			return id, nil
		}
		n.options.Log.Error().Err(err).Dur("pause", pause).Msg("the node does not belong to a cluster: tries again")
		role := topology.Forming
		if n.roleNow() == topology.Removed {
			role = topology.Removed
		}
		n.set(role, err.Error())
		n.sleep(pause)
	}
}

func (n *Node) tryToForm() (*forming.Identity, error) {
	id := n.former.Identity()
	if id == nil || id.Stage != forming.Formed {
		if n.roleNow() != topology.Removed {
			n.set(topology.Forming, "the node waits for its cluster to form: not all of the other nodes have answered")
		}
		var err error
		if id, err = n.former.Form(n.ctx); err != nil {
			return nil, err
		}
	}
	if err := n.conflict(); err != nil {
		return nil, err
	}
	opened, err := n.opened(id)
	if err == nil && !opened && id.Joined && n.cleared != id.ID && (hasData(n.options.Dir) || disk.Exists(n.path(walDir))) {
		// They are of an earlier life of this node, of a server that was alone, or of another cluster.
		err = n.setAside("replaced")
	}
	if err != nil {
		return nil, err
	}
	n.cleared = id.ID
	return id, nil
}

// conflictPatience is how long a start waits for peers that do not answer whether this node may take part.
const conflictPatience = time.Second

// conflict returns why this node must not take part in its cluster at present. See [forming.Former.Conflict].
func (n *Node) conflict() error {
	ctx, cancel := context.WithTimeout(n.ctx, conflictPatience)
	defer cancel()
	return n.former.Conflict(ctx)
}

// isDamage reports whether an error says that files are damaged, or that raft's log is not the one it was.
func isDamage(err error) bool {
	var file *aof.DamageError
	var log *disk.DamageError
	var arrived *stores.InvalidError // stores that were about to be installed
	return errors.As(err, &file) || errors.As(err, &log) || errors.As(err, &arrived) || errors.Is(err, core.ErrDamaged) || errors.Is(err, errLogLost) || errors.Is(err, errPositionLost) ||
		errors.Is(err, errForeignData)
}

// openedFile has the raft id that has opened the data folder: from then on the raft log must be there.
const openedFile = "opened"

// opened reports whether the node has opened its files with its id.
func (n *Node) opened(id *forming.Identity) (bool, error) {
	text, err := os.ReadFile(n.path(openedFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return string(text) == strconv.FormatUint(id.ID, 16), err
}

// markOpened makes opened report true, durably.
func (n *Node) markOpened(id *forming.Identity) error {
	return vfs.ReplaceFile(vfs.OS, n.path(openedFile), []byte(strconv.FormatUint(id.ID, 16)))
}

// setAside moves the data files and the raft log into a folder of their own in DIR/cluster, durably. Nothing
// is deleted.
func (n *Node) setAside(why string) error {
	aside, err := stores.SetAside(n.options.Dir, why+"-"+stamp())
	if err == nil && aside != "" {
		n.options.Log.Warn().Str("folder", aside).Msg("moved the files of this node aside")
	}
	return err
}

// stamp is the time of now for the name of a folder.
func stamp() string {
	return time.UnixMilli(clock.NewSystem(0).Now()).UTC().Format("20060102T150405.000Z")
}

// hasData reports whether a data folder has data files.
func hasData(dir string) bool {
	data, err := stores.HasData(dir)
	return data && err == nil
}

func (n *Node) sleep(d time.Duration) {
	select {
	case <-n.ctx.Done():
	case <-time.After(d):
	}
}

// idSet is a set of raft ids. Safe for concurrent use.
type idSet struct {
	mu  sync.Mutex // protects ids
	ids map[uint64]bool
}

func (s *idSet) add(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[uint64]bool{}
	}
	s.ids[id] = true
}

func (s *idSet) has(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}
