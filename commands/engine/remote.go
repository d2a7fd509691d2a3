package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"mayfly/cluster/bus"
	"mayfly/keyspace"
)

// In a cluster each node has a broker, and messages reach the subscribers of all nodes, as in Redis Cluster:
//
//  1. A client subscribes and publishes at any node. PUBLISH counts the receivers of its own node.
//  2. The broker that delivers a message passes it on to the other nodes, once its LSN is committed, in the
//     same order.
//  3. The broker of another node delivers it to its own subscribers and passes it on to none.
//  4. Events of items come from the node that makes them, the leader. They go only to nodes with a subscriber
//     that may match them. A node tells the others what its subscribers may match.
//
// Messages between nodes may be lost, as those of Redis. Events of Sentinels stay where they are: each node
// has its own.

// Bus carries messages to the brokers of the other nodes. Safe for concurrent use.
type Bus interface {
	// Send sends messages, in their order. It never blocks.
	Send(list []bus.Message)
	// Wants reports whether another node wants an event on a channel, or on the one with the container's
	// number.
	Wants(channel, numbered string) bool
	// Announce tells the other nodes which events this node wants.
	Announce(f bus.Filter)
	// Announced waits until the nodes that are connected know what was announced last, or until ctx ends.
	Announced(ctx context.Context)
	// Dropped returns the number of messages that were not sent, since the start.
	Dropped() uint64
}

// remote is the way of a broker to the other nodes.
type remote struct {
	Bus      Bus
	keyspace func() *keyspace.Keyspace                    // [Engine.Keyspace]
	wait     func(*keyspace.Keyspace, keyspace.LSN) error // waits for a commit

	filterMu  sync.Mutex            // held while the filter is announced; protects all
	all       bool                  // all events were announced last
	listening map[subscription]bool // subscriptions that events may match; protected by the broker's mutex
	changed   bool                  // listening has changed since it was announced; protected by the broker's mutex

	mu      sync.Mutex // protects what follows
	queue   []outgoing // messages that wait for a commit, and those after them
	size    int        // of queue, bytes
	running bool       // a goroutine sends the queue
	dropped uint64     // messages for which there was no room
}

// subscription is a subscription of any session.
type subscription struct {
	kind SubscriptionKind
	name string
}

// outgoing is a message for other nodes.
type outgoing struct {
	message  bus.Message
	keyspace *keyspace.Keyspace // to which lsn belongs: the next incarnation of the node counts anew
	lsn      keyspace.LSN       // see Message
	bound    bool
}

// outgoingCost is about what an outgoing takes in bytes besides its strings.
const outgoingCost = 128

const (
	// MostFiltered is the number of subscriptions to events, and the bytes of their names, that a node tells
	// the others. With more it wants all events.
	MostFiltered      = 32
	mostFilteredBytes = 4 << 10
	// mostOutgoing is the number of bytes that wait for a commit at most. What comes then is not sent to
	// other nodes.
	mostOutgoing = 32 << 20
	// announcePatience is how long a subscription to events waits for the other nodes to know of it.
	announcePatience = 200 * time.Millisecond
)

// SetBus connects the broker with those of other nodes. Call it before the first command.
func (e *Engine) SetBus(b Bus) {
	wait := func(ks *keyspace.Keyspace, lsn keyspace.LSN) error {
		if ks == nil {
			return withoutKeyspace(lsn)
		}
		return ks.WaitUntil(lsn, e.Deadline(0), false)
	}
	e.Broker.Remote = &remote{Bus: b, keyspace: e.Keyspace, wait: wait, listening: map[subscription]bool{}}
}

// ReceiveMessages delivers messages of another node. It waits while the broker is far behind.
func (e *Engine) ReceiveMessages(list []bus.Message) {
	b := &e.Broker
	if b.SubscribedSessions.Load() == 0 {
		return
	}
	for i := range list {
		m := &list[i]
		kind := SubChannel
		if m.Kind == bus.Shard {
			kind = SubShard
		}
		b.Queue.push(Event{local: true, Kind: kind, Channel: m.Channel, numbered: m.Numbered, Text: m.Text})
	}
	b.ensureHelper()
	if b.Queue.Len() > LongQueue {
		b.deliverAny()
	}
}

// EventsWanted notes whether another node wants events of items.
func (e *Engine) EventsWanted(wanted bool) {
	e.Broker.eventsWanted.Store(wanted)
	if ks := e.Keyspace(); ks != nil {
		ks.ListenersChanged()
	}
}

// send passes a message on to the other nodes once it is committed. Calls come in the order of the messages.
func (r *remote) send(m bus.Message, lsn keyspace.LSN, bound bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lsn == 0 && !r.running {
		r.Bus.Send([]bus.Message{m})
		return
	}
	if r.size > mostOutgoing {
		r.dropped++
		return
	}
	r.size += len(m.Channel) + len(m.Numbered) + len(m.Text) + outgoingCost
	r.queue = append(r.queue, outgoing{m, r.keyspace(), lsn, bound})
	if !r.running {
		r.running = true
		go r.run()
	}
}

// DroppedMessages returns the number of messages that did not leave for other nodes of the cluster, since the
// start.
func (e *Engine) DroppedMessages() uint64 {
	r := e.Broker.Remote
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped + r.Bus.Dropped()
}

// run sends the queue until it is empty.
func (r *remote) run() {
	for {
		r.mu.Lock()
		list := r.queue
		r.queue, r.size, r.running = nil, 0, len(list) > 0
		r.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(m outgoing) bool { return m.keyspace != list[0].keyspace })
			if n < 0 {
				n = len(list)
			}
			r.sendAll(list[:n])
			list = list[n:]
		}
	}
}

// sendAll sends messages of one keyspace whose commit succeeds, and those that are not bound to theirs.
func (r *remote) sendAll(list []outgoing) {
	var last keyspace.LSN
	for i := range list {
		last = max(last, list[i].lsn)
	}
	committed := last == 0 || r.wait(list[0].keyspace, last) == nil
	failed := last // the least LSN that is known to fail, if not committed
	var out []bus.Message
	for i := range list {
		m := &list[i]
		if !committed && m.bound && m.lsn > 0 {
			if m.lsn >= failed {
				continue
			}
			if r.wait(m.keyspace, m.lsn) != nil {
				failed = m.lsn
				continue
			}
		}
		out = append(out, m.message)
	}
	if len(out) > 0 {
		r.Bus.Send(out)
	}
}

// noteLocked notes that a channel or pattern has its first subscriber, or none any more. The broker's mutex
// must be held.
func (r *remote) noteLocked(kind SubscriptionKind, name string, active bool) {
	if r == nil || kind == SubShard || kind == SubChannel && !bus.IsEventChannel(name) || kind == SubPattern && !bus.MayMatchEvents(name) {
		return
	}
	r.changed = true
	if key := (subscription{kind, name}); active {
		r.listening[key] = true
	} else {
		delete(r.listening, key)
	}
}

// Announce tells the other nodes which events this node wants, if that has changed. It reports whether it
// has.
func (b *Broker) Announce() bool {
	r := b.Remote
	if r == nil {
		return false
	}
	r.filterMu.Lock()
	defer r.filterMu.Unlock()
	b.mu.Lock()
	changed, f := r.changed, bus.Filter{}
	r.changed = false
	if changed {
		f = r.filterLocked()
	}
	b.mu.Unlock()
	if !changed || f.All && r.all {
		return false
	}
	r.all = f.All
	r.Bus.Announce(f)
	return true
}

// filterLocked returns what the subscribers of this node may match. The broker's mutex must be held.
func (r *remote) filterLocked() (f bus.Filter) {
	size := 0
	for key := range r.listening {
		if size += len(key.name); len(r.listening) > MostFiltered || size > mostFilteredBytes {
			return bus.Filter{All: true}
		}
		if key.kind == SubChannel {
			f.Channels = append(f.Channels, key.name)
		} else {
			f.Patterns = append(f.Patterns, key.name)
		}
	}
	return f
}

// AnnounceSubscriptions announces what a command has subscribed to. Its reply waits until the other nodes
// know: an event that comes after the reply is not missed.
func (x *Context) AnnounceSubscriptions(reply Reply) Reply {
	if !x.Engine.Broker.Announce() || x.Queued {
		return reply
	}
	x.Outside = func() (Reply, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), announcePatience)
		defer cancel()
		x.Engine.Broker.Remote.Bus.Announced(ctx)
		return reply, false
	}
	return Reply{}
}
