package server

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"mayfly/keyspace"
	"mayfly/server/config"
)

// This file keeps the memory of the process near what it needs:
//
//  1. Go's collector lets garbage grow to the size of the live heap (GOGC=100). For a small heap that is
//     right. For one of many items it is much memory for little gain: the collector looks into few of them.
//     A fifth of that garbage costs two percent of the processor time of writes.
//  2. The runtime keeps free memory for minutes. After a load, a start, or the death of many items, little is
//     allocated any more. Then the keyspace compacts its memory, the collector runs, and free memory goes
//     back to the system.
//  3. With maxmemory, the runtime gets a soft limit (GOMEMLIMIT).
//
// GOGC in the environment overrides the first.
const (
	heapTick      = 250 * time.Millisecond
	largeHeap     = 128 << 20 // live bytes
	smallHeapGC   = 100       // percent
	largeHeapGC   = 20
	quietTicks    = 2        // ticks with few allocations before memory is released
	quietBytes    = 1 << 20  // allocated in a tick with few allocations, at most
	minRelease    = 16 << 20 // bytes; to release less is not worth it
	minShare      = 16       // nor is less than this part of the live heap
	ticksToNextGC = 16       // from one release to the next, because a pause is not an end
)

// heapFigures are what the heapKeeper looks at, in bytes.
type heapFigures struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	held      uint64 // taken from the system and not released
	garbage   uint64 // of the live heap, what the keyspace can release
}

func readHeap() heapFigures {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return heapFigures{
		allocated: samples[0].Value.Uint64(),
		live:      samples[1].Value.Uint64(),
		held:      samples[2].Value.Uint64() - samples[3].Value.Uint64(),
	}
}

// heapKeeper decides at every tick what to do. Not safe for concurrent use.
type heapKeeper struct {
	percent   int // of the collector, in force; 0: the environment sets it
	last      heapFigures
	quiet     int    // ticks with few allocations
	since     int    // ticks since the last release
	allocated uint64 // at the last release
	released  bool   // there was a release
}

// tick looks at new figures. percent is a new setting of the collector; 0: no change. release means to
// collect and release memory now.
func (k *heapKeeper) tick(now heapFigures) (percent int, release bool) {
	if want := gcPercent(now.live); k.percent != 0 && want != k.percent {
		k.percent, percent = want, want
	}
	if now.allocated-k.last.allocated <= quietBytes {
		k.quiet++
	} else {
		k.quiet = 0
	}
	k.since++
	k.last = now
	gain := max(minRelease, now.live/minShare)
	release = k.quiet >= quietTicks && now.held+now.garbage > now.live+gain &&
		(!k.released || k.since >= ticksToNextGC && now.allocated-k.allocated >= gain)
	if release {
		k.since, k.allocated, k.released = 0, now.allocated, true
	}
	return percent, release
}

func gcPercent(live uint64) int {
	if live > largeHeap {
		return largeHeapGC
	}
	return smallHeapGC
}

// mayTuneGC reports whether the environment leaves the collector to the server.
func mayTuneGC() bool { return os.Getenv("GOGC") == "" }

// TuneForLoading sets the collector for the loading of data of unknown size. After the start the server
// adapts it to the live heap.
func TuneForLoading() {
	if mayTuneGC() {
		debug.SetGCPercent(largeHeapGC)
	}
}

// keepHeap does what the heapKeeper decides until stop is closed.
func keepHeap(stop <-chan struct{}, ks *keyspace.Keyspace) {
	k := heapKeeper{}
	if mayTuneGC() {
		k.percent = largeHeapGC // see TuneForLoading
	}
	ticker := time.NewTicker(heapTick)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		now := readHeap()
		now.garbage = uint64(ks.Garbage())
		percent, release := k.tick(now)
		if percent != 0 {
			debug.SetGCPercent(percent)
		}
		if release {
			ks.Clean()
			debug.FreeOSMemory()
		}
	}
}

// The runtime's soft limit for a given maxmemory. The collector lets garbage grow to a share of the live heap,
// unless that would exceed the limit: then it works harder. With too low a limit it would only burn time.
// The process needs at least the items (maxmemory) and the buffers of connections. A third more is for keys
// and values that were overwritten or deleted (keyspace/memtable).
const (
	runtimeFactor = 1.5
	runtimeBase   = 256 << 20 // bytes
)

// environmentLimit is the limit that the environment sets (GOMEMLIMIT); the runtime has none by default.
var environmentLimit = sync.OnceValue(func() int64 { return debug.SetMemoryLimit(-1) })

// runtimeLimit is Go's soft memory limit that follows from maxmemory, in bytes; math.MaxInt64: none.
func runtimeLimit(s *config.Settings) int64 {
	if s.MaxMemory == 0 || s.MaxMemory > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return int64(float64(s.MaxMemory)*runtimeFactor) + runtimeBase
}

// LimitRuntime puts that limit into force, or the one of GOMEMLIMIT if that is lower.
func LimitRuntime(s *config.Settings) { debug.SetMemoryLimit(min(environmentLimit(), runtimeLimit(s))) }
