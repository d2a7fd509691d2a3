//go:build !linux

package main

import "time"

// sleepFinely sleeps as finely as the timers of Go can.
func sleepFinely(d time.Duration) { time.Sleep(d) }
