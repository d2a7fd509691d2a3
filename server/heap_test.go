package server

import "testing"

// TestHeapKeeper: memory is given back when a load has ended, once, and the collector set by what is in
// use.
func TestHeapKeeper(t *testing.T) {
	const mb = 1 << 20
	k := heapKeeper{percent: smallHeapGC}
	now := heapFigures{live: 10 * mb, held: 15 * mb}
	tick := func(wantPercent int, wantTidy bool) {
		t.Helper()
		if percent, tidy := k.tick(now); percent != wantPercent || tidy != wantTidy {
			t.Fatalf("%+v: percent %d, tidy %t; want %d, %t", now, percent, tidy, wantPercent, wantTidy)
		}
	}
	for range 10 {
		tick(0, false) // there is little to gain
	}
	for range 10 { // a load
		now.allocated += 50 * mb
		now.live, now.held = now.live+20*mb, now.held+40*mb
		want := 0
		if now.live > largeHeap && k.percent == smallHeapGC {
			want = largeHeapGC
		}
		tick(want, false)
	}
	now.allocated += mb / 2 // next to nothing
	tick(0, false)
	tick(0, true)
	now.held = now.live + 80*mb // all that could be had
	for range 100 {
		tick(0, false) // nothing has been allocated since
	}
	now.allocated += 60 * mb // soon after that there is more
	tick(0, false)
	tick(0, false)
	tick(0, true)
	now.allocated += 60 * mb
	for range ticksToTidy - 1 {
		tick(0, false) // not so soon
	}
	tick(0, true)
}

// TestHeapKeeperCountsTheDead: what items no longer need can be had, although the collector takes it for live.
func TestHeapKeeperCountsTheDead(t *testing.T) {
	const mb = 1 << 20
	now := heapFigures{live: 100 * mb, held: 110 * mb}
	for _, tc := range []struct {
		dead uint64
		want bool
	}{{5 * mb, false}, {30 * mb, true}} {
		k := heapKeeper{percent: smallHeapGC}
		now.dead = tc.dead
		tidied := false
		for range quietTicks + 1 {
			_, tidy := k.tick(now)
			tidied = tidied || tidy
		}
		if tidied != tc.want {
			t.Errorf("with %d bytes of the dead: tidied %t", tc.dead, tidied)
		}
	}
}

// TestHeapKeeperLeavesTheEnvironment: GOGC counts if it is set.
func TestHeapKeeperLeavesTheEnvironment(t *testing.T) {
	t.Setenv("GOGC", "77")
	if ownPercent() {
		t.Error("GOGC is overruled")
	}
	k := heapKeeper{}
	if percent, _ := k.tick(heapFigures{live: 1 << 30, held: 1 << 31}); percent != 0 {
		t.Errorf("the collector is set to %d", percent)
	}
}
