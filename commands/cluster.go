package commands

import (
	"context"

	"mayfly/cluster/topology"
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
}

// Suspend ends the use of the keyspace, before the node closes it without committing. It disconnects all
// clients; commands are answered with LOADING until [Engine.SetKeyspace]. No reply leaves afterwards that
// reports or reveals what the keyspace has not committed.
func (e *Engine) Suspend() {
	e.suspended.Store(true)
	// A session that passes the check from here on has begun after it: what it executes is refused. The
	// others are disconnected.
	e.Host.Disconnect(func(*Session) bool { return true })
}

// LeaderChanged applies a change of leaders: see the page on clusters. The node calls it with each View
// whose leader, or whose own role, differs from that before.
func (e *Engine) LeaderChanged(*topology.View) {}
