package engine

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// Broker carries messages from publishers to subscribers: those of PUBLISH, and events of items
// (events.go). The zero value is ready. Safe for concurrent use.
//
// All subscribers see all messages in one order. Events of an item come in the order of its changes:
//
//  1. A running command pushes an event to the queue, under the locks of the items it is about. A death
//     is pushed when the dead item is removed. The order of the queue is the order of all messages.
//  2. The end of the command's transaction seals its events: now the LSN is known that must be committed
//     before they leave.
//  3. The goroutine that sealed events delivers the head of the queue to the receivers, up to its own
//     events. A helper goroutine delivers deaths, and messages that take long to match with patterns. It
//     exists only while there are events.
//  4. A receiver accepts a message without waiting, and sends it when its LSN is committed.
type Broker struct {
	classes            atomic.Uint32 // events.Classes of notify-keyspace-events
	SubscribedSessions atomic.Int64  // sessions with a subscription
	eventsWanted       atomic.Bool   // another node has a subscriber that may match events of items
	MonitoringSessions atomic.Int64  // sessions in monitors

	// For the cost of matching: the number of subscribed patterns and their bytes.
	patternCount, patternBytes atomic.Int64
	stopping                   atomic.Bool // see Stop
	held                       atomic.Bool // see HoldHelper

	Remote *remote // the way to the other nodes of a cluster; nil: there is none

	mu         sync.Mutex // protects what follows; held for the delivery of a message
	monitors   []*Session // the sessions of MONITOR
	registries [3]registry
	patterns   []*subscribers // those of all patterns, not modified any more; nil: not known
	trackers   trackers

	Queue eventQueue
	told  atomic.Int64 // how often clients that cache were told something
	batch []Event      // the events in delivery; of the goroutine that delivers
}

// Receiver accepts messages for the client of a session. Its methods never wait for the client.
type Receiver interface {
	// Hold holds back further messages until the reply of the session's running command leaves. That
	// command calls it before the session subscribes.
	Hold()
	// Deliver accepts a message. Safe for concurrent use.
	Deliver(m *Message)
	// Full reports whether half of the messages wait that may. Safe for concurrent use with Deliver.
	Full() bool
}

// Message is what a subscriber receives. All subscribers share the same value.
type Message struct {
	Reply Reply // a push

	// LSN must be committed before the message leaves. If the commit fails, a Bound message must not
	// leave at all: it reveals the change that failed.
	LSN   keyspace.LSN
	Bound bool

	encoded [2]struct {
		once  sync.Once
		bytes []byte
	}
}

// Encode returns the bytes of the message in RESP 2 or 3, rendered once for all subscribers.
func (m *Message) Encode(proto int, render func(proto int, r *Reply) []byte) []byte {
	form := &m.encoded[proto-2]
	form.once.Do(func() { form.bytes = render(proto, &m.Reply) })
	return form.bytes
}

// SubscriptionKind is what a subscription names.
type SubscriptionKind int

const (
	SubChannel SubscriptionKind = iota
	SubPattern
	SubShard // a channel of SSUBSCRIBE, in a name space of its own
)

// registry holds all subscriptions of one kind. The broker's mutex protects it, and the types below.
type registry struct {
	byName map[string]*subscribers
	all    []*subscribers // in no order
}

// subscribers are the sessions that subscribe to the same channel or pattern.
type subscribers struct {
	name    string
	index   int // in registry.all
	members []*Session
	pattern *redisfmt.Pattern // of SubPattern
}

// connected returns the number of members that are not [Session.Disconnected] and may see some containers.
func (sub *subscribers) connected(containers []string) (n int) {
	for _, s := range sub.members {
		if !s.Disconnected.Load() && s.rights.SeesNow(containers) {
			n++
		}
	}
	return n
}

// subscriptions are those of one session: names, with its index among the members of each.
type subscriptions [3]map[string]int

// subscriptionCounts are the numbers of a session's subscriptions of each kind.
type subscriptionCounts [3]int

func (c *subscriptionCounts) total() int { return c[SubChannel] + c[SubPattern] + c[SubShard] }

// subscriptionSize returns about the number of bytes that a subscription takes.
func subscriptionSize(kind SubscriptionKind, name string) int {
	const overhead, ofByte, ofClass = 300, 8, 32
	size := len(name) + overhead
	if kind == SubPattern && strings.ContainsAny(name, `?[\`) { // compiled
		size += ofByte*len(name) + ofClass*strings.Count(name, "[")
	}
	return size
}

// subscribeLocked subscribes a session to a name. The caller has cloned the name and reserved memory for
// it. pattern is the compiled name of SubPattern.
func (b *Broker) subscribeLocked(s *Session, kind SubscriptionKind, name string, pattern *redisfmt.Pattern) {
	own := s.subscriptions[kind]
	if _, already := own[name]; already {
		s.Memory.Release(subscriptionSize(kind, name))
		return
	}
	r := &b.registries[kind]
	sub := r.byName[name]
	if sub == nil {
		sub = &subscribers{name: name, index: len(r.all), pattern: pattern}
		if r.byName == nil {
			r.byName = make(map[string]*subscribers)
		}
		r.byName[name] = sub
		r.all = append(r.all, sub)
		b.Remote.noteLocked(kind, name, true)
		if kind == SubPattern {
			b.countPatternLocked(name, 1)
		}
	}
	if own == nil {
		own = make(map[string]int)
		s.subscriptions[kind] = own
	}
	own[sub.name] = len(sub.members)
	sub.members = append(sub.members, s)
	s.Update(func() { s.Subscribed[kind]++ })
	if s.Subscribed.total() == 1 {
		b.SubscribedSessions.Add(1)
	}
}

// unsubscribeLocked ends a subscription if there is one. The last member removes the subscribers.
func (b *Broker) unsubscribeLocked(s *Session, kind SubscriptionKind, name string) {
	own := s.subscriptions[kind]
	index, ok := own[name]
	if !ok {
		return
	}
	delete(own, name)
	s.Memory.Release(subscriptionSize(kind, name))
	s.Update(func() { s.Subscribed[kind]-- })
	if s.Subscribed.total() == 0 {
		b.SubscribedSessions.Add(-1)
	}
	r := &b.registries[kind]
	sub := r.byName[name]
	last := len(sub.members) - 1
	moved := sub.members[last]
	if moved != s {
		sub.members[index] = moved
		moved.subscriptions[kind][sub.name] = index // name would replace the key
	}
	sub.members[last] = nil
	sub.members = sub.members[:last]
	if last > 0 {
		return
	}
	delete(r.byName, name)
	end := len(r.all) - 1
	r.all[sub.index] = r.all[end]
	r.all[sub.index].index = sub.index
	r.all[end] = nil
	r.all = r.all[:end]
	b.Remote.noteLocked(kind, name, false)
	if kind == SubPattern {
		b.countPatternLocked(name, -1)
	}
}

// countPatternLocked counts that a pattern is new (1) or gone (-1).
func (b *Broker) countPatternLocked(name string, change int) {
	b.patterns = nil
	b.patternCount.Add(int64(change))
	b.patternBytes.Add(int64(change * len(name)))
}

// Subscribe subscribes a session to names and calls each after every one. The caller has cloned the
// names. After an error it has subscribed to none.
func (b *Broker) Subscribe(s *Session, kind SubscriptionKind, names []string, each func(name string)) error {
	size := 0
	patterns := make([]*redisfmt.Pattern, len(names))
	for i, name := range names {
		size += subscriptionSize(kind, name)
		if kind == SubPattern {
			patterns[i] = redisfmt.Compile(name)
		}
	}
	if !s.Memory.Reserve(size) {
		return ErrClientMemory
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Receiver.Hold()
	for i, name := range names {
		b.subscribeLocked(s, kind, name, patterns[i])
		each(name)
	}
	return nil
}

// Unsubscribe ends subscriptions and calls each after every one.
func (b *Broker) Unsubscribe(s *Session, kind SubscriptionKind, names []string, each func(name string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.unsubscribeLocked(s, kind, name)
		each(name)
	}
}

// dropSession ends all subscriptions of a session, and its MONITOR.
func (b *Broker) dropSession(s *Session) {
	b.stopMonitoring(s)
	if s.Subscribed.total() == 0 {
		return
	}
	for _, kind := range []SubscriptionKind{SubChannel, SubPattern, SubShard} {
		if s.Subscribed[kind] > 0 {
			b.Unsubscribe(s, kind, b.Names(s, kind), func(string) {})
		}
	}
	b.Announce()
}

// AnyFull reports whether a receiver of messages is full.
func (b *Broker) AnyFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.registries {
		for _, sub := range r.all {
			if slices.ContainsFunc(sub.members, func(s *Session) bool { return s.Receiver.Full() }) {
				return true
			}
		}
	}
	return false
}

// Names returns the names that a session subscribes to, sorted.
func (b *Broker) Names(s *Session, kind SubscriptionKind) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]string, 0, len(s.subscriptions[kind]))
	for name := range s.subscriptions[kind] {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// EachActive visits the names with connected subscribers, without the broker's lock, until visit returns
// false. A name that loses or gains subscribers meanwhile may be left out.
func (b *Broker) EachActive(kind SubscriptionKind, visit func(name string) bool) {
	const portion = 1000 // bounds the time for which the broker is locked
	b.mu.Lock()
	all := slices.Clone(b.registries[kind].all)
	b.mu.Unlock()
	for part := range slices.Chunk(all, portion) {
		b.mu.Lock()
		active := part[:0]
		for _, sub := range part {
			if slices.ContainsFunc(sub.members, func(s *Session) bool { return !s.Disconnected.Load() }) {
				active = append(active, sub)
			}
		}
		b.mu.Unlock()
		for _, sub := range active {
			if !visit(sub.name) {
				return
			}
		}
	}
}

// CountSubscribers returns the number of subscribers to a channel, without patterns.
func (b *Broker) CountSubscribers(kind SubscriptionKind, name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sub := b.registries[kind].byName[name]; sub != nil {
		return sub.connected(nil)
	}
	return 0
}

// CountNames returns the number of channels or patterns with subscribers. Subscribers about to be
// disconnected count.
func (b *Broker) CountNames(kind SubscriptionKind) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.registries[kind].all)
}

func Push(elems ...Reply) Reply { return Reply{Kind: KindPush, Elems: elems} }
