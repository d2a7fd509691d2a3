package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
)

// TestClockSteps sets a machine's clock back and forth by hours while a keyspace is open and between
// runs, some of which end by a kill. Time must never run backwards nor stop, and whatever has died
// once, by any rule at any moment, must never be back; what has not must be there.
func TestClockSteps(t *testing.T) {
	drills := uint64(10)
	if testing.Short() {
		drills = 3
	}
	for seed := range drills {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &clockDrill{t: t, r: rand.New(rand.NewPCG(seed, 6)), dir: t.TempDir(), machine: &steppedMachine{wall: epoch * int64(time.Millisecond)}}
			d.play()
		})
	}
}

// steppedMachine stands in for the clocks of a machine. Safe for concurrent use.
type steppedMachine struct {
	mu         sync.Mutex // protects what follows
	wall, mono int64      // ns
}

func (m *steppedMachine) read() (wall, mono int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall, m.mono
}

func (m *steppedMachine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += int64(d)
	m.mono += int64(d)
}

// step sets the wall clock by up to twelve hours.
func (m *steppedMachine) step(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += int64((r.Float64()*24 - 12) * float64(time.Hour))
}

// restart sets the monotonic clock anywhere, as another run of a program finds it.
func (m *steppedMachine) restart(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mono = r.Int64N(int64(100 * time.Hour))
}

type clockDrill struct {
	t       *testing.T
	r       *rand.Rand
	dir     string
	machine *steppedMachine
	o       *opened
	latest  int64 // ms; what the clock has shown
	model   swapSide
}

const clockContainer = "stepped"

func (d *clockDrill) play() {
	d.start()
	d.o.policy(clockContainer, expiry.Forever)
	d.model = swapSide{def: expiry.Forever, items: make(map[string]Item)}
	for range 150 {
		switch d.r.IntN(12) {
		case 0:
			d.machine.step(d.r)
		case 1:
			d.model.bury(d.now())
			d.model.def = []expiry.TTL{expiry.Off, expiry.Forever, 2, 4000, 20_000}[d.r.IntN(5)]
			d.o.policy(clockContainer, d.model.def)
		case 2:
			d.restart()
		case 3:
			d.o.PurgeOnce()
		case 4, 5, 6:
			own := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, d.now() + 1 + d.r.Int64N(30_000_000)}[d.r.IntN(4)]
			id := fmt.Sprint("id-", d.r.IntN(10))
			d.model.items[id] = d.o.put(clockContainer, id, "{}", own)
		default:
			before, passing := d.now(), time.Duration(d.r.IntN(3000))*time.Millisecond
			d.machine.pass(passing)
			if passed := d.now() - before; passed < passing.Milliseconds() {
				d.t.Fatalf("%d ms pass, the clock goes on by %d", passing.Milliseconds(), passed)
			}
		}
		d.check()
	}
	d.o.stop()
}

// now reads the clock.
func (d *clockDrill) now() int64 {
	d.t.Helper()
	now := d.o.Now()
	if now < d.latest {
		d.t.Fatalf("it was %d, it is %d", d.latest, now)
	}
	d.latest = now
	return now
}

func (d *clockDrill) start() {
	d.t.Helper()
	clock := expiry.SystemClockReading(0, d.machine.read)
	d.o = &opened{t: d.t, opt: Options{Dir: d.dir, Partitions: 2, Clock: clock, NoPurge: true}}
	d.o.start()
}

// restart ends a run, in order or by a kill, and starts another, between which the clocks are anywhere.
func (d *clockDrill) restart() {
	d.t.Helper()
	d.now()
	if d.r.IntN(2) == 0 {
		d.o.stop()
	} else {
		d.o.markClock() // as is done each second
		dir := d.t.TempDir()
		copyFolder(d.t, d.dir, dir) // as a kill would leave it
		d.o.stop()
		d.dir = dir
	}
	d.machine.restart(d.r)
	if d.r.IntN(2) == 0 {
		d.machine.step(d.r)
	}
	d.start()
	d.now()
}

func (d *clockDrill) check() {
	d.t.Helper()
	d.model.bury(d.now())
	found := make(map[string]Item)
	for at, it := range d.o.dump() {
		found[at.id] = it
	}
	if !maps.Equal(found, d.model.items) {
		d.t.Fatalf("at %d there are %v, there should be %v", d.latest, found, d.model.items)
	}
}
