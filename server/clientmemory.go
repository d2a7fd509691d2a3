package server

import (
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/server/config"

	"github.com/rs/zerolog"
)

// limitClientMemory puts the limit on the memory of all clients together (maxmemory-clients) into force, also
// when CONFIG SET changes it.
func (s *Server) limitClientMemory() {
	s.clients.Evicted = func(session *engine.Session, held int) {
		if line := s.limited(&s.warnings.evicted, zerolog.WarnLevel); line != nil {
			line.Int64("client", session.ID).Str("addr", session.Addr).Int("bytes", held).
				Msg("a client was disconnected because all clients together hold too much memory, and it the most: see maxmemory-clients")
		}
		session.Receiver.(*conn).kill()
	}
	s.clients.SetLimit(s.Settings().ClientMemoryLimit())
	for _, option := range []string{"maxmemory-clients", "maxmemory"} {
		s.OnChange(option, func(changed *config.Settings) error {
			s.clients.SetLimit(changed.ClientMemoryLimit())
			return nil
		})
	}
}

// chargeReply charges a large reply to its client for as long as sending it takes, and returns how much. It
// counts whole: what is not computed for it shares memory with an item, but an overwritten item is held by
// the reply alone. One reply may be larger than the limit: the client gets it if nobody with as much asks
// meanwhile.
func (c *conn) chargeReply(r *engine.Reply) int { return c.session.Memory.Charge(replySize(r)) }

// replySize is about how many bytes a reply keeps in memory. The same string several times in a row, as in
// an MGET of one key, counts once.
func replySize(r *engine.Reply) int {
	size := int(unsafe.Sizeof(*r)) + len(r.Str)
	if r.Kind == engine.KindText {
		size += r.Text.Held
	}
	for i := range r.Elems {
		e := &r.Elems[i]
		if size += replySize(e); i > 0 && unsafe.StringData(e.Str) == unsafe.StringData(r.Elems[i-1].Str) {
			size -= len(e.Str)
		}
	}
	return size
}
