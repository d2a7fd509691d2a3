package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// The purge. Documents with a ttl of their own die evenly over a minute. A ttl is in whole seconds, so
// the writes are evenly paced, too.
//
// The share of dead documents in memory is computed from outside. DOC.PEXPIRETIME, or PEXPIRETIME of
// Redis, tells once after loading when each document dies. INFO tells how many are removed. DOC.COUNT and
// reads of dying documents would remove the dead themselves. The reads meanwhile are of other documents,
// in a container of their own.

// endMargin is the time before the last death that the share leaves out. Few documents are left then, and
// those that have died since the last cycle of the purge are a large part of them.
const endMargin = 1200 * time.Millisecond

// purgePlan holds the plan of a run.
type purgePlan struct {
	documents int
	over      time.Duration // from the first death to the last
	loading   time.Duration // duration of the loading, whole seconds
	prelude   time.Duration // from the start of loading to the first death; 0: plan both from the speed of the server
	rest      time.Duration // measured before the first death, for comparison
	living    int           // documents that are read

	slack int // factor on the planned times, for a machine with other work

	readsPerSecond int
}

func benchPurge(ctx context.Context, o options) error {
	d := purgePlan{documents: o.ids(), over: o.over, rest: 2 * time.Second, readsPerSecond: 4000, living: o.ids() / 10, slack: 1}
	if d.over == 0 {
		// Fewer documents take less time: they are the end of the minute, its hardest part.
		d.over = time.Duration(d.documents) * time.Minute / 1_000_000
		d.loading, d.prelude, d.rest = (d.over / 2).Truncate(time.Second), d.over+2*time.Second, d.over/6
	}
	efforts := []int{1, 10}
	if o.effort > 0 {
		efforts = []int{o.effort}
	}
	var rows [][]string
	for i, effort := range efforts {
		statusOf(ctx).nextOf(i, len(efforts), "effort %d", effort)
		f, err := d.run(ctx, o, mayflyKind, effort)
		if err != nil {
			return err
		}
		restCPU := time.Duration(float64(f.rest.cpu) * float64(f.during.took) / float64(f.rest.took))
		rows = append(rows, []string{
			strconv.Itoa(effort),
			fmt.Sprintf("%.2f %%", 100*f.worst),
			fmt.Sprintf("%v, %d", f.worstAt.Round(100*time.Millisecond), f.worstLeft),
			fmt.Sprintf("%.2f %%", 100*f.mean),
			f.gone.Round(time.Millisecond).String(),
			fmt.Sprintf("%.1f s of %.0f s", f.during.cpu.Seconds(), f.during.took.Seconds()),
			fmt.Sprintf("%.1f s", restCPU.Seconds()),
			fmt.Sprintf("%.2f s", f.during.purge.Seconds()),
			f.during.longest.String(),
			f.during.reads(),
			f.rest.reads(),
		})
	}
	page := fmt.Sprintf("## Purge\n\n%d documents of %d bytes with a ttl of their own die over %v (%d a second), "+
		"%d reads a second of other documents going on. Dead: share of all dying documents in memory, "+
		"up to %v before the last dies; the aim is less than 10 %% at effort 1 and 2 %% at effort 10.\n\n",
		d.documents, bodySize, d.over, int(float64(d.documents)/d.over.Seconds()), d.readsPerSecond, endMargin)
	page += table([]string{"effort", "dead, max", "at the max: time, left", "dead, mean", "all gone after", "CPU of the server", "same at rest",
		"purge at work", "longest cycle", "read p50 / p99 / max", "reads at rest"}, rows)
	return o.publish(ctx, "purge", page)
}

// purgeJob returns a job in which all documents die within ten seconds, at the lowest effort.
func purgeJob(k kind) job {
	return func(ctx context.Context, c *comparison, _ *server) (sample, error) {
		d := purgePlan{
			documents: c.ids(), over: c.span(10 * time.Second), rest: c.span(2 * time.Second),
			readsPerSecond: 4000, living: c.ids() / 10,
		}
		var f purgeResult
		err := errTooSlow
		for d.slack = 1; errors.Is(err, errTooSlow) && d.slack <= 4; d.slack *= 2 {
			f, err = d.run(ctx, c.options, k, 1)
		}
		if err != nil {
			return nil, err
		}
		p99 := func(o observation) float64 { return o.latency(99).Seconds() }
		return sample{f.gone.Seconds(), f.worst, p99(f.during), p99(f.during) / p99(f.rest)}, nil
	}
}

// errTooSlow says that documents died before the measurement could begin.
var errTooSlow = errors.New("loading took too long")

// plan derives the times before the first death from the time of writing all documents at full speed.
// Asking when they die takes no longer.
func (d *purgePlan) plan(writing time.Duration) {
	writing *= time.Duration(d.slack)
	d.loading = (writing + writing/4).Truncate(time.Second) + time.Second
	d.prelude = d.loading + writing + d.rest + 2*time.Second*time.Duration(d.slack)
}

// purgeResult holds the results of a run.
type purgeResult struct {
	worst, mean  float64       // share of dead among the dying in memory
	worstAt      time.Duration // time of the worst share, from the first death
	worstLeft    int           // dying documents in memory then
	gone         time.Duration // from the last death until all dead are removed
	rest, during observation   // before the first death; from there until all are gone
}

func (d purgePlan) run(ctx context.Context, o options, k kind, effort int) (purgeResult, error) {
	s, err := k.start(ctx, o, "--active-expire-effort", strconv.Itoa(effort))
	if err != nil {
		return purgeResult{}, err
	}
	defer s.remove()
	for _, set := range []string{"dying", "living"} {
		if _, err := s.do(ctx, k.newSet(set, -1)...); err != nil {
			return purgeResult{}, err
		}
	}
	began := time.Now()
	err = pipelined(ctx, s.addr, d.living, 0, func(b []byte, i int) []byte {
		return k.put(b, "living", i, body(i, -1), 0)
	}, nil)
	if err != nil {
		return purgeResult{}, err
	}
	if d.prelude == 0 {
		d.plan(time.Since(began) * time.Duration(d.documents) / time.Duration(d.living))
	}
	began = time.Now()
	firstDeath := began.Add(d.prelude)
	rng := rand.New(rand.NewPCG(1, uint64(effort)))
	err = pipelined(ctx, s.addr, d.documents, d.loading, func(b []byte, i int) []byte {
		dies := firstDeath.Add(time.Duration(rng.Int64N(int64(d.over))))
		ttl := max(int(time.Until(dies).Seconds()+rng.Float64()), 1) // rounded at random
		return k.put(b, "dying", i, body(i, ttl), ttl)
	}, nil)
	if err != nil {
		return purgeResult{}, err
	}
	ends := make([]int64, 0, d.documents)
	err = pipelined(ctx, s.addr, d.documents, 0, func(b []byte, i int) []byte {
		return k.ends(b, "dying", i)
	}, func(i int, r reply) error {
		if r.n < 0 {
			return fmt.Errorf("%w: document %d is dead already", errTooSlow, i)
		}
		ends = append(ends, r.n)
		return nil
	})
	if err != nil {
		return purgeResult{}, err
	}
	slices.Sort(ends)
	first, last := time.UnixMilli(ends[0]), time.UnixMilli(ends[len(ends)-1])
	if left := time.Until(first); left < d.rest+time.Second {
		return purgeResult{}, fmt.Errorf("%w: after %v the first document dies in %v", errTooSlow, time.Since(began), left)
	}

	// The garbage of loading and the checkpoint must not disturb the measurement at rest.
	sleep(ctx, time.Until(first.Add(-d.rest-time.Second)))
	var f purgeResult
	f.rest, err = d.observe(ctx, s, func() bool { return time.Until(first) < time.Second }, nil)
	if err != nil {
		return purgeResult{}, err
	}
	sleep(ctx, time.Until(first))

	var sum float64
	looks := 0
	f.gone = -1
	f.during, err = d.observe(ctx, s, func() bool { return f.gone >= 0 || time.Since(last) > maxPurgeDelay },
		func(at time.Time, removed int) {
			removed -= f.rest.removed
			died, _ := slices.BinarySearch(ends, at.UnixMilli()+1)
			left := len(ends) - removed
			if left == 0 && f.gone < 0 {
				f.gone = max(at.Sub(last), 0)
			}
			if last.Sub(at) < endMargin {
				return
			}
			share := float64(max(died-removed, 0)) / float64(left)
			if share > f.worst {
				f.worst, f.worstAt, f.worstLeft = share, at.Sub(first), left
			}
			sum += share
			looks++
		})
	if err != nil {
		return purgeResult{}, err
	}
	if f.gone < 0 {
		return purgeResult{}, fmt.Errorf("%s: %v after the last death documents are still there", k.name, maxPurgeDelay)
	}
	if 2*f.during.late > f.during.looks {
		return purgeResult{}, fmt.Errorf("%s: %d of %d looks took longer than %v", k.name, f.during.late, f.during.looks, maxAnswerTime)
	}
	f.mean = sum / float64(looks)
	return f, nil
}

// maxPurgeDelay is the time after the last death by which all dead must be removed.
const maxPurgeDelay = time.Minute

// observation holds the figures of a server during a while.
type observation struct {
	took    time.Duration
	cpu     time.Duration // of the server
	purge   time.Duration // its purge at work
	longest time.Duration // purge cycle since the server was started
	removed int           // dead documents since the server was started
	looks   int           // at the server's figures
	late    int           // looks that took too long to be used
	reading openLoopResult
}

// latency returns a percentile of the reads.
func (o observation) latency(percentile float64) time.Duration {
	return time.Duration(o.reading.latency.ValueAtPercentile(percentile))
}

func (o observation) reads() string {
	return fmt.Sprintf("%v / %v / %v", o.latency(50).Round(time.Microsecond), o.latency(99).Round(10*time.Microsecond),
		o.latency(100).Round(100*time.Microsecond))
}

// maxAnswerTime is the longest time of an answer of use. Within the time of an answer its figures change: 16
// documents die in a millisecond.
const maxAnswerTime = 5 * time.Millisecond

// observe reads living documents until done returns true. It calls look 50 times a second with the number
// of dead documents removed.
func (d purgePlan) observe(ctx context.Context, s *server, done func() bool, look func(at time.Time, removed int)) (observation, error) {
	client := s.client(1)
	defer client.Close()
	began := time.Now()
	cpuBefore, err := s.cpu()
	if err != nil {
		return observation{}, err
	}
	before, err := client.Info(ctx, s.expiryInfo).Result()
	if err != nil {
		return observation{}, err
	}

	var o observation
	stop := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		const readers = 4
		var err error
		o.reading, err = openLoop(ctx, s.addr, readers, float64(d.readsPerSecond), stop, d.randomReads(s.kind))
		failed <- err
	}()

	for !done() && ctx.Err() == nil && err == nil {
		asked := time.Now()
		var info string
		if info, err = client.Info(ctx, s.expiryInfo).Result(); err != nil {
			break
		}
		took := time.Since(asked)
		o.removed = s.removed(info)
		o.purge = time.Duration(number(info, "expiry_time_spent_usec")-number(before, "expiry_time_spent_usec")) * time.Microsecond
		o.longest = time.Duration(number(info, "expiry_longest_cycle_usec")) * time.Microsecond
		o.looks++
		if took > maxAnswerTime {
			o.late++
		} else if look != nil {
			look(asked.Add(took/2), o.removed)
		}
		sleep(ctx, 20*time.Millisecond)
	}
	close(stop)
	err = errors.Join(err, <-failed)
	o.took = time.Since(began)
	cpu, failure := s.cpu()
	o.cpu = cpu - cpuBefore
	return o, errors.Join(err, failure)
}

// randomReads returns requests that read any living document.
func (d purgePlan) randomReads(k kind) func(*rand.Rand) request {
	return func(*rand.Rand) request {
		return func(b []byte, rng *rand.Rand) []byte { return k.get(b, "living", rng.IntN(d.living)) }
	}
}
