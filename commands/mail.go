package commands

import (
	"sync"

	"mayfly/keyspace"
)

// letter is a message on its way through the hub: one for a channel, or, if event is not empty, the
// news of what happened to an item. Its strings are safe to keep.
type letter struct {
	mail  *mail // nil: sealed from the start, as a death is
	bound bool  // see Message.Bound

	kind    kindOfSubscription
	channel string
	text    string

	event     string
	wanted    Events // toKeyspace and toKeyevent as they were
	container string
	id        string
	ticket    keyspace.LSN // of a death
}

// mail is what one command posts; it is sealed together. Protected by the queue's mutex.
type mail struct {
	sealed bool
	void   bool         // its command has not happened: nobody gets it
	ticket keyspace.LSN // known when it is sealed
	last   uint64       // number of its last letter
}

// mailQueue holds letters in the order in which they were posted. The zero value is empty.
type mailQueue struct {
	mu      sync.Mutex // protects what follows; held for moments only
	passed  sync.Cond  // carried has changed
	letters []letter
	head    int    // where in letters the first one is
	posted  uint64 // letters so far
	carried uint64 // letters so far that have reached their receivers
	helper  bool   // a goroutine is under way that carries what nobody else does
}

const (
	// fewLetters are carried at a time, after which others have their chance to use the hub.
	fewLetters = 64
	// manyLetters is the length of the queue from which whoever finds something dead helps to carry,
	// so that there are never more deaths than can be told of.
	manyLetters = 64 << 10
)

// post puts a letter into the queue.
func (q *mailQueue) post(l letter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.posted++
	if l.mail != nil {
		l.mail.last = q.posted
	}
	q.letters = append(q.letters, l)
}

// seal closes a mail: what its letters tell is covered by the ticket. It returns the number of the
// last of them.
func (q *mailQueue) seal(m *mail, ticket keyspace.LSN) (last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.sealed, m.ticket = true, ticket
	return m.last
}

// drop has a mail, nil for none, not delivered when it is sent.
func (m *mail) drop(h *Hub) {
	if m == nil {
		return
	}
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	m.void = true
}

// take appends to list the sealed letters at the head of the queue, a few at most, and removes them.
func (q *mailQueue) take(list []letter) []letter {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(list) < fewLetters && q.readyLocked() {
		list = append(list, q.letters[q.head])
		q.letters[q.head] = letter{}
		q.head++
	}
	switch {
	case q.head == len(q.letters) && cap(q.letters) > manyLetters:
		q.letters, q.head = nil, 0
	case q.head == len(q.letters):
		q.letters, q.head = q.letters[:0], 0
	case q.head > fewLetters && q.head > len(q.letters)/2:
		left := copy(q.letters, q.letters[q.head:])
		clear(q.letters[left:])
		q.letters, q.head = q.letters[:left], 0
	}
	return list
}

// readyLocked tells whether there is a letter at the head that may be carried.
func (q *mailQueue) readyLocked() bool {
	if q.head == len(q.letters) {
		return false
	}
	m := q.letters[q.head].mail
	return m == nil || m.sealed
}

// arrived notes that so many letters have reached their receivers.
func (q *mailQueue) arrived(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.carried += uint64(n)
	q.passed.Broadcast()
}

// has tells whether all letters up to a number have been carried.
func (q *mailQueue) has(carried uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.carried >= carried
}

// await returns when all letters up to a number have been carried. What is before them in the queue
// is sealed soon: between a command's first letter and its end nothing waits for a client or a disk.
func (q *mailQueue) await(carried uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed.L = &q.mu
	for q.carried < carried {
		q.passed.Wait()
	}
}

// needsHelper tells whether a helper must be sent for, because there is something to carry and none
// is under way.
func (q *mailQueue) needsHelper() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.helper || !q.readyLocked() {
		return false
	}
	q.helper = true
	return true
}

// dismiss tells whether the helper may go, because there is nothing left to carry for now.
func (q *mailQueue) dismiss() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.helper = q.readyLocked()
	return !q.helper
}

func (q *mailQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.letters) - q.head
}

// send seals what a command has posted and carries it, and what is before it. In a session that
// subscribes to something it returns when it has arrived, so that the client sees its own messages
// before the reply.
func (h *Hub) send(s *Session, m *mail, ticket keyspace.LSN) {
	last := h.queue.seal(m, ticket)
	for !h.queue.has(last) && h.carry() > 0 {
	}
	h.sendForHelp()
	if s.subscribed.total() > 0 {
		h.queue.await(last)
	}
}

// sendForHelp sees to it that what can be carried is.
func (h *Hub) sendForHelp() {
	if !h.queue.needsHelper() {
		return
	}
	go func() {
		for h.carry() > 0 || !h.queue.dismiss() {
		}
	}()
}

// carry carries a few letters to their receivers and returns how many.
func (h *Hub) carry() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batch = h.queue.take(h.batch[:0])
	for i := range h.batch {
		h.handOutLocked(&h.batch[i])
	}
	clear(h.batch)
	h.queue.arrived(len(h.batch))
	return len(h.batch)
}

func (h *Hub) handOutLocked(l *letter) {
	ticket := l.ticket
	if l.mail != nil && l.mail.void { // no longer changed once it is sealed
		return
	}
	if l.mail != nil {
		ticket = l.mail.ticket
	}
	if l.event == "" {
		h.deliverLocked(l.kind, l.channel, l.text, ticket, l.bound)
		return
	}
	if l.wanted&toKeyspace != 0 {
		h.deliverLocked(toChannel, "__keyspace@"+l.container+"__:"+l.id, l.event, ticket, l.bound)
	}
	if l.wanted&toKeyevent != 0 {
		h.deliverLocked(toChannel, "__keyevent@"+l.container+"__:"+l.event, l.id, ticket, l.bound)
	}
}
