//go:build hooks

package main

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
)

// stepVariable names a file with a duration, such as -1h. The wall clock of this process runs that much
// ahead. So a test sets the clock of one process among several on a machine.
const stepVariable = "TEST_CLOCK_STEP"

// hooked returns the options of a keyspace with the clock that a test sets.
func hooked(o keyspace.Options) keyspace.Options {
	if path := os.Getenv(stepVariable); path != "" {
		follow(path)
		machine := clock.NewSystem(0)
		o.Clock = clock.SystemReading(0, func() (wall, mono int64) {
			return machine.Micros()*int64(time.Microsecond) + stepped.Load(), int64(clock.Monotonic())
		}, time.Sleep)
	}
	return o
}

// stepped is how far the wall clock runs ahead, in ns.
var stepped atomic.Int64

var following sync.Once

// follow reads how far the clock is to run ahead, again and again.
func follow(path string) {
	read := func() {
		text, err := os.ReadFile(path)
		if err != nil {
			return // being replaced
		}
		if d, err := time.ParseDuration(strings.TrimSpace(string(text))); err == nil {
			stepped.Store(int64(d))
		}
	}
	following.Do(func() {
		read()
		go func() {
			for range time.Tick(10 * time.Millisecond) {
				read()
			}
		}()
	})
}
