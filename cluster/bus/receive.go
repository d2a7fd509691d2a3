package bus

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"mayfly/expiry/clock"
)

const (
	readBuffer = 64 << 10
	// silence is how long a node may send nothing, not even a ping.
	silence = 5 * time.Second
	// mostBatch is the number of messages that are delivered at once.
	mostBatch = 64
	// largeChunk is the size of the pieces in which a large frame is read, so that no memory is taken for
	// what does not come.
	largeChunk = 1 << 20
)

// inbound is the stream from another node.
type inbound struct {
	conn net.Conn
	done chan struct{} // closed when nothing of it is delivered any more
}

// Serve receives the stream of a node until it ends. It takes the place of an earlier stream of that node,
// and begins when nothing of that is delivered any more. It closes the connection.
func (b *Bus) Serve(id uint64, conn net.Conn) {
	in := &inbound{conn: conn, done: make(chan struct{})}
	b.mu.Lock()
	before := b.inbound[id]
	b.inbound[id] = in
	b.mu.Unlock()
	defer func() {
		conn.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.inbound[id] == in {
			delete(b.inbound, id)
			b.setFilterLocked(id, nil)
		}
		close(in.done)
	}()
	if before != nil {
		before.conn.Close()
		<-before.done
	}
	r := &receiver{bus: b, id: id, conn: conn}
	r.in = bufio.NewReaderSize(r, readBuffer)
	b.o.Log.Debug().Err(r.run()).Uint64("node", id).Msg("the messages of another node end")
}

// receiver reads a stream.
type receiver struct {
	bus   *Bus
	id    uint64
	conn  net.Conn
	in    *bufio.Reader
	acked time.Duration // when the last confirmation was sent
	seen  uint64        // the last filter
	due   bool          // a confirmation is due
	batch []Message
}

// Read reads from the connection. While a large frame comes it confirms that it does.
func (r *receiver) Read(p []byte) (int, error) {
	if err := r.conn.SetReadDeadline(clock.Deadline(silence)); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(p)
	if n > 0 && clock.Monotonic()-r.acked > pingEvery {
		if err := r.acknowledge(); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (r *receiver) acknowledge() error {
	r.due, r.acked = false, clock.Monotonic()
	_, err := r.conn.Write(binary.BigEndian.AppendUint64(nil, r.seen))
	return err
}

// run reads until the stream ends, and returns why.
func (r *receiver) run() error {
	for {
		if err := r.next(); err != nil {
			return err
		}
		if len(r.batch) < mostBatch && r.complete() {
			continue
		}
		if len(r.batch) > 0 {
			r.bus.o.Deliver(r.batch)
			clear(r.batch)
			r.batch = r.batch[:0]
		}
		if r.due {
			if err := r.acknowledge(); err != nil {
				return err
			}
		}
	}
}

// complete reports whether the next frame is in the buffer.
func (r *receiver) complete() bool {
	if r.in.Buffered() < frameHead {
		return false
	}
	head, err := r.in.Peek(frameHead)
	return err == nil && int(binary.BigEndian.Uint32(head)) <= r.in.Buffered()-frameHead
}

// next reads a frame.
func (r *receiver) next() error {
	head, err := r.in.Peek(frameHead)
	if err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(head))
	if length > mostFrame {
		return fmt.Errorf("%w: it has %d bytes; at most %d are legal", errFrame, length, mostFrame)
	}
	_, _ = r.in.Discard(frameHead) // it was peeked
	var body []byte
	if length <= readBuffer {
		if body, err = r.in.Peek(int(length)); err != nil {
			return err
		}
		defer func() { _, _ = r.in.Discard(int(length)) }() // it was peeked
	} else {
		if body, err = r.readLarge(int(length)); err != nil {
			return err
		}
	}
	if length > readBuffer && Kind(body[0]) >= frameInterest { // a long list of short names takes far more memory
		return fmt.Errorf("%w: kind %d of %d bytes", errFrame, body[0], length)
	}
	f, err := decode(body)
	if err != nil {
		return err
	}
	switch f.kind {
	case Channel, Shard, Event:
		r.batch = append(r.batch, f.message)
	case frameInterest:
		m := newMatcher(&f.filter)
		if f.filter.Empty() {
			m = nil
		}
		r.bus.mu.Lock()
		r.bus.setFilterLocked(r.id, m)
		r.bus.mu.Unlock()
		r.seen, r.due = f.number, true
	case framePing:
		r.due = true
	}
	return nil
}

// readLarge reads the body of a frame that is longer than the buffer.
func (r *receiver) readLarge(length int) ([]byte, error) {
	body := make([]byte, 0, largeChunk)
	for len(body) < length {
		n := min(length-len(body), largeChunk)
		start := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r.in, body[start:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}
