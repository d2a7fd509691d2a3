package server

import (
	"crypto/tls"
	"maps"
	"net"
	"slices"

	"mayfly/commands/engine"
	"mayfly/server/config"
)

// CONFIG SET of port, tls-port and bind opens and closes listeners. Connections stay. Errors are in Redis'
// words; the log has the cause.
const (
	errListen = engine.Error("Unable to listen on this port. Check server logs.")
	errBind   = engine.Error("Failed to bind to specified addresses.")
)

// followListeners makes CONFIG SET of these options take effect.
func (s *Server) followListeners() {
	s.OnChange("port", func(changed *config.Settings) error {
		return s.changePort(changed, &changed.Port, false)
	})
	s.OnChange("tls-port", func(changed *config.Settings) error {
		if changed.TLSPort != 0 && s.tls.Load() == nil {
			secret, err := tlsConfig(changed)
			if err != nil {
				return engine.Error("Unable to update TLS configuration: " + err.Error())
			}
			s.tls.Store(secret)
		}
		return s.changePort(changed, &changed.TLSPort, true)
	})
	s.OnChange("bind", s.changeBind)
}

// changePort listens on another port, 0 for none, with or without TLS. It sets one that is auto. After an
// error nothing has changed.
func (s *Server) changePort(changed *config.Settings, port *int, secure bool) error {
	var fresh []net.Listener
	if *port != 0 {
		var err error
		if fresh, err = listenTCP(changed.Bind, *port, changed.TCPBacklog); err != nil {
			s.log.Warn().Err(err).Msg("CONFIG SET cannot change the port")
			return errListen
		}
		*port = portOf(fresh)
	}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.closeTCPLocked(secure)
	s.acceptAllLocked(fresh, secure)
	return nil
}

// changeBind listens on other addresses. The ports are the same, so the old listeners close first. After an
// error they are opened again.
func (s *Server) changeBind(changed *config.Settings) error {
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.closeTCPLocked(false)
	s.closeTCPLocked(true)
	err := s.listenAllLocked(changed.Bind, changed)
	if err == nil {
		return nil
	}
	s.log.Warn().Err(err).Msg("CONFIG SET cannot change the addresses")
	s.closeTCPLocked(false)
	if err := s.listenAllLocked(s.Settings().Bind, changed); err != nil {
		s.log.Error().Err(err).Msg("cannot listen any more on the addresses of before")
	}
	return errBind
}

// listenAllLocked listens on both ports of the settings. After an error there may be listeners of the first.
func (s *Server) listenAllLocked(bind []string, ports *config.Settings) error {
	for _, port := range []struct {
		number int
		secure bool
	}{{ports.Port, false}, {ports.TLSPort, true}} {
		if port.number == 0 {
			continue
		}
		fresh, err := listenTCP(bind, port.number, ports.TCPBacklog)
		if err != nil {
			return err
		}
		s.acceptAllLocked(fresh, port.secure)
	}
	return nil
}

// closeTCPLocked closes the TCP listeners with or without TLS.
func (s *Server) closeTCPLocked(secure bool) {
	for ln, secret := range s.listeners {
		if _, tcp := ln.Addr().(*net.TCPAddr); tcp && secure == (secret != nil) {
			_ = ln.Close() // nothing is lost with a listener
			delete(s.listeners, ln)
		}
	}
}

// acceptAllLocked begins to accept connections, unless the server stops.
func (s *Server) acceptAllLocked(fresh []net.Listener, secure bool) {
	if s.stopping.Load() {
		closeListeners(fresh)
		return
	}
	var secret *tls.Config
	if secure {
		secret = s.tls.Load()
	}
	for _, ln := range fresh {
		s.listeners[ln] = secret
		s.acceptors.Go(func() { s.accept(ln, secure) })
	}
}

// closeListeners ends accepting connections for good. The server is stopping.
func (s *Server) closeListeners() {
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	closeListeners(slices.Collect(maps.Keys(s.listeners)))
}
