package server

import (
	"time"

	"mayfly/commands"
)

// boundClients puts the limit on what all clients together hold (maxmemory-clients) into force, and any
// other that CONFIG SET makes of it.
func (s *Server) boundClients() {
	log := occasional{every: time.Second}
	s.clients.Evicted = func(session *commands.Session, held int) {
		if log.now() {
			s.log.Warn().Int64("client", session.ID).Str("addr", session.Addr).Int("bytes", held).
				Msg("a client was disconnected because all of them together hold too much memory, and it the most: see maxmemory-clients")
		}
		session.Receiver.(*conn).kill()
	}
	s.clients.SetLimit(s.Settings().MaxMemoryClients)
	s.OnChange("maxmemory-clients", func(changed *Settings) error {
		s.clients.SetLimit(changed.MaxMemoryClients)
		return nil
	})
}
