package commands

import (
	"sync"

	"mayfly/keyspace"
)

// letter is a message on its way through the hub: one for a channel, or, if event is not empty, the
// news of what happened to an item. Its strings are safe to keep.
type event struct {
	batch *eventBatch // nil: sealed from the start, as a death is
	bound bool        // see Message.Bound

	kind    subscriptionKind
	channel string
	text    string

	name      string
	channels  EventClasses // toKeyspace and toKeyevent as they were
	container string
	id        string
	lsn       keyspace.LSN // of a death
}

// mail is what one command posts; it is sealed together. Protected by the queue's mutex.
type eventBatch struct {
	sealed    bool
	cancelled bool         // its command has not happened: nobody gets it
	lsn       keyspace.LSN // known when it is sealed
	last      uint64       // number of its last letter
}

// mailQueue holds letters in the order in which they were posted. The zero value is empty.
type eventQueue struct {
	mu            sync.Mutex // protects what follows; held for moments only
	deliveredMore sync.Cond  // carried has changed
	events        []event
	head          int    // where in letters the first one is
	posted        uint64 // letters so far
	delivered     uint64 // letters so far that have reached their receivers
	helping       bool   // a goroutine is under way that carries what nobody else does
}

const (
	// fewLetters are carried at a time, after which others have their chance to use the hub.
	deliverBatch = 64
	// manyLetters is the length of the queue from which whoever finds something dead helps to carry,
	// so that there are never more deaths than can be told of.
	longQueue = 64 << 10
)

// post puts a letter into the queue.
func (q *eventQueue) push(l event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.posted++
	if l.batch != nil {
		l.batch.last = q.posted
	}
	q.events = append(q.events, l)
}

// seal closes a mail: what its letters tell is covered by the ticket. It returns the number of the
// last of them.
func (q *eventQueue) seal(m *eventBatch, ticket keyspace.LSN) (last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.sealed, m.lsn = true, ticket
	return m.last
}

// drop has a mail, nil for none, not delivered when it is sent.
func (m *eventBatch) cancel(h *Broker) {
	if m == nil {
		return
	}
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	m.cancelled = true
}

// take appends to list the sealed letters at the head of the queue, a few at most, and removes them.
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

// readyLocked tells whether there is a letter at the head that may be carried.
func (q *eventQueue) readyLocked() bool {
	if q.head == len(q.events) {
		return false
	}
	m := q.events[q.head].batch
	return m == nil || m.sealed
}

// arrived notes that so many letters have reached their receivers.
func (q *eventQueue) noteDelivered(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered += uint64(n)
	q.deliveredMore.Broadcast()
}

// has tells whether all letters up to a number have been carried.
func (q *eventQueue) hasDelivered(carried uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delivered >= carried
}

// await returns when all letters up to a number have been carried. What is before them in the queue
// is sealed soon: between a command's first letter and its end nothing waits for a client or a disk.
func (q *eventQueue) waitDelivered(carried uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deliveredMore.L = &q.mu
	for q.delivered < carried {
		q.deliveredMore.Wait()
	}
}

// needsHelper tells whether a helper must be sent for, because there is something to carry and none
// is under way.
func (q *eventQueue) startHelper() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.helping || !q.readyLocked() {
		return false
	}
	q.helping = true
	return true
}

// dismiss tells whether the helper may go, because there is nothing left to carry for now.
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

// send seals what a command has posted and carries it, and what is before it. In a session that
// subscribes to something it returns when it has arrived, so that the client sees its own messages
// before the reply.
func (h *Broker) flush(s *Session, m *eventBatch, ticket keyspace.LSN) {
	last := h.queue.seal(m, ticket)
	for !h.queue.hasDelivered(last) && h.deliver() > 0 {
	}
	h.ensureHelper()
	if s.subscribed.total() > 0 {
		h.queue.waitDelivered(last)
	}
}

// sendForHelp sees to it that what can be carried is.
func (h *Broker) ensureHelper() {
	if !h.queue.startHelper() {
		return
	}
	go func() {
		for h.deliver() > 0 || !h.queue.stopHelper() {
		}
	}()
}

// carry carries a few letters to their receivers and returns how many.
func (h *Broker) deliver() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batch = h.queue.popReady(h.batch[:0])
	for i := range h.batch {
		h.deliverEventLocked(&h.batch[i])
	}
	clear(h.batch)
	h.queue.noteDelivered(len(h.batch))
	return len(h.batch)
}

func (h *Broker) deliverEventLocked(l *event) {
	ticket := l.lsn
	if l.batch != nil && l.batch.cancelled { // no longer changed once it is sealed
		return
	}
	if l.batch != nil {
		ticket = l.batch.lsn
	}
	if l.name == "" {
		h.publishLocked(l.kind, l.channel, l.text, ticket, l.bound)
		return
	}
	if l.channels&toKeyspace != 0 {
		h.publishLocked(subChannel, "__keyspace@"+l.container+"__:"+l.id, l.name, ticket, l.bound)
	}
	if l.channels&toKeyevent != 0 {
		h.publishLocked(subChannel, "__keyevent@"+l.container+"__:"+l.name, l.id, ticket, l.bound)
	}
}
