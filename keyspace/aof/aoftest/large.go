package aoftest

import (
	"runtime"
	"testing"

	"mayfly/test/drill"
)

// EachCut calls f with sizes of a file that is cut within its last 64 KiB; a drill with all.
func EachCut(t *testing.T, size int, f func(left int)) {
	t.Helper()
	from, tried := max(size-64<<10, 0), 0
	r, most := drill.Rand(t), drill.Pick(20, 100, size)
	for left := from; left <= size; left++ {
		if r.IntN(size-from+1) < most {
			f(left)
			tried++
		}
	}
	t.Logf("cut at %d places", tried)
}

// LiveHeap returns the bytes of live memory.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
