package server

import (
	"math"
	"runtime/debug"
	"sync"

	"mayfly/server/config"
)

// How much memory the runtime is to do with, for a given maxmemory. The collector lets garbage grow to
// a share of what is in use, unless that would exceed the limit: then it works harder instead. What it
// needs at the least is the items (maxmemory), a third more of their keys and values that have been
// overwritten or deleted (see the keyspace's arenas), and what connections buffer. With less it would only burn time, so the
// limit is generous, and it is soft: a heap that does not fit may exceed it.
const (
	runtimeFactor = 1.5
	runtimeBase   = 256 << 20 // bytes
)

// initialLimit is the limit that the environment sets (GOMEMLIMIT); the runtime has none by default.
var initialLimit = sync.OnceValue(func() int64 { return debug.SetMemoryLimit(-1) })

// runtimeLimit is Go's soft limit on memory that follows from maxmemory, in bytes; math.MaxInt64 if
// there is none.
func runtimeLimit(s *config.Settings) int64 {
	if s.MaxMemory == 0 || s.MaxMemory > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return int64(float64(s.MaxMemory)*runtimeFactor) + runtimeBase
}

// LimitRuntime puts that limit into force, or the one that GOMEMLIMIT sets, if that is lower.
func LimitRuntime(s *config.Settings) { debug.SetMemoryLimit(min(initialLimit(), runtimeLimit(s))) }
