package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Three nodes of a cluster beside one node that forces each commit to disk: that is as durable as one machine
// can be. All processes and the load generator share the processors of this machine, which a real cluster
// does not.

// clusterNodes is the number of nodes.
const clusterNodes = 3

// clusterPorts is the offset of the first port of the nodes; those for the other nodes follow those for
// clients.
const clusterPorts = 3

// clusterServers is the nodes of a cluster.
type clusterServers []*server

// clusterTarget is a row of the comparison and what it must reach, as a ratio of three nodes to one.
type clusterTarget struct {
	name   string
	unit   unit
	better direction
	target float64
	bound  float64 // of three nodes alone: reaching it meets the target, too
	run    func(ctx context.Context, o options, s *server) (float64, error)
}

var clusterTargets = []clusterTarget{
	{"`DOC.PUT`, depth 16", perSecond, more, 0.5, 100_000, clusterRate(16, 250_000, docPut)},
	{"`DOC.PUT`, depth 1", perSecond, more, 0, 0, clusterRate(1, 30_000, docPut)},
	{"`DOC.PUT`, depth 1, p99", seconds, less, 3, 0, clusterLatency(docPutRequest)},
	{"`GET` at the leader, depth 16", perSecond, more, 0.95, 0, clusterRate(16, 400_000, get)},
	{"`GET` at the leader, depth 1", perSecond, more, 0.95, 0, clusterRate(1, 80_000, get)},
}

func benchCluster(ctx context.Context, o options) error {
	one, err := mayflyKind.start(ctx, o, "--appendfsync", "always")
	if err != nil {
		return err
	}
	defer one.remove()
	three, err := startCluster(ctx, o)
	if err != nil {
		return err
	}
	defer three.remove()
	leader, err := three.leader(ctx)
	if err != nil {
		return err
	}
	for _, s := range []*server{one, leader} {
		if err := errors.Join(s.fill(ctx, mayflyKind, o.ids(), -1), s.fill(ctx, redisKind, o.ids(), -1)); err != nil {
			return fmt.Errorf("loading: %w", err)
		}
	}
	var rows [][]string
	for i, row := range clusterTargets {
		statusOf(ctx).nextOf(i, len(clusterTargets)+1, "%s", row.name)
		var ones, threes []float64
		for round := range o.rounds() {
			for side := range 2 {
				s, values := one, &ones
				if (round+side)%2 == 1 {
					s, values = leader, &threes
				}
				if err := quiet(ctx, append(three, one)...); err != nil {
					return err
				}
				value, err := row.run(ctx, o, s)
				if err != nil {
					return fmt.Errorf("%s: %w", row.name, err)
				}
				*values = append(*values, value)
			}
		}
		rows = append(rows, row.cells(ones, threes))
	}
	page := fmt.Sprintf("## A cluster of three nodes\n\nBeside one node with `appendfsync always`. %d documents of %d bytes and as many plain keys, %d connections; medians, smallest and largest in parentheses. "+
		"The three nodes and the load generator share the processors.\n\n", o.ids(), bodySize, connections)
	page += table([]string{"work", "one node", "three nodes", "ratio", "target"}, rows)
	statusOf(ctx).nextOf(len(clusterTargets), len(clusterTargets)+1, "failovers and catching up")
	more, err := three.recoveries(ctx, o, one)
	if err != nil {
		return err
	}
	return o.publish(ctx, "cluster", page+"\n"+more)
}

// cells renders a row.
func (t clusterTarget) cells(ones, threes []float64) []string {
	ratio, target := ratioOf(threes, ones), "–"
	if t.target > 0 {
		met := ratio.Median >= t.target
		target = "≥ " + times.format(t.target)
		if t.better == less {
			met = ratio.Median <= t.target
			target = "≤ " + times.format(t.target)
		}
		if t.bound > 0 {
			met = met || spreadOf(threes).Median >= t.bound
			target += " or ≥ " + t.unit.format(t.bound)
		}
		if met {
			target += ": met"
		} else {
			target += ": **missed**"
		}
	}
	return []string{t.name, t.unit.formatSpread(spreadOf(ones)), t.unit.formatSpread(spreadOf(threes)), times.formatSpread(ratio), target}
}

// clusterRate measures requests a second with redis-benchmark.
func clusterRate(depth, requests int, command []string) func(context.Context, options, *server) (float64, error) {
	return func(ctx context.Context, o options, s *server) (float64, error) {
		perSecond, _, err := throughput(ctx, s, depth, o.scale(requests), o.ids(), command)
		return perSecond, err
	}
}

func docPutRequest(o options) request {
	return func(b []byte, rng *rand.Rand) []byte {
		return mayflyKind.put(b, set, rng.IntN(o.ids()), anyBody, 0)
	}
}

// clusterPace is the requests a second of the open loop: few enough that neither side queues.
const clusterPace = 2000

// clusterLatency measures the p99 of an open loop at a fixed pace, the same for both sides.
func clusterLatency(next func(options) request) func(context.Context, options, *server) (float64, error) {
	return func(ctx context.Context, o options, s *server) (float64, error) {
		done := make(chan struct{})
		timer := time.AfterFunc(o.span(5*time.Second), func() { close(done) })
		defer timer.Stop()
		result, err := openLoop(ctx, s.addr, connections, clusterPace, done, func(*rand.Rand) request { return next(o) })
		return time.Duration(result.latency.ValueAtQuantile(99)).Seconds(), err
	}
}

// startCluster starts the nodes on new folders and waits until all answer.
func startCluster(ctx context.Context, o options) (clusterServers, error) {
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port+clusterPorts+i)) }
	var peers []string
	for i := range clusterNodes {
		peers = append(peers, string(rune('a'+i))+"="+addr(clusterNodes+i))
	}
	var c clusterServers
	var failures [clusterNodes]error
	for i := range clusterNodes {
		dir, err := os.MkdirTemp("", "mayfly-bench-data-")
		if err != nil {
			c.remove()
			return nil, err
		}
		_, port, _ := net.SplitHostPort(addr(i))
		c = append(c, &server{
			kind: mayflyKind, program: o.mayfly, addr: addr(i), dir: dir,
			args: append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning", "--cluster-id", string(rune('a' + i)),
				"--cluster-addr", addr(clusterNodes + i), "--cluster-peers", strings.Join(peers, ",")}, mayflyKind.options...),
		})
	}
	var all sync.WaitGroup
	for i, s := range c {
		all.Go(func() { failures[i] = s.run(ctx) })
	}
	all.Wait()
	if err := errors.Join(failures[:]...); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

func (c clusterServers) remove() {
	for _, s := range c {
		if s.cmd != nil && s.cmd.Process != nil {
			s.kill()
		}
		_ = os.RemoveAll(s.dir)
	}
}

// leader waits for the leader.
func (c clusterServers) leader(ctx context.Context) (*server, error) {
	var last error
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline) && ctx.Err() == nil; sleep(ctx, 5*time.Millisecond) {
		for _, s := range c {
			reply, err := s.do(ctx, "ROLE")
			if role, ok := reply.([]any); !ok || len(role) == 0 || role[0] != "master" {
				last = errors.Join(err, fmt.Errorf("%s is %v", s.addr, reply))
				continue
			}
			if _, last = s.do(ctx, "EXISTS", "anything"); last == nil {
				return s, nil
			}
		}
	}
	return nil, errors.Join(ctx.Err(), fmt.Errorf("no leader: %w", last))
}

// recoveries measures failovers, transfers and the catching up of a node without data, and the memory of the
// nodes.
func (c clusterServers) recoveries(ctx context.Context, o options, one *server) (string, error) {
	var kills, transfers, starts, empty []float64
	for range o.rounds() {
		leader, err := c.leader(ctx)
		if err != nil {
			return "", err
		}
		gap, err := c.outage(ctx, func() error { _, err := leader.do(ctx, "CLUSTER", "TRANSFER"); return err })
		if err != nil {
			return "", fmt.Errorf("transfer: %w", err)
		}
		transfers = append(transfers, gap.Seconds())
		if leader, err = c.leader(ctx); err != nil {
			return "", err
		}
		gap, err = c.outage(ctx, func() error { leader.kill(); return nil })
		if err != nil {
			return "", fmt.Errorf("kill: %w", err)
		}
		kills = append(kills, gap.Seconds())
		took, err := c.rejoin(ctx, leader)
		if err != nil {
			return "", err
		}
		starts = append(starts, took.Seconds())
		leader.kill()
		if err := errors.Join(os.RemoveAll(leader.dir), os.Mkdir(leader.dir, 0o700)); err != nil {
			return "", err
		}
		if took, err = c.rejoin(ctx, leader); err != nil {
			return "", err
		}
		empty = append(empty, took.Seconds())
	}
	rows := [][]string{
		{"no write is acknowledged after a kill of the leader", seconds.formatSpread(spreadOf(kills)), "≤ 2.5 s"},
		{"no write is acknowledged during `CLUSTER TRANSFER`", seconds.formatSpread(spreadOf(transfers)), "≤ 0.2 s"},
		{"from the start of a killed node until it has all", seconds.formatSpread(spreadOf(starts)), "–"},
		{"from the start of a node with an empty folder until it has all", seconds.formatSpread(spreadOf(empty)), "–"},
	}
	if err := quiet(ctx, append(c, one)...); err != nil {
		return "", err
	}
	for _, s := range append(clusterServers{one}, c...) {
		rss, err := s.rss()
		if err != nil {
			return "", err
		}
		name := "resident memory of one node"
		if s != one {
			name = "resident memory of a node of the cluster"
		}
		rows = append(rows, []string{name, fmt.Sprintf("%.0f MiB", rss/(1<<20)), "–"})
	}
	info, err := os.Stat(o.mayfly)
	if err != nil {
		return "", err
	}
	rows = append(rows, []string{"size of the program", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "< 45 MB"})
	return table([]string{"what", "measured", "target"}, rows), nil
}

// outage does something while each node is sent a write every millisecond. It returns the longest time
// between two acknowledged ones, the moment of the act included.
func (c clusterServers) outage(ctx context.Context, act func() error) (time.Duration, error) {
	var mu sync.Mutex // protects last and longest
	var last time.Time
	var longest time.Duration
	count := 0
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, s := range c {
		all.Go(func() {
			client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second, Protocol: 2, DisableIdentity: true})
			defer client.Close()
			for ; sending.Err() == nil; sleep(sending, time.Millisecond) {
				if client.Set(sending, "probe", "v", 0).Err() != nil {
					continue
				}
				mu.Lock()
				if !last.IsZero() {
					longest = max(longest, time.Since(last))
				}
				last = time.Now()
				count++
				mu.Unlock()
			}
		})
	}
	counted := func() int { mu.Lock(); defer mu.Unlock(); return count }
	await := func(n int) error {
		for deadline := time.Now().Add(startTime); counted() < n; sleep(ctx, time.Millisecond) {
			if ctx.Err() != nil || time.Now().After(deadline) {
				return errors.Join(ctx.Err(), errors.New("no write is acknowledged"))
			}
		}
		return nil
	}
	if err := await(50); err != nil {
		return 0, err
	}
	mu.Lock()
	longest, last = 0, time.Now()
	mu.Unlock()
	if err := act(); err != nil {
		return 0, err
	}
	err := await(counted() + 50)
	mu.Lock()
	defer mu.Unlock()
	return longest, err
}

// rejoin starts a node and returns how long it takes until it has what the leader had then.
func (c clusterServers) rejoin(ctx context.Context, s *server) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}
	want, err := leader.do(ctx, "CLUSTER", "DIGEST")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.run(ctx); err != nil {
		return 0, err
	}
	for deadline := began.Add(startTime); ; sleep(ctx, 10*time.Millisecond) {
		got, err := s.do(ctx, "CLUSTER", "DIGEST")
		if err == nil && digestOf(got) == digestOf(want) {
			return time.Since(began), nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return 0, errors.Join(ctx.Err(), fmt.Errorf("%s has %v, not %v: %w", s.addr, got, want, err))
		}
	}
}

// digestOf returns the field digest of a reply to CLUSTER DIGEST.
func digestOf(reply any) any {
	if list, ok := reply.([]any); ok {
		for i := 0; i+1 < len(list); i += 2 {
			if list[i] == "digest" {
				return list[i+1]
			}
		}
	}
	return nil
}
