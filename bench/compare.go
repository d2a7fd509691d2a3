package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// comparison runs the table of workloads.
type comparison struct {
	options
	only    *regexp.Regexp // names of the workloads to run
	data    dataset        // of the servers that run now
	ours    *server        // nil if no servers run
	theirs  *server        // nil as well if Redis is not installed
	round   int            // of the repetitions of a workload
	results results
}

// sample is one measurement of a job: a value for each metric of its workload.
type sample []float64

// job measures one thing on one side. The server is nil for workloads with servers of their own.
type job func(ctx context.Context, c *comparison, s *server) (sample, error)

func benchCompare(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	c := &comparison{options: o, only: only}
	c.results = results{Machine: o.machine, Quick: o.quick, IDs: o.ids(), Rounds: o.rounds()}
	defer c.stopServers()
	var chosen []workload
	for _, w := range workloads {
		if only.MatchString(w.name) && (o.only != "" || !w.onRequest()) {
			chosen = append(chosen, w)
		}
	}
	began := time.Now()
	for i, w := range chosen {
		statusOf(ctx).nextOf(i, len(chosen), "%s", w.name)
		err := c.measure(ctx, w)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			// The other figures of a long run are worth keeping. The servers may be in any state.
			c.stopServers()
			c.results.fail(w, err)
			if err := statusOf(ctx).print(os.Stderr, fmt.Sprintf("%s failed: %v\n", w.name, err)); err != nil {
				return err
			}
		}
	}
	c.results.Took = time.Since(began).Round(time.Second).String()
	if err := c.results.publish(ctx, o); err != nil {
		return err
	}
	return c.results.failure()
}

// onRequest reports whether a workload runs only if -only names it.
func (w workload) onRequest() bool {
	return strings.HasPrefix(w.name, bystanderName) || strings.HasPrefix(w.name, queryName)
}

// fewRounds is the number of rounds of workloads that start servers of their own, which takes long.
const fewRounds = 3

func (c *comparison) roundsOf(w workload) int {
	if !w.data.ready {
		return min(c.rounds(), fewRounds)
	}
	return c.rounds()
}

// measure runs a workload in rounds. The side that comes first alternates, so that disturbances of the
// machine meet both sides.
func (c *comparison) measure(ctx context.Context, w workload) error {
	if err := c.provide(ctx, w.data); err != nil {
		return err
	}
	var ours, theirs []sample
	for c.round = range c.roundsOf(w) {
		first := func() error { return c.take(ctx, w.ours, c.ours, &ours) }
		second := func() error {
			if c.results.Machine.Redis == "" || w.theirs == nil {
				return nil
			}
			return c.take(ctx, w.theirs, c.theirs, &theirs)
		}
		if c.round%2 == 1 {
			first, second = second, first
		}
		if err := first(); err != nil {
			return err
		}
		if err := second(); err != nil {
			return err
		}
	}
	c.results.add(w, ours, theirs)
	return nil
}

// take waits until the servers are idle, runs a job and keeps its sample.
func (c *comparison) take(ctx context.Context, j job, s *server, samples *[]sample) error {
	if err := quiet(ctx, c.running()...); err != nil {
		return err
	}
	measured, err := j(ctx, c, s)
	*samples = append(*samples, measured)
	return err
}

// running returns the servers that run.
func (c *comparison) running() []*server {
	return slices.DeleteFunc([]*server{c.ours, c.theirs}, func(s *server) bool { return s == nil })
}

// provide starts servers with a dataset, unless they run already.
func (c *comparison) provide(ctx context.Context, data dataset) (err error) {
	if c.data == data {
		return nil
	}
	c.stopServers()
	c.data = data
	if !data.ready {
		return nil
	}
	extra := []string{}
	if data.always {
		extra = []string{"--appendfsync", "always"}
	}
	if c.ours, err = mayflyKind.start(ctx, c.options, extra...); err != nil {
		return err
	}
	if data.queries {
		if err := c.ours.fillForQueries(ctx, c.ids()); err != nil {
			return fmt.Errorf("loading %s: %w", c.ours.name, err)
		}
		return nil
	}
	if c.results.Machine.Redis != "" {
		if c.theirs, err = redisKind.start(ctx, c.options, extra...); err != nil {
			return err
		}
	}
	for _, s := range c.running() {
		fill := s.kind
		if data.plain {
			fill = redisKind
		}
		if err := s.fill(ctx, fill, c.ids(), -1); err != nil {
			return fmt.Errorf("loading %s: %w", s.name, err)
		}
	}
	return nil
}

// fill writes all ids with the commands of a kind of server. The ttl in seconds is the default of the set
// or an option of the command, not a member of the bodies; -1 means none.
func (s *server) fill(ctx context.Context, words kind, ids, ttl int) error {
	if _, err := s.do(ctx, words.newSet(set, ttl)...); err != nil {
		return err
	}
	return pipelined(ctx, s.addr, ids, 0, func(b []byte, i int) []byte {
		return words.put(b, set, i, body(i, -1), ttl)
	}, nil)
}

func (c *comparison) stopServers() {
	for _, s := range c.running() {
		s.remove()
	}
	c.ours, c.theirs, c.data = nil, nil, dataset{}
}
