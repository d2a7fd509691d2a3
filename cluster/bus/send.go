package bus

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

const (
	// mostPending bounds the bytes that wait for a node, like the output buffer of a subscriber.
	mostPending = 32 << 20
	pingEvery   = time.Second
	// ackTimeout is how long a stream may stay without a confirmation. The other side confirms what it gets
	// each second, and each ping.
	ackTimeout   = 4 * time.Second
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// peer is the stream to another node.
type peer struct {
	id     uint64
	bus    *Bus
	dial   atomic.Pointer[Dial]
	ctx    context.Context
	cancel context.CancelFunc
	work   chan struct{} // has room for one: there is something to send
	done   chan struct{}

	mu        sync.Mutex // protects what follows
	pending   []byte     // frames of messages
	count     uint64     // of the messages in pending
	connected bool
	acked     uint64 // the filter that the node has confirmed on this stream
	heard     bool   // the stream has brought a confirmation
}

func newPeer(b *Bus, id uint64, dial Dial) *peer {
	p := &peer{id: id, bus: b, work: make(chan struct{}, 1), done: make(chan struct{})}
	p.dial.Store(&dial)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// enqueueLocked takes the frame of a message, or drops it. The peer's mutex must be held.
func (p *peer) enqueueLocked(frame []byte) {
	if len(p.pending) > 0 && len(p.pending)+len(frame) > mostPending {
		p.bus.dropped.Add(1)
		return
	}
	p.pending = append(p.pending, frame...)
	p.count++
}

// wake makes the stream send what waits.
func (p *peer) wake() {
	select {
	case p.work <- struct{}{}:
	default:
	}
}

// lacks reports whether the node is connected and does not have a filter of ours yet.
func (p *peer) lacks(number uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected && p.acked < number
}

// run keeps the stream open. What waits while no stream can be opened is dropped, so that no node gets old
// messages.
func (p *peer) run() {
	defer close(p.done)
	for wait := firstPause; p.ctx.Err() == nil; wait = min(2*wait, longestPause) {
		conn, err := (*p.dial.Load())(p.ctx)
		if err != nil {
			p.drop()
			pause(p.ctx, wait)
			continue
		}
		if p.stream(conn) {
			wait = firstPause
		}
		pause(p.ctx, wait)
	}
	p.drop()
}

// drop drops what waits.
func (p *peer) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bus.dropped.Add(p.count)
	p.pending, p.count = nil, 0
}

// stream sends until the connection fails. It reports whether the node has confirmed anything.
func (p *peer) stream(conn net.Conn) bool {
	ctx, cancel := context.WithCancel(p.ctx)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var reader sync.WaitGroup
	reader.Go(func() {
		defer cancel()
		p.readAcks(conn)
	})
	p.set(true)
	p.send(ctx, conn)
	cancel()
	conn.Close()
	reader.Wait()
	return p.set(false)
}

// set begins and ends a stream. It reports whether the one before has brought a confirmation.
func (p *peer) set(connected bool) (heard bool) {
	p.mu.Lock()
	heard = p.heard
	p.connected, p.heard, p.acked = connected, false, 0
	p.mu.Unlock()
	p.bus.progressed()
	return heard
}

// send writes the filter, messages and pings.
func (p *peer) send(ctx context.Context, conn net.Conn) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	const mostKept = 1 << 20 // bytes of a buffer that is used again
	var out, messages []byte
	said, first := uint64(0), true
	for {
		out = out[:0]
		if own := p.bus.own.Load(); first || own.number != said {
			out = appendInterest(out, own.number, &own.Filter)
			said, first = own.number, false
		}
		if cap(messages) > mostKept {
			messages = nil
		}
		p.mu.Lock()
		messages, p.pending, p.count = p.pending, messages[:0], 0
		p.mu.Unlock()
		for _, b := range [][]byte{out, messages} {
			if len(b) == 0 {
				continue
			}
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
		select {
		case <-p.work:
		case <-ticker.C:
			if _, err := conn.Write(appendPing(out[:0])); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// readAcks reads the numbers of filters that the node confirms.
func (p *peer) readAcks(conn net.Conn) {
	var ack [8]byte
	for {
		if conn.SetReadDeadline(clock.Deadline(ackTimeout)) != nil {
			return
		}
		if _, err := io.ReadFull(conn, ack[:]); err != nil {
			return
		}
		p.mu.Lock()
		p.heard = true
		grown := binary.BigEndian.Uint64(ack[:]) > p.acked
		if grown {
			p.acked = binary.BigEndian.Uint64(ack[:])
		}
		p.mu.Unlock()
		if grown {
			p.bus.progressed()
		}
	}
}
