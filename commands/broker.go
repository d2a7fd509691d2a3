package commands

import (
	"slices"
	"sync"
	"sync/atomic"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// Hub carries messages from those who publish to those who subscribe: what PUBLISH sends, and what
// happens to items (notify.go). The zero value is ready. Safe for concurrent use.
//
// A message goes the same way whatever it is, so that everybody sees all messages in one order, and
// the events of an item in the order in which they happened:
//
//  1. A command posts it while it runs, and so under the locks of the items it is about. A death is
//     posted when the dead item is removed; by the command that finds it if it is the command's own doing.
//     The queue that this makes is the order of all messages.
//  2. When the command's transaction is closed its messages are sealed: from then on it is known
//     what must be committed before anybody may see them.
//  3. Whoever has sealed messages carries what is at the head of the queue to the receivers, up to
//     its own; of deaths a goroutine takes care, which exists only while there are any.
//  4. A receiver takes a message without making anybody wait, and sends it when what it reveals is
//     committed.
type Broker struct {
	classes            atomic.Uint32 // Events that are wanted
	subscribedSessions atomic.Int64  // sessions with a subscription
	monitoringSessions atomic.Int64  // sessions in monitors

	mu         sync.Mutex // protects what follows; held while messages are carried
	monitors   []*Session // who is shown all commands
	registries [3]registry
	batch      []event // being carried

	queue eventQueue
}

// Receiver is the end of a session that takes messages to its client. Its methods never wait for the
// client.
type Receiver interface {
	// Hold keeps the messages that come from now on back until the reply of the command that the
	// session runs is under way. It is called from that command, before the session subscribes.
	Hold()
	// Deliver takes a message to be sent. It may be called from any goroutine.
	Deliver(m *Message)
}

// Message is what subscribers get. The same value goes to all of them.
type Message struct {
	Reply Reply // a push

	// Ticket must have been waited for before the message leaves. If that fails and the message is
	// Bound to it, because it tells of what the ticket covers, it must not leave at all.
	LSN   keyspace.LSN
	Bound bool

	encoded [2]struct {
		once  sync.Once
		bytes []byte
	}
}

// Form is the message as bytes for protocol 2 or 3, rendered once for all who need it.
func (m *Message) Encode(proto int, render func(proto int, r *Reply) []byte) []byte {
	form := &m.encoded[proto-2]
	form.once.Do(func() { form.bytes = render(proto, &m.Reply) })
	return form.bytes
}

// kindOfSubscription tells what a subscription is to.
type subscriptionKind int

const (
	subChannel subscriptionKind = iota
	subPattern
	subShard // channels of SSUBSCRIBE, which are a world of their own
)

// registry holds all subscriptions of one kind. Protected by the hub's mutex, like what follows.
type registry struct {
	byName map[string]*subscribers
	all    []*subscribers // in no particular order
}

// audience are the sessions that subscribe to the same channel or pattern.
type subscribers struct {
	name    string
	index   int // in all
	members []*Session
}

// living is how many of the members are not [Session.Gone].
func (a *subscribers) connected() (n int) {
	for _, s := range a.members {
		if !s.Disconnected.Load() {
			n++
		}
	}
	return n
}

// subscriptions are those of one session: the names, with its place among the members of each.
type subscriptions [3]map[string]int

// subscriptionCounts are how many subscriptions of each kind a session has.
type subscriptionCounts [3]int

func (c *subscriptionCounts) total() int { return c[subChannel] + c[subPattern] + c[subShard] }

// subscriptionSize is about how many bytes a subscription to a name takes.
func subscriptionSize(name string) int {
	const besides = 300
	return len(name) + besides
}

// joinLocked makes a session subscribe to a name, which is safe to keep and on its account.
func (h *Broker) subscribeLocked(s *Session, kind subscriptionKind, name string) {
	mine := s.subscriptions[kind]
	if _, already := mine[name]; already {
		s.Memory.Release(subscriptionSize(name))
		return
	}
	r := &h.registries[kind]
	a := r.byName[name]
	if a == nil {
		a = &subscribers{name: name, index: len(r.all)}
		if r.byName == nil {
			r.byName = make(map[string]*subscribers)
		}
		r.byName[name] = a
		r.all = append(r.all, a)
	}
	if mine == nil {
		mine = make(map[string]int)
		s.subscriptions[kind] = mine
	}
	mine[a.name] = len(a.members)
	a.members = append(a.members, s)
	s.update(func() { s.subscribed[kind]++ })
	if s.subscribed.total() == 1 {
		h.subscribedSessions.Add(1)
	}
}

// leaveLocked ends a subscription if there is one. An audience ends with its last member.
func (h *Broker) unsubscribeLocked(s *Session, kind subscriptionKind, name string) {
	mine := s.subscriptions[kind]
	place, ok := mine[name]
	if !ok {
		return
	}
	delete(mine, name)
	s.Memory.Release(subscriptionSize(name))
	s.update(func() { s.subscribed[kind]-- })
	if s.subscribed.total() == 0 {
		h.subscribedSessions.Add(-1)
	}
	r := &h.registries[kind]
	a := r.byName[name]
	last := len(a.members) - 1
	moved := a.members[last]
	if moved != s {
		a.members[place] = moved
		moved.subscriptions[kind][name] = place
	}
	a.members[last] = nil
	a.members = a.members[:last]
	if last > 0 {
		return
	}
	delete(r.byName, name)
	end := len(r.all) - 1
	r.all[a.index] = r.all[end]
	r.all[a.index].index = a.index
	r.all[end] = nil
	r.all = r.all[:end]
}

// subscribe makes a session subscribe to names, which are safe to keep, and calls each for every one
// of them when it is done. The error says why it subscribes to none of them.
func (h *Broker) subscribe(s *Session, kind subscriptionKind, names []string, each func(name string)) error {
	size := 0
	for _, name := range names {
		size += subscriptionSize(name)
	}
	if !s.Memory.Reserve(size) {
		return errClientMemory
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Receiver.Hold()
	for _, name := range names {
		h.subscribeLocked(s, kind, name)
		each(name)
	}
	return nil
}

// unsubscribe ends subscriptions and calls each for every name when it is done.
func (h *Broker) unsubscribe(s *Session, kind subscriptionKind, names []string, each func(name string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.unsubscribeLocked(s, kind, name)
		each(name)
	}
}

// leave ends all subscriptions of a session, and its monitoring.
func (h *Broker) dropSession(s *Session) {
	h.stopMonitoring(s)
	for _, kind := range []subscriptionKind{subChannel, subPattern, subShard} {
		if s.subscribed[kind] > 0 {
			h.unsubscribe(s, kind, h.names(s, kind), func(string) {})
		}
	}
}

// names lists what a session subscribes to, in alphabetical order.
func (h *Broker) names(s *Session, kind subscriptionKind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]string, 0, len(s.subscriptions[kind]))
	for name := range s.subscriptions[kind] {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// active visits the names of what is subscribed to.
func (h *Broker) eachActive(kind subscriptionKind, visit func(name string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.registries[kind].all {
		if slices.ContainsFunc(a.members, func(s *Session) bool { return !s.Disconnected.Load() }) {
			visit(a.name)
		}
	}
}

// count gives the number of subscribers to a channel, not counting patterns.
func (h *Broker) countSubscribers(kind subscriptionKind, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.registries[kind].byName[name]; a != nil {
		return a.connected()
	}
	return 0
}

// size is how many different channels or patterns are subscribed to, those included whose last
// subscriber is about to be disconnected.
func (h *Broker) countNames(kind subscriptionKind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.registries[kind].all)
}

// receivers tells how many times a message on a channel will be received: once for each
// subscription that fits.
func (h *Broker) countReceivers(kind subscriptionKind, channel string) int {
	if h.subscribedSessions.Load() == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	h.eachMatchLocked(kind, channel, func(_ subscriptionKind, a *subscribers) { n += a.connected() })
	return n
}

// eachAudienceLocked visits those who get a message on a channel: first its own subscribers, then
// those of patterns that match it. No pattern matches the channels of SSUBSCRIBE.
func (h *Broker) eachMatchLocked(kind subscriptionKind, channel string, visit func(kind subscriptionKind, a *subscribers)) {
	if a := h.registries[kind].byName[channel]; a != nil {
		visit(kind, a)
	}
	if kind != subChannel {
		return
	}
	for _, a := range h.registries[subPattern].all {
		if redisfmt.Match(a.name, channel) {
			visit(subPattern, a)
		}
	}
}

// deliverLocked gives a message to all who subscribe to its channel.
func (h *Broker) publishLocked(kind subscriptionKind, channel, text string, ticket keyspace.LSN, bound bool) {
	h.eachMatchLocked(kind, channel, func(kind subscriptionKind, a *subscribers) {
		m := &Message{LSN: ticket, Bound: bound}
		switch kind {
		case subChannel:
			m.Reply = push(Bulk("message"), Bulk(channel), Bulk(text))
		case subShard:
			m.Reply = push(Bulk("smessage"), Bulk(channel), Bulk(text))
		case subPattern:
			m.Reply = push(Bulk("pmessage"), Bulk(a.name), Bulk(channel), Bulk(text))
		}
		for _, s := range a.members {
			s.Receiver.Deliver(m)
		}
	})
}

func push(elems ...Reply) Reply { return Reply{Kind: KindPush, Elems: elems} }
