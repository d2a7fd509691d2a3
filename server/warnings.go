package server

import (
	"errors"
	"fmt"

	"mayfly/expiry/clock"
	"mayfly/server/resp"

	"github.com/rs/zerolog"
)

// warnings limit what the log says about clients: each kind once a second at most by default, with the number
// of those left out.
type warnings struct {
	accept, attack, http, violation, size, handshake, denied, full, memory, evicted, unauthenticated, room clock.LogLimiter
}

// warnClose logs why a connection has ended, if it is worth a warning.
func (s *Server) warnClose(c *conn, err error) {
	var violation resp.ProtocolError
	var handshake handshakeError
	switch {
	case err == errAttack:
		s.warn(&s.warnings.attack, c.session.Addr, nil,
			"possible attack: a client sent POST or Host: as a command, as a web page does that makes a browser connect; connection closed")
	case err == errHTTP:
		s.warn(&s.warnings.http, c.session.Addr, nil,
			"a client sent a request in HTTP, as a browser, curl or a health check does, and was disconnected: this port speaks the Redis protocol; web-addr and metrics-addr serve HTTP")
	case err == resp.ErrBulkLength, err == resp.ErrCommandLength:
		s.warn(&s.warnings.size, c.session.Addr, err,
			fmt.Sprintf("a client was disconnected because it sent a value or command that is too large, or framed wrongly: values are legal up to %d bytes (max-value-size), commands up to client-query-buffer-limit", s.MaxValueSize()))
	case errors.As(err, &violation):
		s.warn(&s.warnings.violation, c.session.Addr, err, "a client was disconnected because it broke the protocol")
	case errors.As(err, &handshake):
		s.warn(&s.warnings.handshake, c.session.Addr, handshake.error, "a TLS handshake failed")
	case err == errDenied:
		s.warn(&s.warnings.denied, c.session.Addr, err, "a client from another machine was refused: set a password, or protected-mode no")
	case err == errAuthTimeout:
		s.warn(&s.warnings.unauthenticated, c.session.Addr, nil, "a client was disconnected because it gave no password in time: see auth-timeout")
	case err == resp.ErrClientMemory:
		s.warn(&s.warnings.memory, c.session.Addr, err, "a client was disconnected because all clients together hold too much memory: see maxmemory-clients")
	}
}

// handshakeError is why a TLS handshake failed.
type handshakeError struct{ error }

// warn logs a warning about the client at addr, unless there are too many of its kind.
func (s *Server) warn(limit *clock.LogLimiter, addr string, err error, text string) {
	if line := s.limited(limit, zerolog.WarnLevel); line != nil {
		line = line.Str("addr", addr)
		if err != nil {
			line = line.Str("why", err.Error())
		}
		line.Msg(text)
	}
}

// limited begins a line of the log; nil if there are too many of its kind.
func (s *Server) limited(limit *clock.LogLimiter, level zerolog.Level) *zerolog.Event {
	ok, skipped := limit.Allow()
	if !ok {
		return nil
	}
	line := s.log.WithLevel(level)
	if skipped > 0 {
		line = line.Int("suppressed", skipped)
	}
	return line
}
