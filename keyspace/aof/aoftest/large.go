package aoftest

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
)

var cutPoints = flag.Int("cut-points", 200, "the number of places in the last 64 KiB at which tests cut large files; 0 for all")

// EachCut calls f with the sizes of a file that is cut within its last 64 KiB.
func EachCut(t *testing.T, size int, f func(left int)) {
	t.Helper()
	from, tried := max(size-64<<10, 0), 0
	for left := from; left <= size; left++ {
		if *cutPoints == 0 || rand.IntN(size-from+1) < *cutPoints {
			f(left)
			tried++
		}
	}
	t.Logf("cut at %d places", tried)
}

// NoFsync drops fsyncs until the test ends, for tests that cut no power.
func NoFsync(t *testing.T) {
	ReplaceDisk(t, nil, func(*os.File) error { return nil })
}

// LiveHeap returns the bytes of live memory.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
