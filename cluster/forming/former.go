package forming

import (
	"context"
	"net/http"

	"github.com/rs/zerolog"
)

// Config is what a node knows of itself before it belongs to a cluster.
type Config struct {
	Dir     string // DIR/cluster
	Name    string
	Addr    string // of the other nodes' connections
	Client  string // of the clients' connections
	Peers   []Peer // cluster-peers, with this node
	HasData bool   // the folder has data
	// Call sends a control request, as transport.Listener does.
	Call func(ctx context.Context, addr, path string, request, answer any) error
	Log  zerolog.Logger
}

// Peer is a node as cluster-peers names it.
type Peer struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// Membership is what a node that takes part in raft knows. Safe for concurrent use.
type Membership interface {
	Leader() (leader Member, known bool) // ID of this node if it leads
	Members() []Member                   // who are in the cluster or announced (ID 0)
	Removed(id uint64) bool
	// Join makes m a member in place of the one with its name, once raft has committed that. It returns nil if m is one.
	// Errors are one line, and shown at the node that wants to join. Only the leader is asked.
	Join(ctx context.Context, m Member) error
}

// Former answers the control requests of other nodes and brings this node into a cluster. Safe for concurrent use.
type Former struct{}

// New reads the identity. Serve it with transport.Listener.Handle before Form.
func New(config Config) (*Former, error) { return &Former{}, nil }

// ServeHTTP answers control requests.
func (f *Former) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Identity returns a copy of this node's identity, nil for none.
func (f *Former) Identity() *Identity { return nil }

// Form returns once the node is a member of a cluster (Stage Formed). It tries until ctx ends. A *RefusedError is the error
// for what only people can settle: it is one line that names it.
func (f *Former) Form(ctx context.Context) (*Identity, error) { return nil, nil }

// Serve makes the membership known from which answers are given; nil between two incarnations.
func (f *Former) Serve(m Membership) {}

// Lose forgets the id of this node, durably: its files are damaged or its id was removed. The node can only come back into
// the same cluster then, by Form, with another id. Call it before the files are set aside.
func (f *Former) Lose() error { return nil }
