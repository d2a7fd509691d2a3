package commands

import (
	"fmt"
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
)

var monitorCommand = Command{
	Name: "monitor", Summary: "Listen for all requests received by the server in real time", Group: "server", Since: "1.0.0",
	Arity: 1, Flags: Admin | NoScript | Loading | Stale,
	Differs: "A client that does not keep up is disconnected",
	Parse:   just(monitor),
}

// monitor makes the session one that is shown all commands. As in Redis, who monitors already gets no
// answer.
func monitor(x *Context) Reply {
	s := x.Session
	if s.multi.open {
		return Fail(errMonitorInMulti)
	}
	if s.monitoring {
		return Reply{}
	}
	h := &x.Engine.Hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Receiver.Hold()
	h.monitors = append(h.monitors, s)
	h.monitoring.Add(1)
	s.change(func() { s.monitoring = true })
	return OK
}

// stopMonitoring lets a session be shown no more commands.
func (h *Hub) stopMonitoring(s *Session) {
	if !s.monitoring {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	place := slices.Index(h.monitors, s)
	h.monitors = slices.Delete(h.monitors, place, place+1)
	h.monitoring.Add(-1)
	s.change(func() { s.monitoring = false })
}

// show shows a command that has run, at a moment in µs, to those who monitor.
func (h *Hub) show(s *Session, now int64, args []string) {
	line := Status(monitorLine(s, now, args))
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.monitoring {
		s.Receiver.Hold() // the command's own reply comes first
	}
	m := &Message{Reply: line}
	for _, other := range h.monitors {
		other.Receiver.Deliver(m)
	}
}

// monitorLine is what MONITOR shows of a command that a session has given: when (µs), in which database and
// from where.
func monitorLine(s *Session, now int64, args []string) string {
	addr := s.Addr
	if s.viaUnixSocket() {
		addr = "unix:" + strings.TrimSuffix(s.LAddr, ":0")
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%d.%06d [%s %s]", now/1e6, now%1e6, s.database, addr)
	for _, arg := range args {
		line.WriteByte(' ')
		redisfmt.WriteQuoted(&line, arg)
	}
	return line.String()
}
