//go:build invariants

package clock

import (
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// stepVariable names a file with a duration, such as -1h. The wall clock of this process runs that much ahead. So a test
// sets the clock of one process among several on a machine.
const stepVariable = "TEST_CLOCK_STEP"

// stepped is how far the wall clock runs ahead, in ns.
var stepped atomic.Int64

func init() {
	path := os.Getenv(stepVariable)
	if path == "" {
		return
	}
	read := func() {
		text, err := os.ReadFile(path)
		if err != nil {
			return // being replaced
		}
		if d, err := time.ParseDuration(strings.TrimSpace(string(text))); err == nil {
			stepped.Store(int64(d))
		}
	}
	read()
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			read()
		}
	}()
}

func step() int64 { return stepped.Load() }
