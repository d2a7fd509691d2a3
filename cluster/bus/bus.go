package bus

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Options is what a Bus needs to know. Its functions must not call the bus; nil ones do nothing.
type Options struct {
	// Deliver takes messages of another node, in their order. It is called by one goroutine for each node at
	// a time, and may wait as long as the broker is behind.
	Deliver func([]Message)
	// Wanted is called when the first node wants keyspace events, and when none does any more.
	Wanted func(bool)
	Log    zerolog.Logger
}

// Dial opens a stream to a node.
type Dial func(ctx context.Context) (net.Conn, error)

// Bus is a node's end of the streams. Safe for concurrent use.
type Bus struct {
	o       Options
	peers   atomic.Pointer[[]*peer] // replaced, never changed
	remote  atomic.Pointer[[]interest]
	own     atomic.Pointer[ownFilter]
	dropped atomic.Uint64 // messages that another node did not get, as far as this one knows

	mu       sync.Mutex // protects what follows, and changes of the pointers above
	inbound  map[uint64]*inbound
	filters  map[uint64]*matcher // of the nodes that want events
	wanted   bool                // what Wanted was last called with
	progress chan struct{}       // closed and replaced when a node has confirmed a filter, or is gone
}

// interest is what a node wants.
type interest struct {
	id uint64
	*matcher
}

// ownFilter is the filter of this node, with a number that grows with each change.
type ownFilter struct {
	number uint64
	Filter
}

// New returns a bus without streams.
func New(o Options) *Bus {
	if o.Deliver == nil {
		o.Deliver = func([]Message) {}
	}
	if o.Wanted == nil {
		o.Wanted = func(bool) {}
	}
	b := &Bus{o: o, inbound: map[uint64]*inbound{}, filters: map[uint64]*matcher{}, progress: make(chan struct{})}
	b.peers.Store(&[]*peer{})
	b.remote.Store(&[]interest{})
	b.own.Store(&ownFilter{})
	return b
}

// Connect keeps a stream to a node open until Disconnect. It returns at once. A second call for a node
// changes how the next stream to it is opened.
func (b *Bus) Connect(id uint64, dial Dial) {
	b.mu.Lock()
	defer b.mu.Unlock()
	peers := *b.peers.Load()
	if i := slices.IndexFunc(peers, func(p *peer) bool { return p.id == id }); i >= 0 {
		peers[i].dial.Store(&dial)
		return
	}
	p := newPeer(b, id, dial)
	b.peers.Store(new(append(slices.Clip(slices.Clone(peers)), p)))
	go p.run()
}

// Disconnect ends the streams to a node and from it. It does not wait.
func (b *Bus) Disconnect(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var kept []*peer
	for _, p := range *b.peers.Load() {
		if p.id != id {
			kept = append(kept, p)
			continue
		}
		p.cancel()
	}
	b.peers.Store(&kept)
	if in := b.inbound[id]; in != nil {
		go in.conn.Close() // TLS says goodbye, which takes seconds if the node reads nothing
	}
	b.progressLocked()
}

// Close ends all streams, and waits until nothing is delivered any more. Connect may begin anew.
func (b *Bus) Close() {
	b.mu.Lock()
	peers := *b.peers.Load()
	incoming := slices.Collect(maps.Values(b.inbound))
	b.mu.Unlock()
	for _, p := range peers {
		b.Disconnect(p.id)
	}
	for _, in := range incoming {
		in.conn.Close()
		<-in.done
	}
	for _, p := range peers {
		<-p.done
	}
}

// Send sends messages to all nodes, and events to those that want them. It never blocks.
func (b *Bus) Send(list []Message) {
	peers := *b.peers.Load()
	if len(peers) == 0 {
		return
	}
	filters := *b.remote.Load()
	var frames []byte
	ends := make([]int, len(list))
	for i := range list {
		frames = appendMessage(frames, &list[i])
		ends[i] = len(frames)
	}
	for _, p := range peers {
		var wants *matcher
		if i := slices.IndexFunc(filters, func(f interest) bool { return f.id == p.id }); i >= 0 {
			wants = filters[i].matcher
		}
		start := 0
		p.mu.Lock()
		for i := range list {
			m := &list[i]
			if m.Kind != Event || wants != nil && wants.match(m.Channel, m.Numbered) {
				p.enqueueLocked(frames[start:ends[i]])
			}
			start = ends[i]
		}
		p.mu.Unlock()
		p.wake()
	}
}

// Wants reports whether a node wants a keyspace event. numbered is empty if it is the same channel.
func (b *Bus) Wants(channel, numbered string) bool {
	for _, f := range *b.remote.Load() {
		if f.match(channel, numbered) {
			return true
		}
	}
	return false
}

// Dropped returns the number of messages that were not sent to a node, since the start.
func (b *Bus) Dropped() uint64 { return b.dropped.Load() }

// Announce tells the other nodes which events this node wants from now on. It does not wait. The filter must
// not be modified any more.
func (b *Bus) Announce(f Filter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own.Store(&ownFilter{b.own.Load().number + 1, f})
	for _, p := range *b.peers.Load() {
		p.wake()
	}
}

// Announced waits until each node that is connected has what was announced last, or until ctx ends.
func (b *Bus) Announced(ctx context.Context) {
	number := b.own.Load().number
	for {
		b.mu.Lock()
		progress := b.progress
		b.mu.Unlock()
		if !slices.ContainsFunc(*b.peers.Load(), func(p *peer) bool { return p.lacks(number) }) {
			return
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return
		}
	}
}

// progressed wakes those who wait in Announced.
func (b *Bus) progressed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progressLocked()
}

func (b *Bus) progressLocked() {
	close(b.progress)
	b.progress = make(chan struct{})
}

// setFilterLocked notes what a node wants; nil: nothing. The bus's mutex must be held.
func (b *Bus) setFilterLocked(id uint64, m *matcher) {
	if m == nil {
		delete(b.filters, id)
	} else {
		b.filters[id] = m
	}
	var list []interest
	for id, m := range b.filters {
		list = append(list, interest{id, m})
	}
	b.remote.Store(&list)
	if wanted := len(list) > 0; wanted != b.wanted {
		b.wanted = wanted
		b.o.Wanted(wanted)
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
