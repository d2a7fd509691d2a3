package commands

import (
	"sync"

	"mayfly/keyspace"
)

// event is a message on its way through the broker. With a name it is an event of an item, else a message
// for a channel. Its strings are clones.
type event struct {
	batch *eventBatch // nil for a death, which is sealed from the start
	bound bool        // see Message.Bound

	kind    subscriptionKind
	channel string
	text    string

	name      string
	channels  EventClasses // toKeyspace, toKeyevent or both
	container string
	id        string
	lsn       keyspace.LSN // of a death
}

// eventBatch is the events of one command, which are sealed together. The queue's mutex protects it.
type eventBatch struct {
	sealed    bool
	cancelled bool         // the command was rolled back: deliver nothing
	lsn       keyspace.LSN // known when sealed
	last      uint64       // number of the last event
}

// eventQueue holds events in the order in which they were pushed. The zero value is empty.
type eventQueue struct {
	mu            sync.Mutex // protects what follows; held only for moments
	deliveredMore sync.Cond  // signals that delivered has grown
	events        []event
	head          int    // the index of the first event
	pushed        uint64 // the number of events pushed so far
	delivered     uint64 // the number of events delivered so far
	helping       bool   // the helper goroutine runs
}

const (
	// deliverBatch is the number of events delivered at a time. Others may use the broker in between.
	deliverBatch = 64
	// longQueue is the length of the queue from which the finder of a death delivers events, too. So
	// deaths never outrun their delivery.
	longQueue = 64 << 10
)

// push appends an event.
func (q *eventQueue) push(ev event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushed++
	if ev.batch != nil {
		ev.batch.last = q.pushed
	}
	q.events = append(q.events, ev)
}

// seal seals a batch: lsn covers its events. last is the number of its last event.
func (q *eventQueue) seal(batch *eventBatch, lsn keyspace.LSN) (last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch.sealed, batch.lsn = true, lsn
	return batch.last
}

// cancel prevents the delivery of a batch that is not sealed yet. The batch may be nil.
func (batch *eventBatch) cancel(q *eventQueue) {
	if batch == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	batch.cancelled = true
}

// popReady removes up to deliverBatch sealed events from the head of the queue and appends them to list.
func (q *eventQueue) popReady(list []event) []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(list) < deliverBatch && q.readyLocked() {
		list = append(list, q.events[q.head])
		q.events[q.head] = event{}
		q.head++
	}
	switch {
	case q.head == len(q.events) && cap(q.events) > longQueue:
		q.events, q.head = nil, 0
	case q.head == len(q.events):
		q.events, q.head = q.events[:0], 0
	case q.head > deliverBatch && q.head > len(q.events)/2:
		left := copy(q.events, q.events[q.head:])
		clear(q.events[left:])
		q.events, q.head = q.events[:left], 0
	}
	return list
}

// readyLocked reports whether the queue has a sealed event at its head.
func (q *eventQueue) readyLocked() bool {
	if q.head == len(q.events) {
		return false
	}
	batch := q.events[q.head].batch
	return batch == nil || batch.sealed
}

// noteDelivered notes that n more events have been delivered.
func (q *eventQueue) noteDelivered(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered += uint64(n)
	q.deliveredMore.Broadcast()
}

// hasDelivered reports whether the first n events have been delivered.
func (q *eventQueue) hasDelivered(n uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delivered >= n
}

// waitDelivered waits until the first n events have been delivered. Each of them is sealed soon: between
// its first event and its end, a command waits for no client and no disk.
func (q *eventQueue) waitDelivered(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deliveredMore.L = &q.mu
	for q.delivered < n {
		q.deliveredMore.Wait()
	}
}

// startHelper reports whether the caller must start the helper: there are events to deliver and no helper
// runs.
func (q *eventQueue) startHelper() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.helping || !q.readyLocked() {
		return false
	}
	q.helping = true
	return true
}

// stopHelper reports whether the helper must end because there is nothing to deliver.
func (q *eventQueue) stopHelper() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.helping = q.readyLocked()
	return !q.helping
}

func (q *eventQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events) - q.head
}

// flush seals a command's events and delivers them, with all before them. If the session subscribes to
// anything, flush waits for their delivery. So the client sees its own messages before the reply.
func (b *Broker) flush(s *Session, batch *eventBatch, lsn keyspace.LSN) {
	last := b.queue.seal(batch, lsn)
	for !b.queue.hasDelivered(last) && b.deliver() > 0 {
	}
	b.ensureHelper()
	if s.subscribed.total() > 0 {
		b.queue.waitDelivered(last)
	}
}

// ensureHelper starts the helper if there are events to deliver and none runs.
func (b *Broker) ensureHelper() {
	if !b.queue.startHelper() {
		return
	}
	go func() {
		for b.deliver() > 0 || !b.queue.stopHelper() {
		}
	}()
}

// deliver delivers a batch of events and returns their number.
func (b *Broker) deliver() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batch = b.queue.popReady(b.batch[:0])
	for i := range b.batch {
		b.deliverEventLocked(&b.batch[i])
	}
	clear(b.batch)
	b.queue.noteDelivered(len(b.batch))
	return len(b.batch)
}

func (b *Broker) deliverEventLocked(ev *event) {
	lsn := ev.lsn
	if ev.batch != nil && ev.batch.cancelled { // constant after sealing
		return
	}
	if ev.batch != nil {
		lsn = ev.batch.lsn
	}
	if ev.name == "" {
		b.publishLocked(ev.kind, ev.channel, ev.text, lsn, ev.bound)
		return
	}
	if ev.channels&toKeyspace != 0 {
		b.publishLocked(subChannel, "__keyspace@"+ev.container+"__:"+ev.id, ev.name, lsn, ev.bound)
	}
	if ev.channels&toKeyevent != 0 {
		b.publishLocked(subChannel, "__keyevent@"+ev.container+"__:"+ev.name, ev.id, lsn, ev.bound)
	}
}
