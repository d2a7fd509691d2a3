package server

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"mayfly/server/config"
	"mayfly/server/web"
)

// pageBackend is the [web.Backend] of a server: the page is a client of the server itself.
type pageBackend struct{ *Server }

var errNotServing = errors.New("the server serves no clients yet, or no more of them: see maxclients")

// Open returns the client's end of a connection that a goroutine of its own serves.
func (b pageBackend) Open(addr, user string, known bool) (net.Conn, error) {
	if !b.started.Load() {
		return nil, errNotServing
	}
	near, far := net.Pipe()
	c := b.register(far, origin{remote: addr, local: b.web.Addr().String(), places: b.mostClients(), inner: true, known: known})
	if c == nil {
		b.rejected.Add(1)
		return nil, errNotServing
	}
	b.total.Add(1)
	c.session.SetPage()
	if known {
		c.session.SetUser(user)
	}
	go func() {
		defer b.serving.Done()
		c.run(c.serveLoop)
	}()
	return near, nil
}

// NeedsLogin reports whether a client begins without a user.
func (b pageBackend) NeedsLogin() bool { return b.Users().Table().NeedsLogin() }

// Proof returns what changes with the passwords of a user; false if the user may not log in.
func (b pageBackend) Proof(user string) (proof string, ok bool) {
	u := b.Users().Table().User(user)
	if u == nil || !u.On() {
		return "", false
	}
	return strings.Join(append(slices.Clone(u.Hashes()), strconv.FormatBool(u.NoPass())), " "), true
}

// Refusal says why a user may not run a command in a container.
func (b pageBackend) Refusal(user, container string, words []string) string {
	if !b.started.Load() {
		return "command"
	}
	return b.engine.Refusal(user, container, words)
}

// Rights returns a value that is another one after each change of the user.
func (b pageBackend) Rights(user string) any { return b.Users().Table().User(user) }

// Denies reports whether the protected mode refuses a client at an address.
func (b pageBackend) Denies(addr net.Addr) bool { return b.denies(addr) }

func (s *Server) pageOptions(o *config.Settings) web.Options {
	options := web.Options{Address: o.WebAddr, Hosts: o.WebHosts, ReadOnly: o.WebReadOnly}
	if o.TLSPort != 0 {
		options.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: s.pageTLS}
	}
	return options
}

// PageURL is where browsers find the page; empty if there is none. The server must listen.
func (s *Server) PageURL() string {
	switch {
	case s.web == nil:
		return ""
	case s.Settings().TLSPort != 0: // see pageOptions
		return "https://" + s.web.Addr().String() + "/"
	}
	return "http://" + s.web.Addr().String() + "/"
}

// pageTLS is the configuration of a connection of the page: that of clients, but browsers show no
// certificate.
func (s *Server) pageTLS(*tls.ClientHelloInfo) (*tls.Config, error) {
	clients := s.tls.Load()
	if clients == nil {
		return nil, errNotServing
	}
	c := clients.Clone()
	c.ClientAuth, c.NextProtos = tls.NoClientCert, []string{"http/1.1"}
	return c, nil
}
