// Package core drives raft for one node: elections, proposals, sessions, members and leases, deterministically.
//
// Core has no goroutines, no I/O and no clock. The driver calls it from one goroutine, passes messages and
// monotonic times in, and does what Ready asks for: send, save, send, apply. The same calls give the same results,
// so a simulation replays a schedule of faults from a seed.
package core
