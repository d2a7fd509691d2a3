package engine

import (
	"fmt"
	"slices"
	"strings"

	"mayfly/redisfmt"
)

// StartMonitoring begins MONITOR for a session.
func (b *Broker) StartMonitoring(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Receiver.Hold()
	b.monitors = append(b.monitors, s)
	b.MonitoringSessions.Add(1)
	s.Update(func() { s.Monitoring = true })
}

// stopMonitoring ends MONITOR for a session.
func (b *Broker) stopMonitoring(s *Session) {
	if !s.Monitoring {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	index := slices.Index(b.monitors, s)
	b.monitors = slices.Delete(b.monitors, index, index+1)
	b.MonitoringSessions.Add(-1)
	s.Update(func() { s.Monitoring = false })
}

// showCommand shows a command that has run at a time in µs to all sessions of MONITOR.
func (b *Broker) showCommand(s *Session, now int64, args []string) {
	b.show(s, monitorLine(s, now, args))
}

// show shows a line about a command of a session to all sessions of MONITOR.
func (b *Broker) show(s *Session, text string) {
	line := Status(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Monitoring {
		s.Receiver.Hold() // the command's own reply comes first
	}
	m := &Message{Reply: line}
	for _, other := range b.monitors {
		other.Receiver.Deliver(m)
	}
}

// monitorLine is the line of MONITOR for a session's command: time (µs), database, address and arguments.
func monitorLine(s *Session, now int64, args []string) string {
	addr := s.Addr
	if s.viaUnixSocket() {
		addr = "unix:" + strings.TrimSuffix(s.LAddr, ":0")
	}
	return monitorLineOf(addr, s, now, args)
}

// monitorLineOf is monitorLine with another word for the address: "lua" for commands of scripts.
func monitorLineOf(addr string, s *Session, now int64, args []string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%d.%06d [%d %s]", now/1e6, now%1e6, s.DatabaseNumber, addr)
	for _, arg := range args {
		line.WriteByte(' ')
		redisfmt.WriteQuoted(&line, arg)
	}
	return line.String()
}

// IsSecretOption reports whether the value of an option, in any case, is a password, which no listing of
// commands may show.
func IsSecretOption(option string) bool { return redisfmt.EqualFold(option, "requirepass") }

// redacted returns the arguments of a command without its secrets, for MONITOR and SLOWLOG.
func redacted(r *Row, args []string) []string {
	if r.Secrets == nil {
		return args
	}
	shown := slices.Clone(args)
	for _, i := range r.Secrets(args) {
		if i < len(shown) {
			shown[i] = "(redacted)"
		}
	}
	return shown
}

// showScriptCommand shows a command that a script runs at a time in µs to all sessions of MONITOR.
func (b *Broker) showScriptCommand(s *Session, now int64, args []string) {
	b.show(s, monitorLineOf("lua", s, now, args))
}
