package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mayfly/expiry/clock"
	"mayfly/vfs"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	storesChunk    = 64 << 10         // bytes that the limit of the speed lets go at once
	stallTimeout   = 30 * time.Second // without a byte
	progressEvery  = 10 * time.Second
	storesAttempts = 3
	mostEnvelope   = 1 << 20 // bytes of the message that comes before the stores
	sizeHeader     = "Mayfly-Size"
	toHeader       = "Mayfly-To"
)

// attemptPause is the time between two attempts; tests shorten it.
var attemptPause = time.Second

// SendStores sends m, a MsgSnap, with the stores that open returns. It returns at once and reports the end by
// StoresSent. One transfer a node is under way at a time; further ones are dropped. A transfer that is cut is
// tried again, with another call of open.
func (t *Transport) SendStores(m *raftpb.Message, open func() (stores io.ReadCloser, size int64, err error)) {
	id := m.GetTo()
	p := (*t.peers.Load())[id]
	if p == nil {
		t.storesSent(id, false)
		return
	}
	if !p.sending.CompareAndSwap(false, true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.context.Err() != nil {
		return
	}
	t.stopping.Go(func() {
		err := t.sendStores(p, m, open)
		p.sending.Store(false)
		if err != nil {
			t.o.Log.Warn().Msgf("the stores for the node at %s did not arrive: %v", p.addr, err)
			t.unreachable(id)
		}
		t.storesSent(id, err == nil)
	})
}

func (t *Transport) storesSent(id uint64, ok bool) {
	if t.o.StoresSent != nil && t.context.Err() == nil {
		t.o.StoresSent(id, ok)
	}
}

// sendStores tries a transfer some times.
func (t *Transport) sendStores(p *peer, m *raftpb.Message, open func() (io.ReadCloser, int64, error)) (err error) {
	ctx, cancel := context.WithCancel(t.context)
	defer cancel()
	go func() { // the peer is removed
		select {
		case <-p.finished:
			cancel()
		case <-ctx.Done():
		}
	}()
	for attempt := range storesAttempts {
		if attempt > 0 {
			pause := time.NewTimer(time.Duration(attempt) * attemptPause)
			select {
			case <-ctx.Done():
				pause.Stop()
				return ctx.Err()
			case <-pause.C:
			}
		}
		err = t.sendOnce(ctx, p, m, open)
		if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		t.o.Log.Warn().Msgf("attempt %d to send the stores to the node at %s: %v", attempt+1, p.addr, err)
	}
	return err
}

// sendOnce transfers the stores.
func (t *Transport) sendOnce(ctx context.Context, p *peer, m *raftpb.Message, open func() (io.ReadCloser, int64, error)) error {
	envelope, err := marshalEnvelope(m)
	if err != nil {
		return err
	}
	stores, size, err := open()
	if err != nil {
		return fmt.Errorf("cannot read them: %w", err)
	}
	defer stores.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := clock.Monotonic()
	body := &pacedReader{ctx: ctx, r: stores, t: t, p: p, size: size, began: began, said: began}
	stalled := time.AfterFunc(stallTimeout, func() { cancel(errStalled) })
	defer stalled.Stop()
	body.moved = func() { stalled.Reset(stallTimeout) }
	body.ended = func() { stalled.Reset(answerTimeout) } // it forces all to disk and checks it
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.o.Listener.url(p.addr, storesPath),
		io.NopCloser(io.MultiReader(bytes.NewReader(envelope), body)))
	if err != nil {
		return err
	}
	r.ContentLength = int64(len(envelope)) + size
	r.Header.Set(controlHeader, "1")
	r.Header.Set(clusterHeader, types.ID(t.o.Cluster).String())
	r.Header.Set(fromHeader, types.ID(t.o.ID).String())
	r.Header.Set(toHeader, types.ID(p.id).String())
	r.Header.Set("Expect", "100-continue") // a refusal comes before the stores are sent
	r.Header.Set(sizeHeader, strconv.FormatInt(size, 10))
	t.o.Log.Info().Int64("bytes", size).Uint64("index", m.GetSnapshot().GetMetadata().GetIndex()).Msgf("sending the stores to the node at %s", p.addr)
	response, err := t.o.Listener.client.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
			return cause
		}
		return plain(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	switch response.StatusCode {
	case http.StatusNoContent:
		took := clock.Monotonic() - began
		t.o.Log.Info().Int64("bytes", size).Dur("took", took).Msgf("the node at %s has the stores", p.addr)
		return nil
	case http.StatusGone:
		t.expel(p.addr)
	case http.StatusServiceUnavailable, http.StatusInternalServerError:
		return errors.Join(errors.New(firstLine(string(text))), err) // may go better next time
	}
	return &RefusedError{response.StatusCode, firstLine(string(text))}
}

var errStalled = fmt.Errorf("no byte has moved for %v", stallTimeout)

// pacedReader reads the stores no faster than the limit allows, and logs the progress.
type pacedReader struct {
	ctx          context.Context
	r            io.Reader
	t            *Transport
	p            *peer
	size, sent   int64
	began, said  time.Duration
	moved, ended func()
}

func (r *pacedReader) Read(b []byte) (n int, err error) {
	n, err = r.r.Read(b[:min(len(b), storesChunk)])
	if err == nil || n > 0 {
		r.moved()
	} else {
		r.ended()
	}
	r.sent += int64(n)
	if wait := r.t.limiter.WaitN(r.ctx, n); wait != nil {
		return n, wait
	}
	if now := clock.Monotonic(); now-r.said >= progressEvery {
		r.said = now
		r.t.o.Log.Info().Int64("bytes", r.sent).Int64("of", r.size).Msgf("sending the stores to the node at %s", r.p.addr)
	}
	return n, err
}

// receiving lets one transfer of stores in at a time. A later leader's ends an earlier one's.
type receiving struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: none is under way
	term   uint64
	done   chan struct{}
}

// enter waits until an earlier transfer has ended. cancel ends this one from elsewhere.
func (g *receiving) enter(ctx context.Context, term uint64, cancel context.CancelFunc) (leave func(), err error) {
	for {
		g.mu.Lock()
		if g.cancel == nil {
			done := make(chan struct{})
			g.cancel, g.term, g.done = cancel, term, done
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.cancel = nil
				close(done)
			}, nil
		}
		if term < g.term {
			g.mu.Unlock()
			return nil, errors.New("a later leader sends its stores")
		}
		g.cancel() // of the same leader it is one that was cut
		done := g.done
		g.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// serveStores receives the stores of the leader.
func (t *Transport) serveStores(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, format string, parts ...any) {
		text := fmt.Sprintf(format, parts...)
		t.o.Log.Warn().Msgf("stores from %s are refused: %s", r.RemoteAddr, text)
		w.Header().Set("Connection", "close") // the body is not read
		http.Error(w, text, status)
	}
	id, err := types.IDFromString(r.Header.Get(fromHeader))
	size, sizeErr := strconv.ParseInt(r.Header.Get(sizeHeader), 10, 64)
	switch p := (*t.peers.Load())[uint64(id)]; {
	case r.Method != http.MethodPost || err != nil || sizeErr != nil || size < 0:
		refuse(http.StatusBadRequest, "not stores of a node")
		return
	case r.Header.Get(clusterHeader) != types.ID(t.o.Cluster).String():
		refuse(http.StatusPreconditionFailed, "this node belongs to cluster %x", t.o.Cluster)
		return
	case r.Header.Get(toHeader) != types.ID(t.o.ID).String():
		refuse(http.StatusPreconditionFailed, "this node has id %x", t.o.ID)
		return
	case t.removed(uint64(id)):
		refuse(http.StatusGone, "the sender was removed from the cluster")
		return
	case p == nil:
		refuse(http.StatusNotFound, "the sender is unknown")
		return
	case t.o.ReceiveStores == nil:
		refuse(http.StatusNotFound, "this node takes no stores")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.context, cancel)()
	body := &renewedReader{ctx: ctx, r: r.Body, control: http.NewResponseController(w)}
	m, err := readEnvelope(body)
	if err != nil || m.GetType() != raftpb.MsgSnap || m.GetFrom() != uint64(id) || m.GetTo() != t.o.ID {
		refuse(http.StatusBadRequest, "the message before the stores cannot be read")
		return
	}
	leave, err := t.receive.enter(ctx, m.GetTerm(), cancel)
	if err != nil {
		refuse(http.StatusServiceUnavailable, "%v", err)
		return
	}
	defer leave()
	stores := io.LimitReader(body, size)
	defer context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetReadDeadline(clock.Deadline(0)) })()
	t.o.Log.Info().Int64("bytes", size).Uint64("index", m.GetSnapshot().GetMetadata().GetIndex()).Msgf("receiving the stores of the node at %s", r.RemoteAddr)
	if err := t.o.ReceiveStores(ctx, m, size, stores); err != nil {
		status := http.StatusServiceUnavailable
		if vfs.IsFull(err) {
			status = http.StatusInsufficientStorage // another attempt at once would meet the same disk
		}
		refuse(status, "%v", err)
		discard(w, r)
		return
	}
	if err := t.o.Deliver(m); err != nil {
		refuse(http.StatusServiceUnavailable, "%v", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refusalTime is how long a sender of stores has to read why they are refused.
const refusalTime = time.Second

// discard reads the rest of a request until the sender has noticed the refusal: if its connection were closed
// at once, the sender would see a broken connection instead.
func discard(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(clock.Deadline(refusalTime)) == nil {
		_, _ = io.Copy(io.Discard, r.Body) // ends with an error when the sender hangs up
	}
}

// marshalEnvelope returns the message before the stores, behind its length.
func marshalEnvelope(m *raftpb.Message) ([]byte, error) {
	text, err := proto.Marshal(m)
	if err == nil && len(text) > mostEnvelope {
		err = fmt.Errorf("the message before the stores has %d bytes; at most %d are legal", len(text), mostEnvelope)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), err
}

// readEnvelope reads the message before the stores.
func readEnvelope(r io.Reader) (*raftpb.Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > mostEnvelope {
		return nil, fmt.Errorf("%d bytes; at most %d are legal", length, mostEnvelope)
	}
	envelope := make([]byte, length)
	if _, err := io.ReadFull(r, envelope); err != nil {
		return nil, err
	}
	m := &raftpb.Message{}
	return m, proto.Unmarshal(envelope, m)
}

// renewedReader gives the sender stallTimeout for each piece.
type renewedReader struct {
	ctx     context.Context
	r       io.Reader
	control *http.ResponseController
}

func (r *renewedReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if err := r.control.SetReadDeadline(clock.Deadline(stallTimeout)); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
