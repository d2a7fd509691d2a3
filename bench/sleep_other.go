//go:build !linux

package main

import "time"

// sleepFinely sleeps with the precision of Go's timers.
func sleepFinely(d time.Duration) { time.Sleep(d) }
