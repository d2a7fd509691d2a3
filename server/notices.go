package server

import (
	"errors"
	"fmt"

	"mayfly/commands"
	"mayfly/server/resp"
)

// notices tell the log what clients do wrong and what is done about it: each kind once a second at most,
// with how many like it have gone untold.
type notices struct{ violation, value, handshake, denied, full, memory commands.LogLimiter }

// notice tells why a connection has ended, if that is worth telling.
func (s *Server) notice(c *conn, err error) {
	var violation resp.ProtocolError
	var handshake handshakeError
	switch {
	case err == resp.ErrBulkLength, err == resp.ErrCommandLength:
		s.warn(&s.notices.value, c.session.Addr, err,
			fmt.Sprintf("a client was disconnected because it sent a value or command that is too large, or framed wrongly: values are legal up to %d bytes (max-value-size)", s.MaxValueSize()))
	case errors.As(err, &violation):
		s.warn(&s.notices.violation, c.session.Addr, err, "a client was disconnected because it broke the protocol")
	case errors.As(err, &handshake):
		s.warn(&s.notices.handshake, c.session.Addr, handshake.error, "a TLS handshake failed")
	case err == errDenied:
		s.warn(&s.notices.denied, c.session.Addr, err, "a client from another machine was turned away: set a password, or protected-mode no")
	case err == resp.ErrClientMemory:
		s.warn(&s.notices.memory, c.session.Addr, err, "a client was disconnected because all of them together hold too much memory: see maxmemory-clients")
	}
}

// handshakeError is why a TLS handshake failed.
type handshakeError struct{ error }

func (s *Server) warn(limit *commands.LogLimiter, addr string, err error, text string) {
	ok, skipped := limit.Allow()
	if !ok {
		return
	}
	line := s.log.Warn().Str("addr", addr)
	if err != nil {
		line = line.Str("why", err.Error())
	}
	if skipped > 0 {
		line = line.Int("others_like_it", skipped)
	}
	line.Msg(text)
}
