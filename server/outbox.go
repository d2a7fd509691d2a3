package server

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"mayfly/commands"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/server/resp"
)

// errLaggard is why a subscriber is disconnected that does not keep up with its messages.
var errLaggard = errors.New("client overcomes its output buffer limits")

// outbox holds what is to be sent to a client that subscribes to something: messages, which may come
// at any time, and between them the replies to its commands. A goroutine sends it, so that whoever
// publishes never waits for the client. Other connections have none.
//
// Messages are bounded by the option client-output-buffer-limit: a client with more under way is cut
// off. Replies do not count: no more commands are carried out while there are too many.
type outbox struct {
	conn    *conn
	socket  socket                 // the conn's is for its own goroutine, which reads
	account *commands.ClientMemory // is charged for what is under way
	done    chan struct{}

	mu      sync.Mutex // protects what follows
	changed sync.Cond  // queue, replies, closing or failure has
	queue   []parcel
	held    []parcel    // messages that come while holding
	holding bool        // a reply is due that goes before any further message
	proto   int         // in which messages are rendered
	load    int         // bytes of messages in queue and held, and of those being sent
	replies int         // bytes of replies in queue, and of those being sent
	overdue *time.Timer // runs while the soft limit is exceeded
	spell   int         // how many times that has ended
	closing bool        // nothing more comes
	failure error       // why nothing can be sent any more
}

// parcel is a reply or a message, as bytes.
type parcel struct {
	data    []byte
	message bool // shared with other subscribers; counts as load
	ticket  keyspace.LSN
	bound   bool // see commands.Message
}

// parcelCost is about what a parcel takes besides its data.
const parcelCost = 64

func (p *parcel) load() int { return len(p.data) + parcelCost }

func newOutbox(c *conn) *outbox {
	o := &outbox{
		conn:    c,
		socket:  newSocket(c.socket.Conn, c.server.timeouts.write, &c.server.traffic),
		account: c.session.Memory,
		done:    make(chan struct{}),
		proto:   c.session.Proto,
	}
	o.changed.L = &o.mu
	go o.run()
	return o
}

// hold keeps messages back until release.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding = true
}

// release lets messages go again, which from now on are rendered for this protocol.
func (o *outbox) release(proto int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.proto, o.holding = proto, false
	if len(o.held) > 0 {
		o.queue = append(o.queue, o.held...)
		o.held = nil
		o.changed.Broadcast()
	}
}

// deliver takes a message. It cuts the client off rather than wait for it.
func (o *outbox) deliver(m *commands.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil || o.closing {
		return
	}
	p := parcel{data: m.Encode(o.proto, renderReply), message: true, ticket: m.LSN, bound: m.Bound}
	if !o.account.Reserve(p.load()) {
		o.cutOffLocked()
		return
	}
	o.load += p.load()
	if o.exceedsLocked(o.conn.server.Settings().OutputLimits.PubSub) {
		o.cutOffLocked()
		return
	}
	if o.holding {
		o.held = append(o.held, p)
	} else {
		o.queue = append(o.queue, p)
		o.changed.Broadcast()
	}
	o.reportLocked()
}

func renderReply(proto int, r *commands.Reply) []byte { return resp.AppendReply(nil, proto, r) }

// reportLocked lets CLIENT LIST know what is under way.
func (o *outbox) reportLocked() {
	o.conn.session.SetUnsent(len(o.queue)+len(o.held), o.load+o.replies)
}

// exceedsLocked tells whether the client has too much under way. If that becomes so should it last, a
// timer will see to it.
func (o *outbox) exceedsLocked(limit config.OutputLimit) bool {
	if limit.Hard > 0 && o.load > limit.Hard {
		return true
	}
	if limit.Soft > 0 && o.load > limit.Soft && o.overdue == nil {
		spell := o.spell
		o.overdue = time.AfterFunc(limit.SoftTime, func() { o.tooLong(spell) })
	}
	return false
}

// tooLong is called when the soft limit has been exceeded for as long as may be, unless that spell is
// over.
func (o *outbox) tooLong(spell int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spell == spell && o.failure == nil {
		o.cutOffLocked()
	}
}

// cutOffLocked disconnects the client.
func (o *outbox) cutOffLocked() {
	o.conn.server.slowSubscribers.Add(1)
	o.failLocked(errLaggard)
	o.socket.cutOff()
}

// failLocked drops everything: it cannot be sent. What was under way stays on the account, which is
// closed with the connection.
func (o *outbox) failLocked(why error) {
	o.failure = why
	o.queue, o.held = nil, nil
	o.calmLocked()
	o.changed.Broadcast()
}

// calmLocked forgets that the soft limit was exceeded.
func (o *outbox) calmLocked() {
	if o.overdue != nil {
		o.overdue.Stop()
		o.overdue = nil
		o.spell++
	}
}

// write puts replies into the queue, once there are not too many in it. The error says why they cannot
// be sent.
func (o *outbox) write(replies []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.replies > fullBatch && o.failure == nil {
		o.changed.Wait()
	}
	if o.failure != nil {
		return o.failure
	}
	if !o.account.Reserve(len(replies)) {
		return resp.ErrClientMemory
	}
	o.queue = append(o.queue, parcel{data: bytes.Clone(replies)})
	o.replies += len(replies)
	o.reportLocked()
	o.changed.Broadcast()
	return nil
}

// close ends the outbox when all that is in it has been sent, and returns why something could not be.
func (o *outbox) close() error {
	o.mu.Lock()
	o.closing = true
	o.changed.Broadcast()
	o.mu.Unlock()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calmLocked()
	return o.failure
}

// run sends what is in the queue until the outbox is closed or the connection fails.
func (o *outbox) run() {
	defer close(o.done)
	var list []parcel
	for {
		list = o.next(list)
		if len(list) == 0 {
			return
		}
		if err := o.sendAll(list); err != nil {
			o.mu.Lock()
			if o.failure == nil {
				o.failLocked(err)
			}
			o.mu.Unlock()
			o.conn.interrupt()
			return
		}
	}
}

// next waits for something to send and takes all of it; nothing means the end. The room of the last
// list is used again.
func (o *outbox) next(room []parcel) []parcel {
	const most = 1 << 10
	clear(room)
	if cap(room) > most {
		room = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closing && o.failure == nil {
		o.changed.Wait()
	}
	list := o.queue
	o.queue = room[:0]
	return list
}

// sendAll sends parcels once what they reveal is committed.
func (o *outbox) sendAll(list []parcel) error {
	var ticket keyspace.LSN
	for i := range list {
		ticket = max(ticket, list[i].ticket)
	}
	committed := ticket == 0 || o.conn.server.engine.Wait(ticket) == nil
	b := newBatch()
	defer b.release()
	first := 0 // of those not yet accounted for
	for i := range list {
		p := &list[i]
		if committed || !p.bound || o.conn.server.engine.Wait(p.ticket) == nil {
			b.out = append(b.out, p.data...)
		}
		if len(b.out) < bigReply && i+1 < len(list) {
			continue
		}
		if len(b.out) > 0 {
			if err := o.socket.send(b.out); err != nil {
				return err
			}
			b.reset()
		}
		o.sent(list[first : i+1])
		first = i + 1
	}
	return nil
}

// sent notes that parcels have left.
func (o *outbox) sent(list []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range list {
		if p := &list[i]; p.message {
			o.load -= p.load()
			o.account.Release(p.load())
		} else {
			o.replies -= len(p.data)
			o.account.Release(len(p.data))
		}
	}
	if o.load <= o.conn.server.Settings().OutputLimits.PubSub.Soft {
		o.calmLocked()
	}
	o.reportLocked()
	o.changed.Broadcast()
}
