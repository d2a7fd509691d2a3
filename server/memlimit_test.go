package server

import (
	"math"
	"runtime/debug"
	"testing"
)

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
		LimitRuntime(loadSettings(t, "--maxmemory", tt.maxmemory))
		if got := debug.SetMemoryLimit(-1); got != min(tt.want, before) {
			t.Errorf("maxmemory %s limits the runtime to %d, want %d", tt.maxmemory, got, tt.want)
		}
	}
}
