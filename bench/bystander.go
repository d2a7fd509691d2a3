package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The bystander reads small documents on connections of its own, at a steady pace, while one client does what
// is expensive. Its latencies tell how fair the server is.

// act is something expensive that one client does.
type act struct {
	prepare func(ctx context.Context, o options, s *server) (finish func(), err error) // finish may be nil
	send    func(o options, b []byte) (_ []byte, replies int)                          // appends the commands of one time
	once    bool                                                                       // it is expensive only once
}

const (
	bystanderPace   = 1000 // reads a second
	bystanderKeys   = 1000
	bystanderTime   = 5 * time.Second
	bigBody         = 16_000_000 // bytes
	bystanderSet    = "bystander"
	expensiveSet    = "expensive"
	bigDocument     = "big"
	watchersAtOnce  = 40
	patternsAtOnce  = 10
	patternLength   = 1000
	channelLength   = 65_000
	queuedInExec    = 200_000
	watchedKeys     = 400_000
	pipelinedReads  = 150
	pipelinedWrites = 5
)

// bystanderJob returns a job that measures the bystander's reads while an act is done again and again.
func bystanderJob(k kind, a act) job {
	return func(ctx context.Context, c *comparison, _ *server) (sample, error) {
		s, err := k.start(ctx, c.options)
		if err != nil {
			return nil, err
		}
		defer s.remove()
		for _, name := range []string{bystanderSet, expensiveSet} {
			if _, err := s.do(ctx, k.newSet(name, -1)...); err != nil {
				return nil, err
			}
		}
		fill := func() error {
			return pipelined(ctx, s.addr, bystanderKeys, 0, func(b []byte, i int) []byte {
				return k.put(b, bystanderSet, i, body(i, -1), 0)
			}, nil)
		}
		if err := fill(); err != nil {
			return nil, err
		}
		if a.prepare != nil {
			finish, err := a.prepare(ctx, c.options, s)
			if err != nil {
				return nil, err
			}
			if finish != nil {
				defer finish()
			}
		}
		if err := quiet(ctx, s); err != nil {
			return nil, err
		}
		stop, failed := make(chan struct{}), make(chan error, 1)
		var reads openLoopResult
		go func() {
			const readers = 4
			var err error
			reads, err = openLoop(ctx, s.addr, readers, bystanderPace, stop, func(*rand.Rand) request {
				return func(b []byte, rng *rand.Rand) []byte { return k.get(b, bystanderSet, rng.IntN(bystanderKeys)) }
			})
			failed <- err
		}()
		took, err := a.repeat(ctx, c.options, s)
		close(stop)
		if err := errors.Join(err, <-failed); err != nil {
			return nil, err
		}
		at := func(p float64) float64 { return time.Duration(reads.latency.ValueAtPercentile(p)).Seconds() }
		return sample{at(99), at(100), took.Seconds()}, nil
	}
}

// repeat does the act for a while, at least once, and returns the mean time of one. The bystander reads all
// that time.
func (a act) repeat(ctx context.Context, o options, s *server) (time.Duration, error) {
	conns, closeConns, err := dial(ctx, s.addr, 1)
	if err != nil {
		return 0, err
	}
	defer closeConns()
	out, replies := a.send(o, nil)
	began, times := time.Now(), 0
	for time.Since(began) < o.span(bystanderTime) && ctx.Err() == nil {
		sent := make(chan error, 1)
		go func() {
			_, err := conns[0].Write(out)
			sent <- err
		}()
		for range replies {
			if err := skipReply(conns[0].in); err != nil {
				return 0, errors.Join(err, <-sent)
			}
		}
		if err := <-sent; err != nil {
			return 0, err
		}
		times++
		if a.once {
			break
		}
	}
	took := time.Since(began) / time.Duration(max(times, 1))
	sleep(ctx, o.span(bystanderTime)-time.Since(began))
	return took, ctx.Err()
}

// skipReply reads a reply of any kind and drops it. An error reply within an array is returned, too.
func skipReply(r *bufio.Reader) error {
	first, err := r.Peek(1)
	if err != nil {
		return err
	}
	if first[0] != '*' {
		_, err := readReply(r)
		return err
	}
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	for range n {
		if err == nil {
			err = skipReply(r)
		}
	}
	return err
}

// repeated returns an act that sends the same command several times.
func repeated(n int, args ...string) func(options, []byte) ([]byte, int) {
	return func(_ options, b []byte) ([]byte, int) {
		for range n {
			b = appendCommand(b, args...)
		}
		return b, n
	}
}

// once sends one command to prepare an act.
func once(args ...any) func(context.Context, options, *server) (func(), error) {
	return func(ctx context.Context, _ options, s *server) (func(), error) {
		_, err := s.do(ctx, args...)
		return nil, err
	}
}

var (
	bigJSON    = `{"text":"` + strings.Repeat("x", bigBody) + `","z":1}`
	putBig     = once("DOC.PUT", expensiveSet, bigDocument, bigJSON)
	setBig     = once("SET", bigDocument, bigJSON)
	reads      = act{prepare: putBig, send: repeated(pipelinedReads, "DOC.GET", expensiveSet, bigDocument, "PATH", "/z")}
	patches    = act{prepare: putBig, send: repeated(pipelinedWrites, "DOC.PATCH", expensiveSet, bigDocument, "SET", "/z", "2")}
	getRanges  = act{prepare: setBig, send: repeated(pipelinedReads, "GETRANGE", bigDocument, "-2", "-1")}
	setRanges  = act{prepare: setBig, send: repeated(pipelinedWrites, "SETRANGE", bigDocument, "9", "y")}
	docExec    = act{send: transaction("DOC.PUT", expensiveSet)}
	plainExec  = act{send: transaction("SET")}
	flushAlls  = act{prepare: watchKeys, send: repeated(1, "FLUSHALL"), once: true}
	publishes  = act{prepare: subscribePatterns, send: repeated(1, "PUBLISH", strings.Repeat("a", channelLength), "x")}
	bystanders = []metric{
		{name: "GET of the bystander, p99", unit: seconds, better: less},
		{name: "the same, max", unit: seconds, better: less},
		{name: "time of one such act", unit: seconds, better: less},
	}
)

// transaction returns an act that writes many documents in one transaction. The words come before the id.
func transaction(words ...string) func(options, []byte) ([]byte, int) {
	return func(o options, b []byte) ([]byte, int) {
		n := o.scale(queuedInExec)
		b = appendCommand(b, "MULTI")
		for i := range n {
			b = appendCommand(b, append(append([]string{}, words...), id("exec", i), anyBody)...)
		}
		return appendCommand(b, "EXEC"), n + 2
	}
}

// watchKeys writes keys and watches them on some connections until finish is called.
func watchKeys(ctx context.Context, o options, s *server) (finish func(), err error) {
	n := o.scale(watchedKeys)
	err = pipelined(ctx, s.addr, n, 0, func(b []byte, i int) []byte { return appendCommand(b, "SET", id("watched", i), "x") }, nil)
	if err != nil {
		return nil, err
	}
	conns, closeConns, err := dial(ctx, s.addr, watchersAtOnce)
	if err != nil {
		return nil, err
	}
	for w, conn := range conns {
		args := []string{"WATCH"}
		for i := w; i < n; i += len(conns) {
			args = append(args, id("watched", i))
		}
		if _, err := conn.Write(appendCommand(nil, args...)); err != nil {
			return closeConns, err
		}
		if _, err := readReply(conn.in); err != nil {
			return closeConns, fmt.Errorf("WATCH: %w", err)
		}
	}
	return closeConns, nil
}

// subscribePatterns subscribes to patterns that take long to match, until finish is called.
func subscribePatterns(ctx context.Context, _ options, s *server) (finish func(), err error) {
	conns, closeConns, err := dial(ctx, s.addr, 1)
	if err != nil {
		return nil, err
	}
	args := []string{"PSUBSCRIBE"}
	for i := range patternsAtOnce {
		args = append(args, strings.Repeat("a*", patternLength/2)+"["+strconv.Itoa(i)+"xyz]*") // the class spares no step
	}
	if _, err := conns[0].Write(appendCommand(nil, args...)); err != nil {
		return closeConns, err
	}
	for range patternsAtOnce {
		if err := skipReply(conns[0].in); err != nil {
			return closeConns, fmt.Errorf("PSUBSCRIBE: %w", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, conns[0].in) }()
	return closeConns, nil
}

// bystanderWorkloads are the rows about fairness. They run only if -only names them.
var bystanderWorkloads = []workload{
	bystander("pipelined reads in a document of 16 MB", reads, getRanges),
	bystander("patches of a document of 16 MB", patches, setRanges),
	bystander("an EXEC of 200,000 writes", docExec, plainExec),
	bystander("FLUSHALL of 400,000 watched keys", flushAlls, flushAlls),
	bystander("PUBLISH to long patterns on a long channel", publishes, publishes),
}

// bystanderName begins the names of these workloads.
const bystanderName = "bystander of "

func bystander(of string, ours, theirs act) workload {
	return workload{
		name: bystanderName + of, data: ownServers, metrics: bystanders,
		ours: bystanderJob(mayflyKind, ours), theirs: bystanderJob(redisKind, theirs),
	}
}
