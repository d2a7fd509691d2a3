package server

import (
	"unsafe"

	"mayfly/commands"
	"mayfly/server/config"
)

// boundClients puts the limit on what all clients together hold (maxmemory-clients) into force, and any
// other that CONFIG SET makes of it.
func (s *Server) boundClients() {
	var limiter commands.LogLimiter
	s.clients.Evicted = func(session *commands.Session, held int) {
		if ok, _ := limiter.Allow(); ok {
			s.log.Warn().Int64("client", session.ID).Str("addr", session.Addr).Int("bytes", held).
				Msg("a client was disconnected because all of them together hold too much memory, and it the most: see maxmemory-clients")
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

// holdReply puts a big reply on the client's account for as long as it takes to send it, and returns
// with how much. One alone may be larger than the limit: what is in it are mostly items, which are not
// copied, so that a client may well ask for that if it takes it in time. So none counts for more than
// a part of the limit, which also keeps whoever asks next from being the one who holds most.
func (c *conn) holdReply(r *commands.Reply) int {
	const most = 32 // a part in so many of the limit
	size := int64(weight(r))
	if limit := c.server.Settings().ClientMemoryLimit(); limit > 0 {
		size = min(size, limit/most)
	}
	return c.session.Memory.Charge(int(size))
}

// weight is about how many bytes a reply keeps in memory. The same string several times in a row, as in
// an MGET of one key, counts once.
func weight(r *commands.Reply) int {
	size := int(unsafe.Sizeof(*r)) + len(r.Str)
	for i := range r.Elems {
		e := &r.Elems[i]
		if size += weight(e); i > 0 && unsafe.StringData(e.Str) == unsafe.StringData(r.Elems[i-1].Str) {
			size -= len(e.Str)
		}
	}
	return size
}
