package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/disk"
	"mayfly/cluster/entry"
	"mayfly/cluster/forming"
	"mayfly/cluster/stores"
	"mayfly/cluster/transport"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/vfs"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// electionTicks is the election timeout in ticks of raft.
const electionTicks = 10

// The folders in DIR/cluster.
const (
	clusterDir = "cluster"
	walDir     = "wal"
	tlsDir     = "tls"
)

// errRemoved ends the incarnation of a node that is no member any more.
var errRemoved = errors.New("this node was removed from the cluster")

// Errors of a node whose files do not belong together: it must not vote with its id any more.
var (
	errLogLost      = errors.New("the raft log is missing")
	errPositionLost = errors.New("the data folder has no position in the raft log: a server without a cluster has written to it")
	errForeignData  = errors.New("the data files are of another cluster, or of an earlier life of this node")
)

// incarnation is everything that a node has open at a time.
type incarnation struct {
	node     *Node
	identity *forming.Identity
	log      zerolog.Logger

	fresh     bool // the first incarnation with this id
	ks        *keyspace.Keyspace
	disk      *disk.Log
	transport *transport.Transport
	rep       *replicator
	applier   *applier
	loop      *loop

	stop    chan struct{}   // closed when the incarnation ends
	context context.Context // ends then
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	installs bool        // the next incarnation installs stores, and node.incoming is held; used by the saver, and when it has ended
	failing  atomic.Bool // the raft log cannot be written any more: the incarnation ends when another node leads
	noHeir   atomic.Bool // see topology.View
	refused  atomic.Pointer[refusedStores]
	paces    map[uint64]*pace // of the other nodes, while this one leads; used by describe, which runs once at a time

	mu      sync.Mutex // protects what follows
	cause   error      // why it ends; nil while it runs
	ended   chan struct{}
	peers   map[uint64]string      // the addresses that the transport has
	sending map[uint64]bool        // nodes to which stores are under way, or will be after a pause
	pauses  map[uint64]storesPause // after the last transfers of stores to a node, which have failed
	member  bool                   // this node was a member in this incarnation
}

// open opens an incarnation. After an error nothing is open.
func (n *Node) open(identity *forming.Identity) (_ *incarnation, err error) {
	inc := &incarnation{node: n, identity: identity, log: n.options.Log, rep: newReplicator(clock.Monotonic),
		stop: make(chan struct{}), ended: make(chan struct{}), peers: map[uint64]string{}, sending: map[uint64]bool{},
		pauses: map[uint64]storesPause{}, paces: map[uint64]*pace{}}
	inc.rep.readIndex = n.options.ReadIndex
	inc.context, inc.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			inc.release(false)
		}
	}()
	installed, err := stores.Install(n.options.Dir)
	if err != nil {
		return nil, fmt.Errorf("installing the stores of another node: %w", err)
	}
	if err := os.RemoveAll(n.path(stores.Outgoing)); err != nil {
		return nil, err
	}
	if err := n.discardIncoming(); err != nil {
		return nil, err
	}
	if inc.ks, err = n.options.Open(inc.rep); err != nil {
		return nil, err
	}
	if err := inc.openLog(installed); err != nil {
		return nil, err
	}
	if err := inc.openCore(); err != nil {
		return nil, err
	}
	inc.tasks.Go(inc.loop.run)
	inc.tasks.Go(inc.loop.saver.run)
	inc.tasks.Go(inc.watchRoom)
	inc.tasks.Go(inc.applier.run)
	return inc, nil
}

// discardIncoming removes stores that have arrived and that raft has not taken.
func (n *Node) discardIncoming() error {
	if !n.incoming.TryLock() {
		return nil // an earlier incarnation notices the end of its connection, and removes them
	}
	defer n.incoming.Unlock()
	return stores.Discard(n.path())
}

// openLog opens the raft log, or makes it at the first start of the node.
func (inc *incarnation) openLog(installed bool) (err error) {
	n, id := inc.node, inc.identity
	at := inc.ks.Position()
	o := disk.Options{Dir: n.path(walDir), Cluster: id.Cluster, ID: id.ID, Applied: at.Index, Term: at.Term, Keep: n.options.LogSize, Log: n.zap}
	if installed {
		state, err := entry.DecodeState(inc.ks.ReplicaState())
		if err != nil {
			return err
		}
		o.Installed = confState(&state)
	}
	first, founding := inc.firstState()
	opened, err := n.opened(id)
	if err != nil {
		return err
	}
	switch exists := disk.Exists(o.Dir); {
	case opened && !exists:
		return errLogLost
	case opened && founding && at.Index == 0:
		return errPositionLost
	case opened && inc.foreign():
		return errForeignData
	case !exists:
		var snapshot *raftpb.SnapshotMetadata
		if founding {
			snapshot = &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: confState(&first)}
		}
		if err := disk.Create(o, snapshot); err != nil {
			return err
		}
	}
	inc.fresh = !opened
	if !opened {
		if founding {
			if err := inc.ks.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}, State: first.Encode()}); err != nil {
				return err
			}
			o.Applied, o.Term = 1, 1
		}
		if err := n.markOpened(id); err != nil {
			return err
		}
	}
	if inc.disk, err = disk.Open(o); err == nil && installed {
		err = stores.Finish(n.path())
	}
	return err
}

// foreign reports whether the local files have a position in a log that does not know this node: those of
// another cluster, such as a backup. Their index means nothing in this log. What cannot be read is an error
// of core.New.
func (inc *incarnation) foreign() bool {
	state, err := entry.DecodeState(inc.ks.ReplicaState())
	id, known := inc.identity.ID, len(state.Voters)+len(state.Learners) > 0
	return err == nil && known && !state.Voter(id) && !state.Learner(id) && !state.Left(id) && state.WithID(id) == nil
}

// firstState returns the state with which the cluster began, and whether this node begins with it instead of
// getting it from another node.
func (inc *incarnation) firstState() (entry.State, bool) {
	id := inc.identity
	if id.Joined || id.FoundedWithData && id.Founder != id.Name {
		return entry.State{}, false
	}
	members := make([]entry.Member, len(id.Members))
	for i, m := range id.Members {
		members[i] = entry.Member{ID: m.ID, Name: m.Name, Addr: m.Addr, Client: m.Client}
	}
	return entry.FirstState(members), true
}

func confState(s *entry.State) *raftpb.ConfState {
	return &raftpb.ConfState{Voters: s.Voters, Learners: s.Learners}
}

// openCore makes raft's core, the loop, the applier and the transport. Nothing of it runs yet.
func (inc *incarnation) openCore() (err error) {
	n, id, at := inc.node, inc.identity, inc.ks.Position()
	tick := n.options.NodeTimeout / electionTicks
	inc.applier = newApplier(inc.ks, inc.rep, id.ID, at)
	inc.loop = &loop{disk: inc.disk, applier: inc.applier, rep: inc.rep, durable: inc.ks.Durable, stores: inc.sendStores, fail: inc.end,
		saver: &saver{log: n.slowed(inc.disk), install: inc.install}, changed: n.refresh, tick: tick, founder: inc.fresh && id.Founder == id.Name, log: inc.log, stop: inc.stop}
	inc.loop.core, err = core.New(core.Config{
		ID: id.ID, Storage: inc.disk.Memory(), Applied: at.Index, State: inc.ks.ReplicaState(),
		Self:          entry.Member{ID: id.ID, Name: id.Name, Addr: n.options.Addr, Client: n.options.ClientAddr},
		ElectionTicks: electionTicks, TickTime: tick, Now: clock.Monotonic(), Fresh: inc.fresh, NoLeases: n.options.ReadIndex, Log: n.raftLog,
	})
	if err != nil {
		return err
	}
	inc.applier.stop, inc.applier.wake, inc.applier.fail, inc.applier.log = inc.stop, inc.loop.wake, inc.end, inc.log
	inc.applier.show = n.show
	inc.loop.retained.keep = n.options.LogSize
	inc.loop.init()
	inc.loop.saver.fail = inc.saveFailed
	inc.transport, err = transport.New(transport.Options{
		Listener: n.listener, Cluster: id.Cluster, ID: id.ID, Deliver: inc.loop.deliver,
		Unreachable: func(peer uint64) { inc.loop.post(func() { inc.loop.core.ReportUnreachable(peer) }) },
		StoresSent:  inc.storesDone,
		Removed:     n.removed.has, Expelled: func() { inc.end(errRemoved) }, ReceiveStores: inc.receiveStores, Log: inc.log,
		Streams: map[string]func(uint64, net.Conn){
			transport.BusStream: n.bus.Serve, transport.ClientStream: n.serveClient, transport.UserStream: n.serveClient,
		},
	})
	if err != nil {
		return err
	}
	inc.loop.send = inc.transport.Send
	if wrap := n.options.wrapSend; wrap != nil {
		inc.loop.send = wrap(inc.loop.send)
	}
	inc.loop.status.Store(new(inc.loop.core.Status(clock.Monotonic())))
	inc.connect()
	return nil
}

// end ends the incarnation, for the first cause that it gets. It returns at once.
func (inc *incarnation) end(cause error) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.cause == nil {
		inc.cause = cause
		close(inc.ended)
	}
}

// close closes everything. An orderly close writes what is committed into the stores, as a node that is alone
// does; otherwise the next start reads the journal. No client uses the keyspace any more.
func (inc *incarnation) close(orderly bool) {
	inc.rep.end()
	inc.cancel()
	close(inc.stop)
	inc.tasks.Wait()
	inc.release(orderly)
}

// release closes what is open. No goroutine of the incarnation runs any more.
func (inc *incarnation) release(orderly bool) {
	inc.cancel()
	if inc.installs {
		inc.node.incoming.Unlock()
	}
	if inc.transport != nil {
		if err := inc.transport.Close(); err != nil {
			inc.log.Debug().Err(err).Msg("closing the connections to the other nodes")
		}
		inc.node.bus.Close()
	}
	if inc.ks != nil {
		var err error
		if orderly {
			inc.ks.Follow()
		}
		if orderly && !inc.ks.Unsettled() {
			err = inc.ks.Close()
		} else {
			err = inc.ks.Abandon()
		}
		if err != nil {
			inc.log.Warn().Err(err).Msg("closing the data folder")
		}
	}
	if inc.disk != nil {
		if err := inc.disk.Close(); err != nil {
			inc.log.Warn().Err(err).Msg("closing the raft log")
		}
	}
}

// connect makes the transport know the members of the last status, and notices whether this node is one.
func (inc *incarnation) connect() {
	state := &inc.loop.status.Load().State
	inc.mu.Lock()
	defer inc.mu.Unlock()
	want := map[uint64]string{}
	for _, m := range state.Members {
		want[m.ID] = m.Addr
	}
	for _, id := range append(append([]uint64(nil), state.Voters...), state.Learners...) {
		if addr, known := inc.peers[id]; known && want[id] == "" {
			want[id] = addr // raft still has it, although another node has its name
		}
	}
	if len(state.Voters) == 0 { // this node does not have the cluster's state yet
		for _, m := range inc.identity.Members {
			want[m.ID] = m.Addr
		}
	}
	self := inc.identity.ID
	_, member := want[self]
	if inc.member && !member && !state.Voter(self) && !state.Learner(self) && inc.cause == nil {
		inc.cause = errRemoved
		close(inc.ended)
	}
	inc.member = inc.member || member && len(state.Voters) > 0
	delete(want, self)
	for id, addr := range want {
		if inc.peers[id] != addr {
			inc.peers[id] = addr
			inc.transport.Add(id, addr)
			if inc.cause != nil {
				continue // the bus is closed, or the next incarnation's
			}
			inc.node.bus.Connect(id, func(ctx context.Context) (net.Conn, error) { return inc.transport.Dial(ctx, id, transport.BusStream) })
		}
	}
	for id := range inc.peers {
		if _, known := want[id]; !known {
			delete(inc.peers, id)
			delete(inc.pauses, id)
			inc.node.removed.add(id)
			inc.transport.Remove(id)
			inc.node.bus.Disconnect(id)
		}
	}
}

// sendStores begins to send the stores to a node that is too far behind, from a backup of now. It returns at
// once, false if they are under way already.
func (inc *incarnation) sendStores(m *raftpb.Message) bool {
	to := m.GetTo()
	if !inc.beginStores(to) {
		return false
	}
	inc.tasks.Go(func() {
		if err := inc.backUpAndSend(m); err != nil {
			if !errors.Is(err, context.Canceled) {
				inc.log.Error().Err(err).Uint64("to", to).Msg("cannot send the stores to a node that is far behind")
			}
			inc.storesDone(to, false)
		}
	})
	return true
}

// beginStores notes that a transfer of stores begins, unless one is under way or the incarnation ends. If
// raft has not asked for a while, what failed before is no reason to wait long after the next failure.
func (inc *incarnation) beginStores(to uint64) bool {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.sending[to] || inc.cause != nil {
		return false
	}
	inc.sending[to] = true
	if clock.Monotonic()-inc.pauses[to].ended > longestStoresPause {
		delete(inc.pauses, to)
	}
	return true
}

// storesPause is a pause after a transfer of stores that has failed.
type storesPause struct{ length, ended time.Duration }

// Pauses after a transfer of stores that has failed. raft asks for the next one at once, and a backup is a
// whole copy of the data files.
const (
	firstStoresPause   = time.Second
	longestStoresPause = 30 * time.Second
)

// storesDone notes that a transfer of stores has ended, removes its backup, and tells raft, which may ask for
// the next one. It waits before that if the stores have not arrived.
func (inc *incarnation) storesDone(to uint64, arrived bool) {
	if err := os.RemoveAll(inc.outgoing(to)); err != nil {
		inc.log.Warn().Err(err).Msg("cannot remove a backup that was sent")
	}
	inc.mu.Lock()
	pause := min(max(2*inc.pauses[to].length, firstStoresPause), longestStoresPause)
	if inc.pauses[to] = (storesPause{pause, clock.Monotonic() + pause}); arrived {
		delete(inc.pauses, to)
	}
	inc.mu.Unlock()
	if !arrived {
		inc.loop.post(func() { inc.loop.retained.end(to) })
		if !inc.pause(pause) {
			return
		}
	}
	inc.mu.Lock()
	delete(inc.sending, to)
	inc.mu.Unlock()
	inc.loop.post(func() { inc.loop.core.ReportSnapshot(to, arrived) })
}

func (inc *incarnation) outgoing(to uint64) string {
	return filepath.Join(inc.node.path(stores.Outgoing), strconv.FormatUint(to, 16))
}

// awaitMember waits until the local files know a node that raft has taken into its configuration: raft
// refuses stores that do not. They learn it with the next batch, a second later at most.
func (inc *incarnation) awaitMember(id uint64) error {
	const longest, step = 3 * time.Second, 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		state, err := entry.DecodeState(inc.ks.ReplicaState())
		switch {
		case err != nil:
			return err
		case state.Voter(id) || state.Learner(id):
			return nil
		case !inc.pause(step):
			return inc.context.Err()
		case waited >= longest:
			return errors.New("the data folder does not know it as a member yet")
		}
	}
}

func (inc *incarnation) backUpAndSend(m *raftpb.Message) error {
	dir := inc.outgoing(m.GetTo())
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := inc.awaitMember(m.GetTo()); err != nil {
		return err
	}
	if err := stores.Fits(inc.node.stores(), inc.node.options.Dir); err != nil {
		return err
	}
	inc.log.Info().Uint64("to", m.GetTo()).Msg("a node is too far behind for the log: makes a backup for it")
	if err := inc.ks.BackupContext(inc.context, dir); err != nil {
		return err
	}
	tail, err := keyspace.ReadReplica(vfs.OS, dir)
	if err != nil {
		return err
	}
	state, err := entry.DecodeState(tail.State)
	if err != nil {
		return err
	}
	m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &tail.Index, Term: &tail.Term, ConfState: confState(&state)}}
	to := m.GetTo()
	inc.transport.SendStores(m, func() (io.ReadCloser, int64, error) {
		r, size, err := stores.Pack(dir)
		inc.loop.post(func() { inc.loop.retained.size(to, size) })
		return r, size, err
	})
	return nil
}

// receiveStores takes the stores that the leader sends. raft decides afterwards whether they are wanted.
func (inc *incarnation) receiveStores(_ context.Context, m *raftpb.Message, size int64, r io.Reader) error {
	if !inc.node.incoming.TryLock() {
		return errors.New("stores are received already")
	}
	defer inc.node.incoming.Unlock()
	if inc.context.Err() != nil {
		return errRestarting
	}
	meta := m.GetSnapshot().GetMetadata()
	started := clock.Monotonic()
	if err := stores.Unpack(inc.node.stores(), inc.node.path(), meta.GetIndex(), meta.GetTerm(), size, r); err != nil {
		if why := wantOfRoom(err); why != "" {
			inc.refused.Store(&refusedStores{meta.GetIndex(), why})
			inc.node.refresh()
		}
		return err
	}
	inc.refused.Store(nil)
	tail, err := keyspace.ReadReplica(vfs.OS, inc.node.path(stores.Incoming))
	if err != nil {
		return err
	}
	if tail.Index != meta.GetIndex() || tail.Term != meta.GetTerm() {
		return fmt.Errorf("the stores are at index %d of term %d, and were announced as %d of term %d", tail.Index, tail.Term, meta.GetIndex(), meta.GetTerm())
	}
	inc.log.Info().Uint64("index", tail.Index).Int64("bytes", size).Dur("took", clock.Monotonic()-started).Msg("received the stores of the leader")
	return nil
}

// refusedStores are stores that this node has refused. It needs them, or later ones, until it has applied
// what they have.
type refusedStores struct {
	index uint64
	why   string
}

// wantOfRoom says which room stores need that do not fit on the disk; empty: the error is another one.
func wantOfRoom(err error) string {
	var room *stores.RoomError
	switch {
	case errors.As(err, &room):
		return fmt.Sprintf("this node waits for room on its disk: it needs the stores of the leader, %d bytes, and %d bytes more must be free", room.Size, room.Missing())
	case vfs.IsFull(err):
		return "this node waits for room on its disk, which was full before the stores of the leader had arrived"
	}
	return ""
}

// install decides that the next incarnation begins with the stores that were received. They must be at this
// position.
func (inc *incarnation) install(index, term uint64) error {
	if !inc.node.incoming.TryLock() {
		return errors.New("other stores arrive, in place of those that raft has taken")
	}
	pending, err := stores.Pending(inc.node.path())
	switch {
	case err != nil:
	case pending == nil || pending.Index != index || pending.Term != term:
		err = fmt.Errorf("the stores at index %d of term %d are not there any more", index, term)
	default:
		err = stores.Mark(inc.node.path())
	}
	if inc.installs = err == nil; !inc.installs {
		inc.node.incoming.Unlock()
	}
	return err
}

// leading returns the status if this node leads, with an open session.
func (inc *incarnation) leading() (*core.Status, bool) {
	s := inc.loop.status.Load()
	return s, s.Session != 0 && inc.applier.led.Load() == s.Session && !inc.failing.Load()
}

// pause waits, unless the incarnation ends first.
func (inc *incarnation) pause(d time.Duration) bool {
	select {
	case <-inc.stop:
		return false
	case <-time.After(d):
		return true
	}
}
