package server

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"mayfly/keyspace"
)

// How the process keeps what it takes from the system near what it needs:
//
//  1. The collector may let garbage grow to the size of what is in use (GOGC=100). That is right for a
//     small heap; for one of many items it is much memory for little: the collector looks into few of them,
//     so that it can be called for a fifth of that, at two percent of the processor time of writes.
//  2. What is free the runtime keeps for minutes. When little is allocated any more, after a load, a
//     start, or the death of many, the items are moved closer together, what is garbage is collected and
//     what is free is given back.
//
// If the environment sets GOGC, that counts, and only the second is done. The limit that follows from
// maxmemory (memlimit.go) counts besides.
const (
	heapTick    = 250 * time.Millisecond
	largeHeap   = 128 << 20 // bytes in use
	smallHeapGC = 100       // percent
	largeHeapGC = 20
	quietTicks  = 2        // so long little is allocated
	quietBytes  = 1 << 20  // is little, a tick
	tidyGain    = 16 << 20 // bytes: to give back less is not worth it,
	tidyShare   = 16       // nor is less than this part of what is in use
	ticksToTidy = 16       // at the least from one time to the next: a pause is not an end
)

// heapFigures are what the keeper looks at, in bytes.
type heapFigures struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	held      uint64 // taken from the system and not given back
	dead      uint64 // of what is live, what the keyspace could do without
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

// heapKeeper decides, tick by tick, what is to be done. Not safe for concurrent use.
type heapKeeper struct {
	percent int // in force; 0: it is the environment's business
	last    heapFigures
	quiet   int    // ticks for which little has been allocated
	since   int    // ticks since memory was last given back
	tidied  uint64 // allocated when it was
	before  bool   // it has been
}

// tick looks at new figures. percent is what the collector is to be set to, 0 if it is as it should
// be; tidy says to collect and give back now.
func (k *heapKeeper) tick(now heapFigures) (percent int, tidy bool) {
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
	gain := max(tidyGain, now.live/tidyShare)
	tidy = k.quiet >= quietTicks && now.held+now.dead > now.live+gain &&
		(!k.before || k.since >= ticksToTidy && now.allocated-k.tidied >= gain)
	if tidy {
		k.since, k.tidied, k.before = 0, now.allocated, true
	}
	return percent, tidy
}

func gcPercent(live uint64) int {
	if live > largeHeap {
		return largeHeapGC
	}
	return smallHeapGC
}

// ownPercent tells whether the collector is ours to set.
func ownPercent() bool { return os.Getenv("GOGC") == "" }

// SpareHeap sets the collector for the loading of data: how much they are is not known. Once the server has
// started, it is set by what is in use.
func SpareHeap() {
	if ownPercent() {
		debug.SetGCPercent(largeHeapGC)
	}
}

// keepHeap does what the keeper decides until stop is closed.
func keepHeap(stop <-chan struct{}, ks *keyspace.Keyspace) {
	k := heapKeeper{}
	if ownPercent() {
		k.percent = largeHeapGC // see SpareHeap
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
		now.dead = uint64(ks.Garbage())
		percent, tidy := k.tick(now)
		if percent != 0 {
			debug.SetGCPercent(percent)
		}
		if tidy {
			ks.Clean()
			debug.FreeOSMemory()
		}
	}
}
