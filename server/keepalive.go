package server

import (
	"net"
	"time"
)

// keepAlive makes the operating system probe a silent client at an interval, and give up after three
// failures, as Redis does. An interval of 0 changes nothing.
func keepAlive(nc net.Conn, every time.Duration) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok || every <= 0 {
		return
	}
	config := net.KeepAliveConfig{Enable: true, Idle: every, Interval: max(every/3, time.Second), Count: 3}
	_ = tcp.SetKeepAliveConfig(config) // the connection works without it
}
