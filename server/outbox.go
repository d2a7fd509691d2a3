package server

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/server/resp"
)

// errSlowSubscriber is why a subscriber is disconnected that does not keep up with its messages, in Redis'
// words.
var errSlowSubscriber = errors.New("client overcomes its output buffer limits")

// An outbox holds what is to be sent to a client that receives messages: messages, which come at any time,
// and between them the replies to its commands. A goroutine sends it, so that publishers never wait for
// the client. Other connections have none.
//
// The option client-output-buffer-limit bounds messages: a client with more unsent is disconnected.
// Replies do not count, because no command runs while there are too many.
type outbox struct {
	conn   *conn
	socket socket               // the conn's own is for the goroutine that reads
	memory *engine.ClientMemory // is charged for what is unsent
	done   chan struct{}

	mu       sync.Mutex // protects what follows
	changed  sync.Cond  // queue, replies, closing or failure has changed
	queue    []outItem
	held     []outItem   // messages that come while holding
	holding  bool        // a reply is due that precedes any further message
	proto    int         // in which messages are rendered
	items    int         // in queue and held, and those being sent
	unsent   int         // bytes of messages in queue and held, and of those being sent
	replies  int         // bytes of replies in queue, and of those being sent
	softOver *time.Timer // runs while the soft limit is exceeded
	softRuns int         // how many times softOver has ended
	closing  bool        // nothing more comes
	failure  error       // why nothing can be sent any more
}

// outItem is a rendered reply or message.
type outItem struct {
	data    []byte
	message bool // shared with other subscribers; counts as unsent
	lsn     keyspace.LSN
	bound   bool // see engine.Message
}

// outItemCost is about what an outItem takes in bytes besides its data.
const outItemCost = 64

func (i *outItem) size() int { return len(i.data) + outItemCost }

func newOutbox(c *conn) *outbox {
	o := &outbox{
		conn:   c,
		socket: newSocket(c.socket.Conn, c.server.timeouts.write, &c.server.traffic),
		memory: c.session.Memory,
		done:   make(chan struct{}),
		proto:  c.session.Proto,
	}
	o.changed.L = &o.mu
	go o.run()
	return o
}

// hold keeps messages back until unhold.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding = true
}

// unhold lets messages go again. From now on they are rendered for this protocol.
func (o *outbox) unhold(proto int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.proto, o.holding = proto, false
	if len(o.held) > 0 {
		o.queue = append(o.queue, o.held...)
		o.held = nil
		o.changed.Broadcast()
	}
}

// deliver takes a message. It disconnects the client rather than wait for it.
func (o *outbox) deliver(m *engine.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil || o.closing {
		return
	}
	item := outItem{data: m.Encode(o.proto, renderMessage), message: true, lsn: m.LSN, bound: m.Bound}
	if !o.memory.Reserve(item.size()) {
		o.disconnectLocked()
		return
	}
	o.items++
	o.unsent += item.size()
	if o.exceedsLocked(o.conn.server.Settings().OutputLimits.PubSub) {
		o.disconnectLocked()
		return
	}
	if o.holding {
		o.held = append(o.held, item)
	} else {
		o.queue = append(o.queue, item)
		o.changed.Broadcast()
	}
	o.reportLocked()
}

func renderMessage(proto int, r *engine.Reply) []byte { return resp.AppendReply(nil, proto, r) }

// reportLocked updates the figures for CLIENT LIST.
func (o *outbox) reportLocked() {
	o.conn.session.SetUnsent(o.items, o.unsent+o.replies)
}

// exceedsLocked reports whether the client has too many unsent messages. It starts a timer if that becomes
// so unless they shrink.
func (o *outbox) exceedsLocked(limit config.OutputLimit) bool {
	if limit.Hard > 0 && o.unsent > limit.Hard {
		return true
	}
	if limit.Soft > 0 && o.unsent > limit.Soft && o.softOver == nil {
		run := o.softRuns
		o.softOver = time.AfterFunc(limit.SoftTime, func() { o.softTimeOver(run) })
	}
	return false
}

// full reports whether half of the messages wait that may.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit := o.conn.server.Settings().OutputLimits.PubSub.Hard
	return limit > 0 && o.failure == nil && o.unsent > limit/2
}

// softTimeOver disconnects a client that has exceeded the soft limit for too long, unless it has recovered
// since that run began.
func (o *outbox) softTimeOver(run int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.softRuns == run && o.failure == nil {
		o.disconnectLocked()
	}
}

// disconnectLocked disconnects the client.
func (o *outbox) disconnectLocked() {
	o.conn.server.slowSubscribers.Add(1)
	o.failLocked(errSlowSubscriber)
	o.socket.shutDown()
}

// failLocked drops everything, because it cannot be sent. What was unsent stays charged until the connection
// ends.
func (o *outbox) failLocked(why error) {
	o.failure = why
	o.queue, o.held = nil, nil
	o.stopSoftTimerLocked()
	o.changed.Broadcast()
}

func (o *outbox) stopSoftTimerLocked() {
	if o.softOver != nil {
		o.softOver.Stop()
		o.softOver = nil
		o.softRuns++
	}
}

// write queues replies once there are not too many. The error says why they cannot be sent.
func (o *outbox) write(replies []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.replies > fullReplies && o.failure == nil {
		o.changed.Wait()
	}
	if o.failure != nil {
		return o.failure
	}
	if !o.memory.Reserve(len(replies)) {
		return resp.ErrClientMemory
	}
	o.queue = append(o.queue, outItem{data: bytes.Clone(replies)})
	o.items++
	o.replies += len(replies)
	o.reportLocked()
	o.changed.Broadcast()
	return nil
}

// close ends the outbox when all in it has been sent. It returns why something could not be sent.
func (o *outbox) close() error {
	o.mu.Lock()
	o.closing = true
	o.changed.Broadcast()
	o.mu.Unlock()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopSoftTimerLocked()
	return o.failure
}

// run sends the queue until the outbox is closed or the connection fails.
func (o *outbox) run() {
	defer close(o.done)
	var list []outItem
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

// next waits for something to send and takes all of it; nothing means the end. last is the previous list,
// whose memory is used again.
func (o *outbox) next(last []outItem) []outItem {
	const most = 1 << 10
	clear(last)
	if cap(last) > most {
		last = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closing && o.failure == nil {
		o.changed.Wait()
	}
	list := o.queue
	o.queue = last[:0]
	return list
}

// sendAll sends items once what they reveal is committed.
func (o *outbox) sendAll(list []outItem) error {
	var lsn keyspace.LSN
	for i := range list {
		lsn = max(lsn, list[i].lsn)
	}
	committed := lsn == 0 || o.conn.server.engine.Wait(lsn, 0) == nil
	p := newPipeline() // for its memory
	defer p.release()
	first := 0 // of the items not yet noted as sent
	for i := range list {
		item := &list[i]
		if committed || !item.bound || o.conn.server.engine.Wait(item.lsn, 0) == nil {
			p.out = append(p.out, item.data...)
		}
		if len(p.out) < largeReply && i+1 < len(list) {
			continue
		}
		if len(p.out) > 0 {
			if err := o.socket.send(p.out); err != nil {
				return err
			}
			p.reset()
		}
		o.sent(list[first : i+1])
		first = i + 1
	}
	return nil
}

// sent notes that items have been sent.
func (o *outbox) sent(list []outItem) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items -= len(list)
	for i := range list {
		if item := &list[i]; item.message {
			o.unsent -= item.size()
			o.memory.Release(item.size())
		} else {
			o.replies -= len(item.data)
			o.memory.Release(len(item.data))
		}
	}
	if o.unsent <= o.conn.server.Settings().OutputLimits.PubSub.Soft {
		o.stopSoftTimerLocked()
	}
	o.reportLocked()
	o.changed.Broadcast()
}
