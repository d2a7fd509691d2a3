package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The bench of the purge. Documents are loaded with a ttl of their own such that they die evenly
// over a minute: as a ttl is in whole seconds, the moments of the writes have to be even too, and
// loading is paced. Meanwhile the share of dead among those in memory is computed from outside: how
// many have died by now is known from DOC.PEXPIRETIME, asked once after loading, and how many were
// removed from INFO. DOC.COUNT and the like must not be asked, as they may remove the dead
// themselves; nor must dying documents be read. The reads that go on all the time are of other
// documents, in a container of their own.

// lastMoments are left out of the share: so few documents are left then that those that have died
// since the last look of the purge are a large part of them.
const lastMoments = 1200 * time.Millisecond

// dying are the figures of one run.
type dying struct {
	documents int
	over      time.Duration // how long the dying takes
	loading   time.Duration // how long the loading takes, whole seconds
	prelude   time.Duration // from the start of loading to the first death
	rest      time.Duration // measured before the first death, as what to compare with
	readers   int           // connections, each with one read a millisecond
	living    int           // documents that are read
}

func benchPurge(ctx context.Context, o options) error {
	d := dying{
		documents: 1_000_000, over: time.Minute, loading: 25 * time.Second, prelude: 50 * time.Second, rest: 10 * time.Second,
		readers: 4, living: 100_000,
	}
	if o.quick {
		d = dying{
			documents: 100_000, over: 10 * time.Second, loading: 4 * time.Second, prelude: 12 * time.Second, rest: 3 * time.Second,
			readers: 4, living: 10_000,
		}
	}
	var rows [][]string
	for _, effort := range []int{1, 10} {
		row, err := d.run(ctx, o, effort)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	fmt.Printf("## Purge\n\n%d documents of %d bytes with a ttl of their own die over %v (%d a second), "+
		"%d reads a second of other documents going on. Dead: share of all dying documents in memory, "+
		"up to %v before the last dies.\n\n", d.documents, bodySize, d.over, d.documents/int(d.over.Seconds()), d.readers*1000, lastMoments)
	table([]string{"effort", "dead, max", "dead, mean", "all gone after", "CPU of the server", "same at rest",
		"purge at work", "longest cycle", "read p50 / p99 / max", "reads at rest"}, rows)
	return nil
}

func (d dying) run(ctx context.Context, o options, effort int) ([]string, error) {
	s, err := startMayfly(ctx, o, "--active-expire-effort", strconv.Itoa(effort))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	client := s.client(d.readers + 2)
	defer client.Close()
	for _, container := range []string{"dying", "living"} {
		if err := client.Do(ctx, "CONTAINER.SET", container, "TTL", "-1").Err(); err != nil {
			return nil, err
		}
	}

	err = pipelined(ctx, client, d.living, 0, func(p redis.Pipeliner, i int) {
		p.Do(ctx, "DOC.PUT", "living", key(i), body(i, -1))
	}, nil)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	firstDeath := began.Add(d.prelude)
	rng := rand.New(rand.NewPCG(1, uint64(effort)))
	err = pipelined(ctx, client, d.documents, d.loading, func(p redis.Pipeliner, i int) {
		dies := firstDeath.Add(time.Duration(rng.Int64N(int64(d.over))))
		ttl := int(time.Until(dies).Seconds() + rng.Float64()) // rounded by chance
		p.Do(ctx, "DOC.PUT", "dying", key(i), body(i, max(ttl, 1)))
	}, nil)
	if err != nil {
		return nil, err
	}
	ends := make([]int64, 0, d.documents)
	err = pipelined(ctx, client, d.documents, 0, func(p redis.Pipeliner, i int) {
		p.Do(ctx, "DOC.PEXPIRETIME", "dying", key(i))
	}, func(cmd redis.Cmder) error {
		end, err := cmd.(*redis.Cmd).Int64()
		if err == nil && end < 0 {
			err = fmt.Errorf("%v: it is dead already, the machine is too slow for this bench", cmd.Args())
		}
		ends = append(ends, end)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(ends)
	if left := time.Until(time.UnixMilli(ends[0])); left < d.rest+time.Second {
		return nil, fmt.Errorf("loading took %v, too long: the first document dies in %v", time.Since(began), left)
	}
	fmt.Printf("effort %d: loaded in %v\n", effort, time.Since(began).Round(time.Second))

	// Let the garbage of loading be collected and the checkpoint settle before measuring at rest.
	sleep(ctx, time.Until(time.UnixMilli(ends[0]).Add(-d.rest-time.Second)))
	rest, err := d.observe(ctx, s, client, func() bool { return time.Until(time.UnixMilli(ends[0])) < time.Second }, nil)
	if err != nil {
		return nil, err
	}
	sleep(ctx, time.Until(time.UnixMilli(ends[0])))

	var worst, sum float64
	looks := 0
	last := time.UnixMilli(ends[len(ends)-1])
	gone := time.Duration(-1)
	during, err := d.observe(ctx, s, client, func() bool { return gone >= 0 || time.Since(last) > 10*time.Second },
		func(at time.Time, removed int) {
			removed -= rest.removed
			died, _ := slices.BinarySearch(ends, at.UnixMilli()+1)
			left := len(ends) - removed
			if left == 0 && gone < 0 {
				gone = max(at.Sub(last), 0)
			}
			if last.Sub(at) < lastMoments {
				return
			}
			share := float64(max(died-removed, 0)) / float64(left)
			worst = max(worst, share)
			sum += share
			looks++
		})
	if err != nil {
		return nil, err
	}
	if gone < 0 {
		return nil, fmt.Errorf("ten seconds after the last death documents are still there")
	}
	fmt.Printf("effort %d: %d of %d looks were left out, the answer took longer than %v\n", effort, during.late, during.looks, promptly)
	restCPU := time.Duration(float64(rest.cpu) * float64(during.took) / float64(rest.took))
	return []string{
		strconv.Itoa(effort),
		fmt.Sprintf("%.2f %%", 100*worst),
		fmt.Sprintf("%.2f %%", 100*sum/float64(looks)),
		gone.Round(time.Millisecond).String(),
		fmt.Sprintf("%.1f s of %.0f s", during.cpu.Seconds(), during.took.Seconds()),
		fmt.Sprintf("%.1f s", restCPU.Seconds()),
		fmt.Sprintf("%.2f s", during.purge.Seconds()),
		during.longest.String(),
		during.reads(),
		rest.reads(),
	}, nil
}

// observation is what was seen of a server during a while.
type observation struct {
	took      time.Duration
	cpu       time.Duration // of the server
	purge     time.Duration // its purge at work
	longest   time.Duration // purge cycle since the server was started
	removed   int           // dead documents since the server was started
	looks     int           // at the server's figures
	late      int           // of these: not used, the answer took too long
	latencies []time.Duration
}

func (o observation) reads() string {
	return fmt.Sprintf("%v / %v / %v", percentile(o.latencies, 50).Round(time.Microsecond),
		percentile(o.latencies, 99).Round(10*time.Microsecond), percentile(o.latencies, 100).Round(100*time.Microsecond))
}

// promptly is how soon an answer must come to be of use: the later, the less is known of the moment
// at which it was true, and 16 documents die in a millisecond.
const promptly = 5 * time.Millisecond

// observe reads living documents and calls look 50 times a second with the number of dead removed
// so far, until done.
func (d dying) observe(ctx context.Context, s *server, client *redis.Client, done func() bool, look func(at time.Time, removed int)) (observation, error) {
	began := time.Now()
	cpuBefore, err := s.cpu()
	if err != nil {
		return observation{}, err
	}
	before, err := client.Info(ctx, "expiry").Result()
	if err != nil {
		return observation{}, err
	}

	reading, stop := context.WithCancel(ctx)
	defer stop()
	latencies := make([][]time.Duration, d.readers)
	failures := make([]error, d.readers)
	var readers sync.WaitGroup
	for r := range d.readers {
		readers.Go(func() { latencies[r], failures[r] = d.read(reading, client, uint64(r)) })
	}

	var o observation
	for !done() && ctx.Err() == nil {
		asked := time.Now()
		info, err := client.Info(ctx, "expiry").Result()
		if err != nil {
			return observation{}, err
		}
		took := time.Since(asked)
		o.removed = number(info, "expiry_removed_lazily") + number(info, "expiry_removed_actively")
		o.purge = time.Duration(number(info, "expiry_time_spent_usec")-number(before, "expiry_time_spent_usec")) * time.Microsecond
		o.longest = time.Duration(number(info, "expiry_longest_cycle_usec")) * time.Microsecond
		o.looks++
		if took > promptly {
			o.late++
		} else if look != nil {
			look(asked.Add(took/2), o.removed)
		}
		sleep(ctx, 20*time.Millisecond)
	}
	stop()
	readers.Wait()
	o.took = time.Since(began)
	cpu, err := s.cpu()
	o.cpu = cpu - cpuBefore
	for r := range d.readers {
		o.latencies = append(o.latencies, latencies[r]...)
		if err == nil {
			err = failures[r]
		}
	}
	return o, err
}

// read reads a random living document each millisecond until the context ends.
func (d dying) read(ctx context.Context, client *redis.Client, seed uint64) (latencies []time.Duration, err error) {
	rng := rand.New(rand.NewPCG(2, seed))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return latencies, nil
		case <-tick.C:
		}
		// A read that has begun is finished, or the connection would be lost.
		asked := time.Now()
		err := client.Do(context.WithoutCancel(ctx), "DOC.GET", "living", key(rng.IntN(d.living))).Err()
		if err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(asked))
	}
}

// pipelined sends n commands, 500 at a time, on two connections, evenly over a time (0: at once).
// take is given the commands with their replies, in no order; it is not called concurrently. It may
// be nil if only errors matter.
func pipelined(ctx context.Context, client *redis.Client, n int, over time.Duration, command func(p redis.Pipeliner, i int), take func(redis.Cmder) error) error {
	const batch, lanes = 500, 2
	var mu sync.Mutex // protects failure and next, and is held during command and take
	var failure error
	next := 0
	began := time.Now()
	lane := func() {
		for {
			mu.Lock()
			first := next
			last := min(first+batch, n)
			next = last
			if first == last || failure != nil || ctx.Err() != nil {
				mu.Unlock()
				return
			}
			sleep(ctx, time.Until(began.Add(over*time.Duration(first)/time.Duration(n))))
			p := client.Pipeline()
			for i := first; i < last; i++ {
				command(p, i)
			}
			mu.Unlock()

			cmds, err := p.Exec(ctx)

			mu.Lock()
			for i := 0; i < len(cmds) && err == nil && take != nil; i++ {
				err = take(cmds[i])
			}
			if failure == nil {
				failure = err
			}
			mu.Unlock()
		}
	}
	var all sync.WaitGroup
	for range lanes {
		all.Go(lane)
	}
	all.Wait()
	if failure == nil {
		failure = ctx.Err()
	}
	return failure
}

func key(i int) string { return fmt.Sprintf("order:%08d", i) }

// bodySize is the length of the documents in bytes.
const bodySize = 285

// body makes a document of bodySize bytes; a ttl below 0 is left out.
func body(i, ttl int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%d,"customer":"c-%05d","total":%d.%02d,`, i, i%99991, i%900, i%100)
	if ttl > 0 {
		fmt.Fprintf(&b, `"ttl":%d,`, ttl)
	}
	b.WriteString(`"note":"`)
	for b.Len() < bodySize-2 {
		b.WriteByte("lorem ipsum dolor sit amet "[b.Len()%27])
	}
	b.WriteString(`"}`)
	return b.String()
}

// number gives a field of an INFO reply as a whole number, 0 if it is none.
func number(info, name string) int {
	n, _ := strconv.Atoi(field(info, name))
	return n
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
