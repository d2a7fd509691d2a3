package main

import (
	"syscall"
	"time"
)

// sleepFinely sleeps for less than a millisecond, the precision of Go's timers in an idle process. The
// goroutine must be locked to its thread.
func sleepFinely(d time.Duration) {
	const setTimerSlack = 29 // PR_SET_TIMERSLACK of prctl(2); ns by which a sleep may be longer
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
