package server

import (
	"net"
	"time"
)

// keepAlive makes the operating system probe a silent client at an interval, and give up after three
// failures, as Redis does. With an interval of 0 it does not, as Go would for what it makes of a descriptor.
func keepAlive(nc net.Conn, every time.Duration) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	config := net.KeepAliveConfig{Enable: every > 0, Idle: every, Interval: max(every/3, time.Second), Count: 3}
	_ = tcp.SetKeepAliveConfig(config) // the connection works without it
}
