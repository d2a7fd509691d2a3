package engine

import (
	"math"
	"slices"
	"strconv"
	"sync"

	"mayfly/cluster/bus"
	"mayfly/commands/access"
	"mayfly/commands/events"
	"mayfly/keyspace"
)

// Event is a message on its way through the broker. With a name it is an event of an item, else a message
// for a channel. Its strings are clones.
type Event struct {
	batch *eventBatch // nil for a death, which is sealed from the start
	Bound bool        // see Message.Bound
	local bool        // of another node, or of a Sentinel: it is not passed on to other nodes

	Kind     SubscriptionKind
	Channel  string
	numbered string // of another node's event: the channel with the container's number; else empty
	Text     string

	name      string
	channels  events.Classes // events.ToKeyspace, events.ToKeyevent or both
	container *keyspace.Container
	id        string
	lsn       keyspace.LSN // of a death, and of what is told

	told     *keyspace.Told // for clients that cache; nil: nothing
	toldCost int            // of telling it
}

// eventBatch is the events of one command, which are sealed together. The queue's mutex protects it.
type eventBatch struct {
	sealed    bool
	cancelled bool         // the command was rolled back: deliver nothing
	lsn       keyspace.LSN // known when sealed
	last      uint64       // number of the last event
	cost      int          // of matching the events with patterns
}

// eventQueue holds events in the order in which they were pushed. The zero value is empty.
type eventQueue struct {
	Mu            sync.Mutex // protects what follows; held only for moments
	deliveredMore sync.Cond  // signals that delivered has grown, or delivering has changed
	events        []Event
	head          int    // the index of the first event
	Pushed        uint64 // the number of events pushed so far
	delivered     uint64 // the number of events delivered so far
	helping       bool   // the helper goroutine runs
	delivering    deliveryState
}

// deliveryState says what the goroutine does that delivers. There is one at a time, so that all subscribers
// see all messages in one order.
type deliveryState uint8

const (
	notDelivering deliveryState = iota
	delivering                  // soon over
	Matching                    // matches a message for long
)

const (
	// deliverBatch is the number of events delivered at a time. Others may use the broker in between.
	deliverBatch = 64
	// LongQueue is the length of the queue from which the finder of a death delivers events, too. So
	// deaths never outrun their delivery.
	LongQueue = 64 << 10
)

// push appends an event.
func (q *eventQueue) push(ev Event) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.Pushed++
	if ev.batch != nil {
		ev.batch.last = q.Pushed
	}
	q.events = append(q.events, ev)
}

// seal seals a batch: lsn covers its events. last is the number of its last event.
func (q *eventQueue) seal(batch *eventBatch, lsn keyspace.LSN) (last uint64) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	batch.sealed, batch.lsn = true, lsn
	return batch.last
}

// cancel prevents the delivery of a batch that is not sealed yet. The batch may be nil.
func (batch *eventBatch) cancel(q *eventQueue) {
	if batch == nil {
		return
	}
	q.Mu.Lock()
	defer q.Mu.Unlock()
	batch.cancelled = true
}

// Begin makes the caller the goroutine that delivers, once no other one does. It does not wait for one that
// matches a message for long: then it returns false, unless the caller is about to do the same.
func (q *eventQueue) Begin(as deliveryState) bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.deliveredMore.L = &q.Mu
	for q.delivering == delivering || q.delivering == Matching && as == Matching {
		q.deliveredMore.Wait()
	}
	if q.delivering == Matching {
		return false
	}
	q.delivering = as
	return true
}

// popReady removes up to most sealed events from the head of the queue and appends them to list. It stops
// before they cost more than budget to match.
func (q *eventQueue) popReady(list []Event, most, budget int, cost func(*Event) int) (_ []Event, spent int) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	for len(list) < most && q.readyLocked() {
		next := cost(&q.events[q.head])
		if spent+next > budget {
			break
		}
		spent += next
		list = append(list, q.events[q.head])
		q.events[q.head] = Event{}
		q.head++
	}
	switch {
	case q.head == len(q.events) && cap(q.events) > LongQueue:
		q.events, q.head = nil, 0
	case q.head == len(q.events):
		q.events, q.head = q.events[:0], 0
	case q.head > deliverBatch && q.head > len(q.events)/2:
		left := copy(q.events, q.events[q.head:])
		clear(q.events[left:])
		q.events, q.head = q.events[:left], 0
	}
	return list, spent
}

// readyLocked reports whether the queue has a sealed event at its head.
func (q *eventQueue) readyLocked() bool {
	if q.head == len(q.events) {
		return false
	}
	batch := q.events[q.head].batch
	return batch == nil || batch.sealed
}

// End ends what begin has begun: n more events have been delivered.
func (q *eventQueue) End(n int) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.delivering = notDelivering
	q.delivered += uint64(n)
	q.deliveredMore.Broadcast()
}

// HasDelivered reports whether the first n events have been delivered.
func (q *eventQueue) HasDelivered(n uint64) bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return q.delivered >= n
}

// WaitDelivered waits until the first n events have been delivered. Each of them is sealed soon: between
// its first event and its end, a command waits for no client and no disk.
func (q *eventQueue) WaitDelivered(n uint64) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.deliveredMore.L = &q.Mu
	for q.delivered < n {
		q.deliveredMore.Wait()
	}
}

// startHelper reports whether the caller must start the helper: there are events to deliver and no helper
// runs.
func (q *eventQueue) startHelper() bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.helping || !q.readyLocked() {
		return false
	}
	q.helping = true
	return true
}

// stopHelper reports whether the helper must end because there is nothing to deliver.
func (q *eventQueue) stopHelper() bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.helping = q.readyLocked()
	return !q.helping
}

// pushed returns the number of the last event that was pushed.
func (q *eventQueue) pushed() uint64 {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return q.Pushed
}

// Drain delivers the events that were pushed so far, and returns their number.
func (b *Broker) Drain() uint64 {
	q := &b.Queue
	pushed := q.pushed()
	for !q.HasDelivered(pushed) {
		if b.deliverAny() == 0 {
			q.WaitDelivered(pushed) // another command seals the next one soon
		}
	}
	return pushed
}

// HoldHelper has deaths start no helper, if held is true: the caller drains the queue, and waits for no other
// goroutine that a busy machine runs late.
func (b *Broker) HoldHelper(held bool) {
	if b.held.Store(held); !held {
		b.ensureHelper()
	}
}

func (q *eventQueue) Len() int {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return len(q.events) - q.head
}

// flush seals a command's events and delivers them, with all before them. If the session subscribes to
// anything, flush waits for their delivery. So the client sees its own messages before the reply. It waits
// for messages that take long to match, too, unless others wait for the session.
func (b *Broker) flush(s *Session, batch *eventBatch, lsn keyspace.LSN) {
	last := b.Queue.seal(batch, lsn)
	b.deliverCheap(last)
	if s.Subscribed.total() > 0 || batch.cost > expensiveCost && !s.OnLoop {
		b.Queue.WaitDelivered(last)
	}
}

// deliverCheap delivers the events up to this number, as far as that is soon done, and the helper the rest.
func (b *Broker) deliverCheap(last uint64) {
	for budget := mostCost; !b.Queue.HasDelivered(last); {
		n, spent := b.deliver(budget)
		if budget -= spent; n == 0 {
			break
		}
	}
	b.ensureHelper()
}

// ensureHelper starts the helper if there are events to deliver and none runs.
func (b *Broker) ensureHelper() {
	if !b.Queue.startHelper() {
		return
	}
	go func() {
		for b.deliverAny() > 0 || !b.Queue.stopHelper() {
		}
	}()
}

// deliver delivers a batch of events that are cheap to match and together cost at most budget. It returns
// their number and cost.
func (b *Broker) deliver(budget int) (n, spent int) {
	if !b.Queue.Begin(delivering) {
		return 0, 0
	}
	return b.deliverBatch(deliverBatch, min(budget, expensiveCost))
}

// deliverAny is deliver of any events, whatever they cost.
func (b *Broker) deliverAny() (n int) {
	if n, _ = b.deliver(mostCost); n == 0 {
		b.Queue.Begin(Matching)
		n, _ = b.deliverBatch(1, math.MaxInt)
	}
	return n
}

// deliverBatch delivers the next events, as popReady chooses them. The queue's begin must have succeeded.
func (b *Broker) deliverBatch(most, budget int) (n, spent int) {
	b.batch, spent = b.Queue.popReady(b.batch[:0], most, budget, b.costOf)
	for i := range b.batch {
		b.deliverEvent(&b.batch[i])
	}
	n = len(b.batch)
	clear(b.batch)
	b.Queue.End(n)
	return n, spent
}

// costOf returns the cost of matching an event, or of telling it to clients that cache.
func (b *Broker) costOf(ev *Event) int {
	if ev.told != nil {
		return ev.toldCost
	}
	if ev.Kind != SubChannel {
		return 0
	}
	length := len(ev.Channel) + len(ev.numbered) + len(ev.id) + len(ev.name)
	if ev.container != nil {
		if length += len(ev.container.Name()); !ev.container.NamedByNumber() {
			length *= 2 // see publishEvent
		}
	}
	return b.Cost(length)
}

func (b *Broker) deliverEvent(ev *Event) {
	lsn := ev.lsn
	if ev.batch != nil && ev.batch.cancelled { // constant after sealing
		return
	}
	if ev.batch != nil {
		lsn = ev.batch.lsn
	}
	switch {
	case ev.told != nil:
		b.deliverTold(ev.told)
		return
	case ev.numbered != "":
		b.publishNamed(ev.Channel, ev.numbered, ev.Text, lsn, ev.Bound, access.ContainersOf(ev.Channel))
		return
	case ev.name == "":
		b.publish(ev.Kind, ev.Channel, ev.Text, lsn, ev.Bound, containersOf(ev.Kind, ev.Channel))
		if b.Remote != nil && !ev.local {
			b.Remote.send(bus.Message{Kind: busKinds[ev.Kind], Channel: ev.Channel, Text: ev.Text}, lsn, ev.Bound)
		}
		return
	}
	if ev.channels&events.ToKeyspace != 0 {
		b.publishEvent(ev, lsn, "__keyspace@", ev.id, ev.name)
	}
	if ev.channels&events.ToKeyevent != 0 {
		b.publishEvent(ev, lsn, "__keyevent@", ev.name, ev.id)
	}
}

// busKinds are the kinds of messages between nodes.
var busKinds = [...]bus.Kind{SubChannel: bus.Channel, SubShard: bus.Shard}

// publishEvent delivers an event on the channel with the container's name, or with its number: see
// publishNamed. It passes the event on to the nodes that want it.
func (b *Broker) publishEvent(ev *Event, lsn keyspace.LSN, prefix, about, text string) {
	suffix := "__:" + about
	named, numbered := prefix+ev.container.Name()+suffix, ""
	if !ev.container.NamedByNumber() {
		numbered = prefix + strconv.FormatUint(uint64(ev.container.DB()), 10) + suffix
	}
	b.publishNamed(named, numbered, text, lsn, ev.Bound, []string{ev.container.Name()})
	if b.Remote != nil && b.eventsWanted.Load() && b.Remote.Bus.Wants(named, numbered) {
		b.Remote.send(bus.Message{Kind: bus.Event, Channel: named, Numbered: numbered, Text: text}, lsn, ev.Bound)
	}
}

// publishNamed delivers an event on the channel with the container's name. Subscriptions that match only the
// channel with its number get it on that. So programs that know only numbers find containers. No pattern
// that matches both gets an event twice. numbered is empty if the name is the number. Who may not see the
// containers gets nothing.
func (b *Broker) publishNamed(named, numbered, text string, lsn keyspace.LSN, bound bool, containers []string) {
	b.publish(SubChannel, named, text, lsn, bound, containers)
	if numbered == "" {
		return
	}
	matched, ok := b.match(SubChannel, numbered, b.stopping.Load)
	if !ok {
		return
	}
	matched = slices.DeleteFunc(matched, func(sub *subscribers) bool { return sub.pattern.Match(named) })
	b.send(SubChannel, numbered, text, lsn, bound, matched, containers)
}
