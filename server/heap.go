package server

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/config"
)

// How the heap is kept near what it needs:
//
//  1. Go's collector lets garbage grow to the size of the live heap (GOGC=100). For a small heap that is
//     right. For one of many items it is much memory for little gain: the collector looks into few of them.
//     A fifth of that garbage costs two percent of the processor time of writes.
//  2. The runtime keeps free memory for minutes. After a load, a start, or the death of many items, little is
//     allocated any more. The same holds when clients leave in the middle of large commands. Then the
//     keyspace compacts its memory, the collector runs, and free memory goes back to the system.
//  3. With maxmemory, the runtime gets a soft limit (GOMEMLIMIT).
//
// GOGC in the environment overrides the first.

const (
	heapTick      = 250 * time.Millisecond
	middleHeap    = 32 << 20  // live bytes
	largeHeap     = 128 << 20 // likewise
	smallHeapGC   = 100       // percent
	middleHeapGC  = 50        // 20 takes a sixth less memory during overwrites, for 6 % more CPU
	largeHeapGC   = 20
	quietTicks    = 2       // ticks with few allocations before memory is released
	quietBytes    = 1 << 20 // allocated in a tick with few allocations, at most
	minRelease    = 8 << 20 // bytes; to release less is not worth it
	minShare      = 16      // nor is less than this part of the live heap
	ticksToNextGC = 16      // from one release to the next, because a pause is not an end
)

// heapFigures are what the heapKeeper looks at, in bytes.
type heapFigures struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	held      uint64 // taken from the system and not released
	garbage   uint64 // of the live heap, what the keyspace can release
	clients   uint64 // what clients hold
	cycles    uint64 // completed collections
}

func readHeap() heapFigures {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	return heapFigures{
		allocated: samples[0].Value.Uint64(),
		live:      samples[1].Value.Uint64(),
		held:      samples[2].Value.Uint64() - samples[3].Value.Uint64(),
		cycles:    samples[4].Value.Uint64(),
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
	kept      uint64 // garbage of the keyspace that the last release left, bytes
	clients   uint64 // the most that clients have held since the last collection, bytes
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
	// What clients have released since the last collection is garbage that counts as live. When they leave,
	// little is allocated any more, so the next collection may be far.
	if now.cycles != k.last.cycles {
		k.clients = 0
	}
	k.clients = max(k.clients, now.clients)
	left := k.clients - now.clients
	garbage := now.garbage + left
	if k.since++; k.since == 1 {
		k.kept = now.garbage
	}
	k.last = now
	more := now.allocated - k.allocated + left + now.garbage - min(now.garbage, k.kept) // since the last release
	gain := max(minRelease, now.live/minShare)
	release = k.quiet >= quietTicks && now.held+garbage > now.live+gain &&
		(!k.released || k.since >= ticksToNextGC && more >= gain)
	if release {
		k.since, k.allocated, k.released = 0, now.allocated, true
	}
	return percent, release
}

func gcPercent(live uint64) int {
	switch {
	case live > largeHeap:
		return largeHeapGC
	case live > middleHeap:
		return middleHeapGC
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

// tendHeap keeps the memory of the process near what it needs until stop is closed. open returns the open
// keyspace, or nil if none is open.
func tendHeap(stop <-chan struct{}, open func() *keyspace.Keyspace, clients *engine.ClientMemoryLimit) {
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
		ks := open()
		if ks == nil {
			continue
		}
		now := readHeap()
		now.garbage, now.clients = uint64(ks.Garbage()), uint64(max(clients.Used(), 0))
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

// The runtime's soft limit for a given maxmemory. The collector lets garbage grow to a share of the live
// heap, unless that would exceed the limit: then it works harder. With too low a limit it would only burn
// time. The process needs at least the items (maxmemory) and the buffers of connections. A third more is for
// keys and values that were overwritten or deleted (keyspace/memtable).
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
