package vfs

import (
	"sync/atomic"
	"time"
)

// slowestDisk is what a disk that works writes, in bytes a second.
const slowestDisk = 4 << 20

// Step is a step that writes and that others wait for, because a disk may never end it. The zero value has
// none under way. One goroutine at a time begins and ends steps. Times are those of a monotonic clock, and
// not 0.
type Step struct{ began, bytes atomic.Int64 }

// Begin begins a step that writes or forces to disk some bytes.
func (s *Step) Begin(now time.Duration, bytes int64) {
	s.bytes.Store(bytes)
	s.began.Store(int64(now))
}

// End ends the step.
func (s *Step) End() { s.began.Store(0) }

// Hangs reports whether a step takes longer than some time, and than a very slow disk takes for its bytes.
// Safe for concurrent use.
func (s *Step) Hangs(now, longest time.Duration) bool {
	began := time.Duration(s.began.Load())
	return began != 0 && now-began > longest+time.Duration(s.bytes.Load())*time.Second/slowestDisk
}
