package main

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Load generators for what redis-benchmark cannot do: pipelines of chosen commands, mixtures of commands,
// and requests at a pace that does not depend on replies.

// connections is the number of concurrent clients.
const connections = 50

// newHistogram returns a histogram of latencies in ns, up to a minute, exact to three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 3)
}

// bufferedConn is a connection with a read buffer.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

// replyTime bounds a run of a load generator, so that a server that hangs is an error.
const replyTime = 5 * time.Minute

// dial opens n connections. The end of the context closes them.
func dial(ctx context.Context, addr string, n int) (conns []bufferedConn, closeConns func(), err error) {
	closeAll := func() {
		for _, l := range conns {
			_ = l.Close()
		}
	}
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(replyTime))
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, bufferedConn{conn, bufio.NewReaderSize(conn, 64<<10)})
	}
	stop := context.AfterFunc(ctx, closeAll)
	return conns, func() { stop(); closeAll() }, nil
}

// pipelined sends n commands on two connections in batches of 500, evenly over a time (0: as fast as
// possible). command appends the i-th command. take receives the replies in any order; nil means that only
// errors matter. pipelined never calls them concurrently.
func pipelined(ctx context.Context, addr string, n int, over time.Duration, command func(b []byte, i int) []byte, take func(i int, r reply) error) error {
	const batch, lanes = 500, 2
	conns, closeConns, err := dial(ctx, addr, lanes)
	if err != nil {
		return err
	}
	defer closeConns()
	var mu sync.Mutex // protects failure and next, and is held during command and take
	var failure error
	next := 0
	began := time.Now()
	lane := func(l bufferedConn) {
		var out []byte
		replies := make([]reply, 0, batch)
		for {
			mu.Lock()
			first := next
			last := min(first+batch, n)
			next = last
			statusOf(ctx).send(first, n)
			if first == last || failure != nil || ctx.Err() != nil {
				mu.Unlock()
				return
			}
			sleep(ctx, time.Until(began.Add(over*time.Duration(first)/time.Duration(n))))
			out = out[:0]
			for i := first; i < last; i++ {
				out = command(out, i)
			}
			mu.Unlock()

			_, err := l.Write(out)
			replies = replies[:0]
			for i := first; i < last && err == nil; i++ {
				var r reply
				r, err = readReply(l.in)
				replies = append(replies, r)
			}

			mu.Lock()
			for i := 0; i < len(replies) && err == nil && take != nil; i++ {
				err = take(first+i, replies[i])
			}
			if failure == nil {
				failure = err
			}
			mu.Unlock()
		}
	}
	var all sync.WaitGroup
	for _, l := range conns {
		all.Go(func() { lane(l) })
	}
	all.Wait()
	return errors.Join(ctx.Err(), failure)
}

// request appends a request, chosen at random.
type request func(b []byte, rng *rand.Rand) []byte

// closedLoop sends requests on a number of connections for a while, each after the reply to the one
// before. It returns the replies a second.
func closedLoop(ctx context.Context, addr string, connections int, during time.Duration, newRequest func(rng *rand.Rand) request) (perSecond float64, err error) {
	conns, closeConns, err := dial(ctx, addr, connections)
	if err != nil {
		return 0, err
	}
	defer closeConns()
	counts := make([]int, connections)
	failures := make([]error, connections)
	began := time.Now()
	end := began.Add(during)
	var all sync.WaitGroup
	for i, l := range conns {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			next := newRequest(rng)
			var out []byte
			for failures[i] == nil && time.Now().Before(end) {
				out = next(out[:0], rng)
				if _, failures[i] = l.Write(out); failures[i] == nil {
					_, failures[i] = readReply(l.in)
				}
				counts[i]++
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took.Seconds(), errors.Join(ctx.Err(), errors.Join(failures...))
}

// openLoopResult holds the latencies of an open loop.
type openLoopResult struct {
	latency  *hdrhistogram.Histogram // ns from the moment a request was due to its reply
	lateness *hdrhistogram.Histogram // ns from that moment to its sending, which the generator causes
}

// openLoop sends requests at random moments, at an average pace, until done is closed. It stands for many
// independent users: it sends a request when it is due, whether or not earlier ones are answered, and
// counts the latency from that moment. So a server that stops for a second shows all the requests of
// that second late, not just one for each connection (coordinated omission).
func openLoop(ctx context.Context, addr string, connections int, perSecond float64, done <-chan struct{}, newRequest func(rng *rand.Rand) request) (openLoopResult, error) {
	conns, closeConns, err := dial(ctx, addr, connections)
	if err != nil {
		return openLoopResult{}, err
	}
	defer closeConns()

	const underWay = 1 << 14 // requests in flight on a connection; the sender waits beyond
	due := make([]chan time.Time, connections)
	latencies := make([]*hdrhistogram.Histogram, connections)
	failures := make([]error, connections)
	var readers sync.WaitGroup
	for i, l := range conns {
		due[i], latencies[i] = make(chan time.Time, underWay), newHistogram()
		readers.Go(func() {
			for at := range due[i] {
				if failures[i] == nil {
					_, failures[i] = readReply(l.in)
					_ = latencies[i].RecordValue(int64(time.Since(at)))
				}
			}
		})
	}

	p := openLoopResult{latency: newHistogram(), lateness: newHistogram()}
	failure := p.send(ctx, conns, due, perSecond, done, newRequest)
	for _, d := range due {
		close(d)
	}
	readers.Wait()
	for _, l := range latencies {
		p.latency.Merge(l)
	}
	return p, errors.Join(ctx.Err(), failure, errors.Join(failures...))
}

// send is the sending half of openLoop. It gives the readers the moment before it sends a request.
func (p openLoopResult) send(ctx context.Context, conns []bufferedConn, due []chan time.Time, perSecond float64, done <-chan struct{}, newRequest func(rng *rand.Rand) request) error {
	runtime.LockOSThread() // sleepFinely sets the precision of a thread
	defer runtime.UnlockOSThread()
	rng := rand.New(rand.NewPCG(4, 4))
	request := newRequest(rng)
	var out []byte
	next := time.Now()
	for i := 0; ; i = (i + 1) % len(conns) {
		next = next.Add(time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second)))
		for wait := time.Until(next); wait > 0; wait = time.Until(next) {
			sleepFinely(min(wait, 10*time.Millisecond))
			select {
			case <-done:
				return nil
			default:
			}
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		out = request(out[:0], rng)
		due[i] <- next
		_ = p.lateness.RecordValue(int64(time.Since(next)))
		if _, err := conns[i].Write(out); err != nil {
			return err
		}
	}
}
