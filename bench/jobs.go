package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// benchmark runs redis-benchmark with a command at a depth of pipelining. The sample has the requests a
// second and the server's CPU time for each, in seconds.
func benchmark(depth, requests int, command []string) job {
	return func(ctx context.Context, c *comparison, s *server) (sample, error) {
		perSecond, cpu, err := throughput(ctx, s, depth, c.scale(requests), c.ids(), command)
		return sample{perSecond, cpu}, err
	}
}

// after returns a job that sends a command first.
func after(command []any, then job) job {
	return func(ctx context.Context, c *comparison, s *server) (sample, error) {
		if _, err := s.do(ctx, command...); err != nil {
			return nil, err
		}
		return then(ctx, c, s)
	}
}

// mixPeak names the workload whose result sets the pace of the one that follows.
const mixPeak = "80 % reads, zipfian, peak"

// mix returns requests of zipfian ids, four reads to a write.
func (c *comparison) mix(k kind) func(rng *rand.Rand) request {
	bodies := make([]string, 100)
	for i := range bodies {
		bodies[i] = body(i, -1)
	}
	return func(rng *rand.Rand) request {
		popular := newZipfIDs(rng, c.ids())
		return func(b []byte, rng *rand.Rand) []byte {
			i := popular.next()
			if rng.IntN(5) == 0 {
				return k.put(b, set, i, bodies[i%len(bodies)], 0)
			}
			return k.get(b, set, i)
		}
	}
}

func mixAtPeak(ctx context.Context, c *comparison, s *server) (sample, error) {
	perSecond, err := closedLoop(ctx, s.addr, connections, c.span(1500*time.Millisecond), c.mix(s.kind))
	return sample{perSecond}, err
}

// mixAtHalf sends the mix to both sides at the same pace, which is half of the lower peak.
func mixAtHalf(ctx context.Context, c *comparison, s *server) (sample, error) {
	i := c.results.find(mixPeak)
	if i < 0 {
		return nil, fmt.Errorf("needs the result of %q", mixPeak)
	}
	peak := spreadOf(c.results.Rows[i].Ours).Median
	if theirs := c.results.Rows[i].Theirs; len(theirs) > 0 {
		peak = math.Min(peak, spreadOf(theirs).Median)
	}
	c.results.Pace = peak / 2

	done := make(chan struct{})
	timer := time.AfterFunc(c.span(5*time.Second), func() { close(done) })
	defer timer.Stop()
	p, err := openLoop(ctx, s.addr, connections, peak/2, done, c.mix(s.kind))
	if err != nil {
		return nil, err
	}
	at := func(p float64, ns func(float64) int64) float64 { return time.Duration(ns(p)).Seconds() }
	return sample{
		at(50, p.latency.ValueAtPercentile), at(99, p.latency.ValueAtPercentile), at(99.9, p.latency.ValueAtPercentile),
		at(99, p.lateness.ValueAtPercentile),
	}, nil
}

// changeDefault gives the container another default, by which no document dies, and checks that a
// document has it.
func changeDefault(ctx context.Context, c *comparison, s *server) (sample, error) {
	client := s.client(1)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil { // connects
		return nil, err
	}
	ttl := longTTL * (2 + c.round)
	began := time.Now()
	if err := client.Do(ctx, mayflyKind.newSet(set, ttl)...).Err(); err != nil {
		return nil, err
	}
	took := time.Since(began)
	left, err := client.Do(ctx, "DOC.TTL", set, id(set, c.round)).Int()
	if err == nil && (left <= ttl-longTTL || left > ttl) {
		err = fmt.Errorf("a document has %d s left, of %d", left, ttl)
	}
	return sample{took.Seconds()}, err
}

// expireAll does the same in Redis, key by key.
func expireAll(ctx context.Context, c *comparison, s *server) (sample, error) {
	ttl := fmt.Sprint(longTTL * (2 + c.round))
	began := time.Now()
	err := pipelined(ctx, s.addr, c.ids(), 0, func(b []byte, i int) []byte {
		return appendCommand(b, "EXPIRE", id(set, i), ttl)
	}, func(i int, r reply) error {
		if r.n != 1 {
			return fmt.Errorf("EXPIRE of id %d found no key", i)
		}
		return nil
	})
	return sample{time.Since(began).Seconds()}, err
}

// lifecycleJob loads all documents with a TTL into a new server, overwrites them once and restarts the
// server. It lets the server settle after each step.
func lifecycleJob(k kind) job {
	return func(ctx context.Context, c *comparison, _ *server) (sample, error) {
		s, err := k.start(ctx, c.options)
		if err != nil {
			return nil, err
		}
		defer s.remove()
		empty, err := s.rss()
		if err != nil {
			return nil, err
		}
		each := func() float64 {
			rss, failure := s.rss()
			if err == nil {
				err = failure
			}
			return (rss - empty) / float64(c.ids())
		}
		var values sample
		for range 2 { // loads them, and overwrites them
			if err := s.fill(ctx, k, c.ids(), longTTL); err != nil {
				return nil, err
			}
			loaded := each()
			settled, failure := s.settle(ctx, each, c.span(5*time.Second))
			if err == nil {
				err = failure
			}
			if err != nil {
				return nil, err
			}
			values = append(values, loaded, settled)
		}
		if k.name == redisKind.name {
			if err := s.rewriteAOF(ctx); err != nil {
				return nil, err
			}
		}
		took, err := s.restart(ctx)
		if err != nil {
			return nil, err
		}
		if err := s.checkCount(ctx, c.ids()); err != nil {
			return nil, err
		}
		// mayfly answers before its start has done everything.
		started, failure := s.settle(ctx, each, c.span(5*time.Second))
		if err == nil {
			err = failure
		}
		return append(values, took.Seconds(), started), err
	}
}

// rewriteAOF makes Redis rewrite its AOF, so that it starts from the best one. It waits for a rewrite that
// the writes have caused, since Redis refuses a second one beside it.
func (s *server) rewriteAOF(ctx context.Context) error {
	if err := s.rewritten(ctx); err != nil {
		return err
	}
	if _, err := s.do(ctx, "BGREWRITEAOF"); err != nil {
		return err
	}
	return s.rewritten(ctx)
}

// rewritten waits until Redis is not rewriting its AOF.
func (s *server) rewritten(ctx context.Context) error {
	for deadline := time.Now().Add(startTime); ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		info, err := s.do(ctx, "INFO", "persistence")
		if err != nil {
			return err
		}
		text := fmt.Sprint(info)
		if number(text, "aof_rewrite_in_progress")+number(text, "aof_rewrite_scheduled") == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the AOF rewrite does not come to its end")
		}
	}
	return ctx.Err()
}

// settle waits until the server is idle and its memory has stayed within a percent for two seconds, at
// most for a given time. Servers return free memory only after a while without requests.
func (s *server) settle(ctx context.Context, each func() float64, atMost time.Duration) (float64, error) {
	if err := quiet(ctx, s); err != nil {
		return 0, err
	}
	const look, steady = 200 * time.Millisecond, 10
	last := each()
	same := 0
	for deadline := time.Now().Add(atMost); same < steady && time.Now().Before(deadline); same++ {
		sleep(ctx, look)
		if now := each(); math.Abs(now-last) > last/100 {
			last, same = now, 0
		}
	}
	return each(), ctx.Err()
}

// checkCount checks that all documents exist: a fast start with half of them wins nothing.
func (s *server) checkCount(ctx context.Context, ids int) error {
	count := []any{"DBSIZE"}
	if s.name == mayflyKind.name {
		count = []any{"DOC.COUNT", set}
	}
	n, err := s.do(ctx, count...)
	if err == nil && n != int64(ids) {
		err = fmt.Errorf("after the start there are %v documents of %d", n, ids)
	}
	return err
}

// diskWrites loads all documents, with a default of ttl seconds (-1: none), and writes each three times more
// on average, drawn by newDraw. The sample has the bytes that the server wrote to disk for each byte of ids
// and documents, until its background work has settled.
func diskWrites(ttl int, newDraw func(rng *rand.Rand, n int) func() int) func(k kind) job {
	return func(k kind) job {
		return func(ctx context.Context, c *comparison, _ *server) (sample, error) {
			s, err := k.start(ctx, c.options)
			if err != nil {
				return nil, err
			}
			defer s.remove()
			n := c.ids()
			if err := s.fill(ctx, k, n, ttl); err != nil {
				return nil, err
			}
			draw := newDraw(rand.New(rand.NewPCG(1, uint64(c.round))), n)
			err = pipelined(ctx, s.addr, 3*n, 0, func(b []byte, _ int) []byte {
				i := draw()
				return k.put(b, set, i, body(i, -1), max(ttl, 0))
			}, nil)
			if err != nil {
				return nil, err
			}
			// What is left to do is due within a minute. Both sides wait alike.
			sleep(ctx, c.span(diskSettles))
			written, err := s.written()
			return sample{written / float64(4*n*(bodySize+len(id(set, 0))))}, err
		}
	}
}

// diskSettles is how long diskWrites waits for checkpoints and compactions.
const diskSettles = 10 * time.Second

// anyOf draws all ids alike.
func anyOf(rng *rand.Rand, n int) func() int { return func() int { return rng.IntN(n) } }

// popular draws few ids often.
func popular(rng *rand.Rand, n int) func() int { return newZipfIDs(rng, n).next }

// inTurn draws one id after the other.
func inTurn(_ *rand.Rand, n int) func() int {
	i := 0
	return func() int { i++; return i % n }
}
