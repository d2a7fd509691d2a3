//go:build !linux

package server

import "time"

// Loops need epoll: elsewhere every connection has a goroutine of its own.
type loop struct{}

func newLoops(*Server, int) []*loop { return nil }

func (*loop) run() {}

func (*loop) halt() {}

func (*loop) recheckDeadlines() {}

func (*loop) limitIdle(time.Duration) {}

func (*Server) enterLoop(*conn) bool { return false }
