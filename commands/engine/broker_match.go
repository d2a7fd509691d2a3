package engine

import (
	"slices"

	"mayfly/commands/access"
	"mayfly/keyspace"
)

// Matching channels with patterns takes time for each pattern, and more for long ones. So nothing waits for
// it but the publisher:
//
//  1. Messages are matched without the broker's lock, with a list of the patterns at that time. A
//     client that subscribes meanwhile receives the next message.
//  2. PUBLISH is matched when it runs, for its reply. A transaction matches its messages before it locks
//     items.
//  3. A message that is cheap to match is matched again when it is delivered. The helper goroutine matches
//     all others, and their publisher waits for that.

// Costs of matching a message with all patterns, in steps of some nanoseconds.
const (
	stepsOfByte   = 8       // for each pattern and byte of the channel
	bytesOfStep   = 64      // bytes of a pattern that are matched in one more step
	expensiveCost = 4 << 20 // a message that costs more is matched by the helper, its command is slow
	mostCost      = 8 << 20 // what a publisher spends at most on the messages before its own
)

// Cost returns the cost of matching a channel with length bytes. It is 0 without patterns.
func (b *Broker) Cost(length int) int {
	patterns := b.patternCount.Load()
	if patterns == 0 {
		return 0
	}
	return length * int(patterns*stepsOfByte+b.patternBytes.Load()/bytesOfStep)
}

// allPatterns returns the subscribers of all patterns. The list is not modified any more.
func (b *Broker) allPatterns() []*subscribers {
	if b.patternCount.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.patterns == nil {
		b.patterns = slices.Clone(b.registries[SubPattern].all)
	}
	return b.patterns
}

// match returns the subscribers of patterns that match a channel. It holds no lock. Patterns do not match
// channels of SSUBSCRIBE. If abandoned, called after each pattern, returns true, match ends early: ok is
// false.
func (b *Broker) match(kind SubscriptionKind, channel string, abandoned func() bool) (matched []*subscribers, ok bool) {
	if kind != SubChannel {
		return nil, true
	}
	for _, sub := range b.allPatterns() {
		if sub.pattern.Match(channel) {
			matched = append(matched, sub)
		}
		if abandoned() {
			return nil, false
		}
	}
	return matched, true
}

// CountReceivers returns how often a message on a channel is received: once for each matching subscription.
// ok is false if the command was abandoned.
func (x *Context) CountReceivers(kind SubscriptionKind, channel string) (n int, ok bool) {
	b := &x.Engine.Broker
	if b.SubscribedSessions.Load() == 0 {
		return 0, true
	}
	watch := x.WatchClient()
	matched, ok := b.match(kind, channel, func() bool { return watch.Abandoned(len(channel)) })
	if !ok {
		return 0, false
	}
	containers := containersOf(kind, channel)
	b.mu.Lock()
	defer b.mu.Unlock()
	if sub := b.registries[kind].byName[channel]; sub != nil {
		n += sub.connected(containers)
	}
	for _, sub := range matched {
		n += sub.connected(containers)
	}
	return n, true
}

// containersOf returns the containers to which a channel belongs: subscribers that may not see them receive
// nothing. Shard channels carry no events.
func containersOf(kind SubscriptionKind, channel string) []string {
	if kind != SubChannel {
		return nil
	}
	return access.ContainersOf(channel)
}

// publish delivers a message to all who subscribe to its channel and may see some containers.
func (b *Broker) publish(kind SubscriptionKind, channel, text string, lsn keyspace.LSN, bound bool, containers []string) {
	matched, ok := b.match(kind, channel, b.stopping.Load)
	if ok {
		b.send(kind, channel, text, lsn, bound, matched, containers)
	}
}

// send delivers a message to all who subscribe to its channel, and to those of the patterns that match it, if
// they may see some containers.
func (b *Broker) send(kind SubscriptionKind, channel, text string, lsn keyspace.LSN, bound bool, matched []*subscribers, containers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	deliver := func(sub *subscribers, elems ...Reply) {
		m := &Message{LSN: lsn, Bound: bound, Reply: Push(elems...)}
		for _, s := range sub.members {
			if s.rights.SeesNow(containers) {
				s.Receiver.Deliver(m)
			}
		}
	}
	if sub := b.registries[kind].byName[channel]; sub != nil {
		word := "message"
		if kind == SubShard {
			word = "smessage"
		}
		deliver(sub, Bulk(word), Bulk(channel), Bulk(text))
	}
	for _, sub := range matched {
		deliver(sub, Bulk("pmessage"), Bulk(sub.name), Bulk(channel), Bulk(text))
	}
}

// Stop makes the delivery of messages end soon. Those that are not matched yet are dropped. The server stops.
func (b *Broker) Stop() { b.stopping.Store(true) }

// matchesSlowly reports whether a command may publish messages that take long to match.
func (e *Engine) matchesSlowly(r *Row, args []string) bool {
	b := &e.Broker
	if b.patternCount.Load() == 0 || len(args) < 2 {
		return false
	}
	if r.Flags&Publishes == 0 && (r.Flags&Write == 0 || b.classes.Load() == 0) {
		return false
	}
	if r.Flags&Publishes != 0 {
		return b.Cost(len(args[1])) > expensiveCost
	}
	length := 0
	for _, id := range r.ids(nil, args) {
		length += len(id)
	}
	return b.Cost(length) > expensiveCost
}
