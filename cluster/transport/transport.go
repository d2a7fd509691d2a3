package transport

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// ListenOptions says where and how a node listens.
type ListenOptions struct {
	Addr        string       // cluster-addr, host:port
	Credentials *Credentials // nil: no TLS; Load allows that on loopback only
	// Hosts returns the hosts of the cluster's nodes: a peer's certificate file must be valid for one of them.
	// nil: each certificate that the CA signed for clients is a node's.
	Hosts func() []string
	Log   zerolog.Logger
}

// Listener is the door of a node for the other nodes. It lives as long as the process; transports come and go on it.
type Listener struct{}

// Listen opens the door. Requests are refused with 503 until Handle and New.
func Listen(o ListenOptions) (*Listener, error) { return &Listener{}, nil }

// Handle sets the handler of control requests, those to paths under /cluster/ but for the stores.
func (l *Listener) Handle(h http.Handler) {}

// Addr returns the address on which it listens.
func (l *Listener) Addr() string { return "" }

// Close ends all connections.
func (l *Listener) Close() error { return nil }

// Call sends a control request, encoded as JSON, to the node at addr and decodes its answer.
// A *RefusedError is the error for a request that the node has refused.
func (l *Listener) Call(ctx context.Context, addr, path string, request, answer any) error {
	return nil
}

// Options is what a Transport needs to know. Its functions are called from several goroutines, and by Send.
type Options struct {
	Listener    *Listener
	Cluster, ID uint64
	// Deliver takes a message from another node. It may block; then messages of that node wait and are dropped in the end.
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
	// StoresRate bounds the speed at which stores are sent, in bytes a second to all nodes together; 0: 64 MB.
	StoresRate int64
	Log        zerolog.Logger
}

// Transport exchanges messages with the members during one incarnation of a node. Safe for concurrent use.
type Transport struct{}

// New returns a transport that serves its listener in place of the one before.
func New(o Options) (*Transport, error) { return &Transport{}, nil }

// Add makes a node known, or changes its address. The messages of others are refused. It does not block.
func (t *Transport) Add(id uint64, addr string) {}

// Remove forgets a node. It does not block.
func (t *Transport) Remove(id uint64) {}

// Send sends messages. It never blocks: messages that cannot be sent, or go to an unknown node, are dropped.
// The messages must not change after it. MsgSnap goes through SendStores.
func (t *Transport) Send(ms []*raftpb.Message) {}

// SendStores sends m, a MsgSnap, with the stores that open returns. It returns at once and reports the end by StoresSent.
// One transfer a node is under way at a time; further ones are dropped.
func (t *Transport) SendStores(m *raftpb.Message, open func() (stores io.ReadCloser, size int64, err error)) {
}

// Active reports whether a connection to a node stands.
func (t *Transport) Active(id uint64) bool { return false }

// LastContact returns the monotonic time (see package clock) of the last message from a node, 0 for none.
func (t *Transport) LastContact(id uint64) time.Duration { return 0 }

// Close ends the exchange. It waits a second at most for connections to end. The listener stays open.
func (t *Transport) Close() error { return nil }
