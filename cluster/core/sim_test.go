package core

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/test/drill"
)

// simSteps is how many faults the simulation makes for each seed.
const simSteps = 15

// seeded makes raft draw its election timeouts from a seed for the rest of a test. Raft has one source of
// chance for the whole process, so no test of a simulation runs in parallel.
func seeded(t *testing.T) func(seed uint64) {
	t.Helper()
	real := cryptorand.Reader
	t.Cleanup(func() { cryptorand.Reader = real })
	return func(seed uint64) { cryptorand.Reader = &reader{rand.New(rand.NewPCG(seed, 2))} }
}

type reader struct{ *rand.Rand }

func (r *reader) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = byte(r.Uint32())
	}
	return len(p), nil
}

// result is what the simulation of a seed has shown.
type result struct {
	failure              string
	hash                 uint64
	entries, sessions    int
	writes, reads, voids int
}

// simulate plays a seed: some faults, then rest, after which the cluster must serve again.
func simulate(seed uint64, mutant mutation, verbose func(string)) (r result) {
	w := newWorld(seed, mutant)
	w.verbose = verbose
	for range simSteps {
		w.run(w.now + w.between(50*time.Millisecond, 1500*time.Millisecond))
		if w.failure != "" {
			break
		}
		w.breakSomething()
	}
	if w.failure == "" {
		w.run(w.now + time.Second)
		w.heal()
		w.rest()
	}
	w.checker.linearizable()
	r.failure, r.hash, r.entries = w.failure, w.hash, len(w.checker.log)
	r.writes, r.reads = w.checker.acknowledged()
	for _, e := range w.checker.log {
		if e.void {
			r.voids++
		}
	}
	r.sessions = int(w.checker.current.Session)
	return r
}

// rest waits until the cluster serves again, and fails if it takes too long.
func (w *world) rest() {
	for range 60 {
		w.run(w.now + time.Second)
		before, _ := w.checker.acknowledged()
		if w.failure != "" || w.settled() != "" {
			continue
		}
		w.run(w.now + 2*time.Second)
		if after, _ := w.checker.acknowledged(); after > before && w.settled() == "" {
			return
		}
	}
	if w.failure == "" {
		for _, m := range w.machines {
			if i := m.inc; i != nil {
				w.note("%s: %+v, delivered %d, applying %t with %d in the queue, %d saves and %d others wait, unsettled %t, leads %t in %d", m.name(), i.core.Status(m.local()),
					i.core.delivered, i.applying, len(i.queue), len(i.saves), len(i.inbox), i.unsettled(), i.leads, i.session)
			}
		}
		w.fail("no progress after all faults have ended: %s", w.settled())
	}
}

// TestSimulation plays seeds, each of which is the first one of a run with -seed. With -v it prints the trace
// of one that fails.
func TestSimulation(t *testing.T) {
	first, seeds := drill.Seed(t), drill.Pick(15, 60, 3000)
	seed := seeded(t)
	var total result
	for n := first; n != first+uint64(seeds); n++ {
		seed(n)
		r := simulate(n, sound, nil)
		if r.failure != "" {
			if testing.Verbose() {
				seed(n)
				simulate(n, sound, func(line string) { fmt.Println(line) })
			}
			t.Fatalf("-seed %d: %s", n, r.failure)
		}
		total.entries += r.entries
		total.sessions += r.sessions
		total.writes += r.writes
		total.reads += r.reads
		total.voids += r.voids
	}
	t.Logf("%d seeds: %d entries, %d terms, %d writes and %d reads acknowledged, %d void batches", seeds, total.entries, total.sessions, total.writes, total.reads, total.voids)
}

// TestSimulationReplays shows that a seed is the whole schedule.
func TestSimulationReplays(t *testing.T) {
	seed := seeded(t)
	for n := range drill.Pick[uint64](2, 4, 10) {
		var hashes [2]uint64
		for i := range hashes {
			seed(n)
			hashes[i] = simulate(n, sound, nil).hash
		}
		if hashes[0] != hashes[1] {
			t.Errorf("seed %d: traces %x and %x", n, hashes[0], hashes[1])
		}
	}
}

// TestSimulationMutants shows that the simulation notices when a rule of the design is missing. The search
// for a seed that shows it begins where one was found before.
func TestSimulationMutants(t *testing.T) {
	seed := seeded(t)
	for _, tt := range []struct {
		mutant mutation
		first  uint64
	}{
		{withoutFence, 5},
		{withoutVoid, 5},
		{withoutLease, 120},
		{withoutPromise, 585},
		{withoutStart, 225},
		{withoutEnd, 3},
		{withoutReload, 3},
		{withoutSession, 273},
		{withoutDisk, 0},
		{withoutLeaseEnd, 0},
	} {
		t.Run(string(tt.mutant), func(t *testing.T) {
			const most = 3000
			for n := tt.first; n < tt.first+most; n++ {
				seed(n)
				if r := simulate(n, tt.mutant, nil); r.failure != "" {
					t.Logf("seed %d: %s", n, r.failure)
					return
				}
			}
			t.Errorf("no failure in %d seeds", most)
		})
	}
}

// TestFailoverTime kills leaders of clusters of three in which nothing else fails: another one leads soon.
// The seeds are always the same: the bound holds for most elections, not for each.
func TestFailoverTime(t *testing.T) {
	seed := seeded(t)
	var took []time.Duration
	for n := uint64(0); len(took) < drill.Pick(3, 15, 100); n++ {
		seed(n)
		w := newWorld(n, sound)
		w.run(5*time.Second + w.between(0, time.Second))
		leader := w.leader()
		if len(w.machines) != 3 || leader == nil {
			continue
		}
		leader.kill(false)
		killed := w.now
		for w.leader() == nil && w.now < killed+10*time.Second {
			w.run(w.now + 10*time.Millisecond)
		}
		took = append(took, w.now-killed)
	}
	slices.Sort(took)
	if most := took[len(took)-1]; most > 2300*time.Millisecond {
		t.Errorf("another node leads after up to %s", most)
	}
	t.Logf("another node leads after %s in the middle, %s at most", took[len(took)/2], took[len(took)-1])
}
