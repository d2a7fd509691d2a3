package server

import (
	"math"
	"runtime/debug"
	"testing"

	"mayfly/server/config"
	"mayfly/test/drill"
)

// The heapKeeper releases memory once when a load has ended, and sets the collector by the live heap.
func TestHeapKeeper(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	k := heapKeeper{percent: smallHeapGC}
	now := heapFigures{live: 10 * mb, held: 15 * mb}
	tick := func(wantPercent int, wantRelease bool) {
		t.Helper()
		if percent, release := k.tick(now); percent != wantPercent || release != wantRelease {
			t.Fatalf("%+v: percent %d, release %t; want %d, %t", now, percent, release, wantPercent, wantRelease)
		}
	}
	for range 10 {
		tick(0, false) // there is little to gain
	}
	for range 10 { // a load
		now.allocated += 50 * mb
		now.live, now.held = now.live+20*mb, now.held+40*mb
		want := 0
		switch {
		case now.live > largeHeap && k.percent != largeHeapGC:
			want = largeHeapGC
		case now.live > middleHeap && k.percent == smallHeapGC:
			want = middleHeapGC
		}
		tick(want, false)
	}
	now.allocated += mb / 2 // very little
	tick(0, false)
	tick(0, true)
	now.held = now.live + 80*mb // as much as a release gains
	for range 100 {
		tick(0, false) // nothing was allocated since
	}
	now.allocated += 60 * mb // more soon after
	tick(0, false)
	tick(0, false)
	tick(0, true)
	now.allocated += 60 * mb
	for range ticksToNextGC - 1 {
		tick(0, false) // not so soon
	}
	tick(0, true)
	now.garbage = 20 * mb // what it leaves
	for range 100 {
		tick(0, false)
	}
	now.garbage += 60 * mb // a release in the middle of a load found little
	tick(0, true)
}

// Memory of clients that have left is released, though no collection has found it.
func TestHeapKeeperCountsClients(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	k := heapKeeper{percent: largeHeapGC, released: true, allocated: 2 << 30} // a release while they came
	now := heapFigures{allocated: 2 << 30, live: 1100 * mb, held: 1110 * mb, clients: 1000 * mb, cycles: 7}
	ticks := func(n int) (released int) {
		for range n {
			if _, release := k.tick(now); release {
				released++
			}
		}
		return released
	}
	if ticks(2*ticksToNextGC) > 0 {
		t.Error("it releases what clients hold")
	}
	now.clients = 0
	if ticks(quietTicks+1) != 1 {
		t.Error("it does not release what clients held")
	}
	now.live, now.held, now.cycles = 50*mb, 60*mb, 8 // after the release
	if ticks(100) > 0 {
		t.Error("it releases again")
	}
}

// The heapKeeper counts garbage of the keyspace, which the collector takes for live.
func TestHeapKeeperCountsGarbage(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	now := heapFigures{live: 100 * mb, held: 102 * mb}
	for _, tc := range []struct {
		garbage uint64
		want    bool
	}{{5 * mb, false}, {30 * mb, true}} {
		k := heapKeeper{percent: smallHeapGC}
		now.garbage = tc.garbage
		released := false
		for range quietTicks + 1 {
			_, release := k.tick(now)
			released = released || release
		}
		if released != tc.want {
			t.Errorf("with %d bytes of garbage: released %t", tc.garbage, released)
		}
	}
}

// GOGC in the environment rules.
func TestHeapKeeperLeavesTheEnvironment(t *testing.T) {
	t.Setenv("GOGC", "77")
	if mayTuneGC() {
		t.Error("GOGC is overruled")
	}
	k := heapKeeper{}
	if percent, _ := k.tick(heapFigures{live: 1 << 30, held: 1 << 31}); percent != 0 {
		t.Errorf("the collector is set to %d", percent)
	}
}

// Go's soft memory limit follows from maxmemory.
func TestRuntimeFollowsMaxMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, tt := range []struct {
		maxmemory string
		want      int64
	}{
		{"0", math.MaxInt64},
		{"1gb", 1<<30 + 1<<29 + 256<<20},
		{"9223372036854775807", math.MaxInt64},
	} {
		c, err := config.Load([]string{"--maxmemory", tt.maxmemory})
		drill.Check(t, err)
		LimitRuntime(c.Settings())
		if got := debug.SetMemoryLimit(-1); got != min(tt.want, before) {
			t.Errorf("maxmemory %s limits the runtime to %d, want %d", tt.maxmemory, got, tt.want)
		}
	}
}
