package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"

	"github.com/rs/zerolog"
	etcd "go.etcd.io/etcd/api/v3/version"
	etcdtls "go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	stats "go.etcd.io/etcd/server/v3/etcdserver/api/v2stats"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Options is what a Transport needs to know. Its functions are called from several goroutines, and by Send.
type Options struct {
	Listener    *Listener
	Cluster, ID uint64
	// Deliver takes a message from another node. It may block; then messages of that node wait and are
	// dropped in the end.
	Deliver func(*raftpb.Message) error
	// Unreachable says that messages to a node are lost. It must not block.
	Unreachable func(id uint64)
	// StoresSent says whether the stores have arrived at a node (raft's ReportSnapshot). It must not block.
	StoresSent func(id uint64, ok bool)
	// Removed reports whether a node has been removed from the cluster. Such a node is told so.
	Removed func(id uint64) bool
	// Expelled says that a peer counts this node among the removed ones. It is called at most once.
	Expelled func()
	// ReceiveStores reads the stores that come with m, size bytes. After nil, Deliver gets m.
	ReceiveStores func(ctx context.Context, m *raftpb.Message, size int64, r io.Reader) error
	// Streams take the streams of other members by protocol, see Dial, and close them. Others are refused.
	Streams map[string]func(id uint64, conn net.Conn)
	// StoresRate bounds the speed at which stores are sent, in bytes a second to all nodes together; 0: 64
	// MB.
	StoresRate int64
	Log        zerolog.Logger
}

// Transport exchanges messages with the members during one incarnation of a node. Safe for concurrent use.
type Transport struct {
	o        Options
	log      *limitedLog
	peers    atomic.Pointer[map[uint64]*peer] // replaced, never changed
	mu       sync.Mutex                       // held while peers is replaced
	limiter  *rate.Limiter                    // of stores
	expelled sync.Once
	context  context.Context // ends with Close
	cancel   context.CancelFunc
	stopping sync.WaitGroup // peers that stop, and transfers
	receive  receiving
}

// A broken connection is noticed after these times. rafthttp sends something each third of them.
const streamTimeout = 3 * time.Second

func init() {
	rafthttp.ConnReadTimeout = streamTimeout
	rafthttp.ConnWriteTimeout = streamTimeout
}

// New returns a transport that serves its listener in place of the one before.
func New(o Options) (*Transport, error) {
	if o.Listener == nil || o.ID == 0 || o.Cluster == 0 || o.Deliver == nil {
		return nil, errors.New("transport: listener, cluster, id or Deliver is missing")
	}
	if o.StoresRate <= 0 {
		o.StoresRate = 64 << 20
	}
	t := &Transport{o: o, log: newLimitedLog(o.Log), limiter: rate.NewLimiter(rate.Limit(o.StoresRate), storesChunk)}
	t.context, t.cancel = context.WithCancel(context.Background())
	t.peers.Store(&map[uint64]*peer{})
	o.Listener.transport.Store(t)
	if o.Listener.o.Credentials != nil {
		go t.watchCredentials()
	}
	return t, nil
}

// peer is another member. Each has a rafthttp.Transport of its own, so that no lock is shared: removing a
// peer there waits for its connections.
type peer struct {
	id       uint64
	addr     string
	t        *Transport
	raft     *rafthttp.Transport
	handler  http.Handler
	heard    atomic.Int64 // ns, as clock.Monotonic says; 0: never
	sending  atomic.Bool  // stores
	gate     sync.RWMutex // held by senders; for writing while the peer stops
	stopped  bool         // gate guards it
	errors   chan error
	finished chan struct{}
}

// Add makes a node known, or changes its address. The messages of others are refused. It does not block.
func (t *Transport) Add(id uint64, addr string) {
	if id == t.o.ID || id == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.context.Err() != nil {
		return
	}
	if p := (*t.peers.Load())[id]; p != nil && p.addr == addr {
		return
	}
	t.startLocked(id, addr)
}

// startLocked makes a peer, in place of the one with the id. t.mu must be held.
func (t *Transport) startLocked(id uint64, addr string) {
	p := &peer{id: id, addr: addr, t: t, errors: make(chan error, 1), finished: make(chan struct{})}
	p.start()
	before := *t.peers.Load()
	peers := maps.Clone(before)
	peers[id] = p
	t.peers.Store(&peers)
	if old := before[id]; old != nil {
		p.heard.Store(old.heard.Load())
		t.stop(old)
	}
}

// Remove forgets a node. It does not block.
func (t *Transport) Remove(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := (*t.peers.Load())[id]
	if p == nil {
		return
	}
	peers := maps.Clone(*t.peers.Load())
	delete(peers, id)
	t.peers.Store(&peers)
	t.stop(p)
}

// start opens the connections of a peer. Without them, after an error, its messages are lost.
func (p *peer) start() {
	t := p.t
	address := t.o.Listener.url(p.addr, "")
	if _, err := types.NewURLs([]string{address}); err != nil {
		t.o.Log.Error().Msgf("the address %s of a node cannot be used: %v", p.addr, err)
		return
	}
	logger := zap.New(&zapCore{log: t.log.log.With().Str("peer", p.addr).Logger(), limit: t.log, peer: p.addr})
	r := &rafthttp.Transport{
		Logger: logger, DialTimeout: dialTimeout, ID: types.ID(t.o.ID), ClusterID: types.ID(t.o.Cluster),
		Raft: raftOf{p}, ErrorC: p.errors,
		ServerStats: stats.NewServerStats("", ""), LeaderStats: stats.NewLeaderStats(logger, ""),
	}
	if c := t.o.Listener.o.Credentials; c != nil {
		r.TLSInfo = etcdtls.TLSInfo{CertFile: c.certFile, KeyFile: c.keyFile, TrustedCAFile: c.caFile, ServerName: c.name, Logger: logger}
	}
	if err := r.Start(); err != nil {
		t.o.Log.Error().Msgf("cannot connect to the node at %s: %v", p.addr, err)
		return
	}
	r.AddPeer(types.ID(p.id), []string{address})
	p.raft, p.handler = r, r.Handler()
	go p.watch()
}

// watch hears from rafthttp that this node was removed.
func (p *peer) watch() {
	select {
	case <-p.errors: // there is no other error
		p.t.expel(p.addr)
	case <-p.finished:
	}
}

func (t *Transport) expel(by string) {
	if t.context.Err() != nil {
		return
	}
	t.expelled.Do(func() {
		t.o.Log.Error().Msgf("the node at %s says that this node, id %x, was removed from the cluster", by, t.o.ID)
		if t.o.Expelled != nil {
			t.o.Expelled()
		}
	})
}

// stop ends the connections of a peer in the background. t.mu must be held.
func (t *Transport) stop(p *peer) {
	t.stopping.Go(func() {
		p.gate.Lock()
		p.stopped = true
		p.gate.Unlock()
		close(p.finished)
		if p.raft != nil {
			p.raft.Stop()
		}
	})
}

// Send sends messages. It never blocks: messages that cannot be sent, or go to an unknown node, are dropped.
// The messages must not change after it. MsgSnap goes through SendStores.
func (t *Transport) Send(ms []*raftpb.Message) {
	peers := *t.peers.Load()
	for i, m := range ms {
		p := peers[m.GetTo()]
		if p == nil || m.GetType() == raftpb.MsgSnap {
			continue
		}
		if !p.send(ms[i : i+1]) {
			t.unreachable(p.id)
		}
	}
}

// send hands a message over to rafthttp, which queues it or reports the peer unreachable.
func (p *peer) send(m []*raftpb.Message) bool {
	if p.raft == nil || !p.gate.TryRLock() {
		return false
	}
	defer p.gate.RUnlock()
	if p.stopped {
		return false
	}
	p.raft.Send(m)
	return true
}

func (t *Transport) unreachable(id uint64) {
	if t.o.Unreachable != nil {
		t.o.Unreachable(id)
	}
}

// Active reports whether a connection to a node stands.
func (t *Transport) Active(id uint64) bool {
	p := (*t.peers.Load())[id]
	return p != nil && p.raft != nil && !p.raft.ActiveSince(types.ID(id)).IsZero()
}

// LastContact returns the monotonic time (see package clock) of the last message from a node, 0 for none.
func (t *Transport) LastContact(id uint64) time.Duration {
	if p := (*t.peers.Load())[id]; p != nil {
		return time.Duration(p.heard.Load())
	}
	return 0
}

// closePatience is how long Close waits for connections that end.
const closePatience = time.Second

// Close ends the exchange. It waits a second at most for connections to end. The listener stays open.
func (t *Transport) Close() error {
	t.o.Listener.transport.CompareAndSwap(t, nil)
	t.mu.Lock()
	t.cancel()
	for _, p := range *t.peers.Load() {
		t.stop(p)
	}
	t.peers.Store(&map[uint64]*peer{})
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.stopping.Wait()
		close(done)
	}()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
	return nil
}

// watchCredentials connects anew when the CA's certificates change. rafthttp reads the node's own at each
// connection.
func (t *Transport) watchCredentials() {
	credentials := t.o.Listener.o.Credentials
	var roots string
	for {
		if m, err := credentials.current(); err != nil {
			t.o.Listener.credentialsFailed(err)
		} else if next := string(m.rootPEM); next != roots {
			if roots != "" {
				t.o.Log.Info().Msg("the CA of the cluster has changed: connecting to the other nodes anew")
				t.mu.Lock()
				for id, p := range *t.peers.Load() {
					if t.context.Err() == nil {
						t.startLocked(id, p.addr)
					}
				}
				t.mu.Unlock()
			}
			roots = next
		}
		pause := time.NewTimer(2 * lookEvery)
		select {
		case <-t.context.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// raftOf is what rafthttp takes for raft: this node, as one peer sees it.
type raftOf struct{ p *peer }

// Process takes a message of the peer.
func (r raftOf) Process(_ context.Context, m *raftpb.Message) error {
	t := r.p.t
	switch {
	case t.context.Err() != nil:
		return errClosed
	case m.GetFrom() != r.p.id || m.GetTo() != t.o.ID || m.GetType() == raftpb.MsgSnap:
		return fmt.Errorf("a %s from %x to %x came from %x to %x", m.GetType(), m.GetFrom(), m.GetTo(), r.p.id, t.o.ID)
	}
	r.p.heard.Store(int64(clock.Monotonic()))
	return t.o.Deliver(m)
}

var errClosed = errors.New("this node takes no part at present")

func (r raftOf) IsIDRemoved(id uint64) bool {
	return r.p.t.removed(id)
}

func (r raftOf) ReportUnreachable(id uint64) { r.p.t.unreachable(id) }

// ReportSnapshot is for snapshots that rafthttp sends itself. There are none.
func (r raftOf) ReportSnapshot(uint64, raft.SnapshotStatus) {}

func (t *Transport) removed(id uint64) bool { return t.o.Removed != nil && t.o.Removed(id) }

// Headers of rafthttp.
const (
	clusterHeader = "X-Etcd-Cluster-Id"
	fromHeader    = "X-Server-From"
)

// versions are those that rafthttp reads without a panic. A server without a cluster does not need it.
var versions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$`)
})

// mostMessage bounds the body of a message of raft, as rafthttp bounds those in streams.
const mostMessage = 512 << 20

// serveRaft gives a request to rafthttp, if it comes from a peer.
func (t *Transport) serveRaft(w http.ResponseWriter, r *http.Request) {
	peers := *t.peers.Load()
	if r.URL.Path == rafthttp.ProbingPrefix { // names no peer
		for _, p := range peers {
			if p.handler != nil {
				p.handler.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
		return
	}
	from := r.Header.Get(fromHeader)
	if r.Method == http.MethodGet {
		from = path.Base(r.URL.Path)
	}
	id, err := types.IDFromString(from)
	version, least := r.Header.Get("X-Server-Version"), r.Header.Get("X-Min-Cluster-Version")
	if err != nil || !versions().MatchString(version) || !versions().MatchString(least) {
		http.Error(w, "not a request of a node", http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Server-Version", etcd.Version) // without it rafthttp does not read the status
	w.Header().Set(clusterHeader, types.ID(t.o.Cluster).String())
	if cluster := r.Header.Get(clusterHeader); cluster != types.ID(t.o.Cluster).String() {
		t.log.warn("cluster "+r.RemoteAddr, fmt.Sprintf("the node %s at %s of cluster %s is refused: this node belongs to cluster %x",
			id, r.RemoteAddr, firstLine(cluster), t.o.Cluster))
		http.Error(w, rafthttp.ErrClusterIDMismatch.Error(), http.StatusPreconditionFailed)
		return
	}
	p := peers[uint64(id)]
	switch {
	case t.removed(uint64(id)):
		t.log.warn("removed "+from, fmt.Sprintf("the node %s at %s is refused: it was removed from the cluster", id, r.RemoteAddr))
		status := http.StatusGone // how rafthttp says so to a stream
		if r.Method == http.MethodPost {
			status = http.StatusForbidden // and to a single message
		}
		http.Error(w, "removed member", status)
	case p == nil || p.handler == nil:
		http.Error(w, "error sender not found", http.StatusNotFound)
	default:
		r.Header.Del("X-Peerurls") // makes rafthttp dial a node that the members do not name
		if r.Method == http.MethodPost {
			_ = http.NewResponseController(w).SetReadDeadline(clock.Deadline(messageTimeout))
			r.Body = http.MaxBytesReader(w, r.Body, mostMessage)
		}
		p.handler.ServeHTTP(w, r)
	}
}

// messageTimeout is how long the body of a single message may take.
const messageTimeout = 30 * time.Second
