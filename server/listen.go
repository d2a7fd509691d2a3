package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"mayfly/server/config"
)

// listen opens all listeners of the settings; those for TLS have its configuration. After an error, which is
// one clear line, nothing is open.
func listen(s *config.Settings) (_ map[net.Listener]*tls.Config, err error) {
	open := make(map[net.Listener]*tls.Config)
	defer func() {
		if err != nil {
			closeListeners(slices.Collect(maps.Keys(open)))
		}
	}()
	if s.Port != 0 {
		list, err := listenTCP(s.Bind, s.Port, s.TCPBacklog)
		if err != nil {
			return nil, advisePort(err, "--port")
		}
		for _, ln := range list {
			open[ln] = nil
		}
	}
	if s.TLSPort != 0 {
		config, err := tlsConfig(s)
		if err != nil {
			return nil, err
		}
		list, err := listenTCP(s.Bind, s.TLSPort, s.TCPBacklog)
		if err != nil {
			return nil, advisePort(err, "--tls-port")
		}
		for _, ln := range list {
			open[ln] = config
		}
	}
	if s.UnixSocket != "" {
		ln, err := listenUnix(s.UnixSocket, fs.FileMode(s.UnixSocketPerm))
		if err != nil {
			return nil, err
		}
		open[ln] = nil
	}
	if len(open) == 0 {
		return nil, errors.New("there is nothing to listen on: set port, tls-port or unixsocket")
	}
	return open, nil
}

// portsOf returns the TCP ports of listeners without and with TLS, 0 for none.
func portsOf(open map[net.Listener]*tls.Config) (port, tlsPort int) {
	for ln, secret := range open {
		tcp, ok := ln.Addr().(*net.TCPAddr)
		switch {
		case !ok: // a unix socket
		case secret != nil:
			tlsPort = tcp.Port
		default:
			port = tcp.Port
		}
	}
	return port, tlsPort
}

// advisePort adds to an error what to do about a port that is in use. option is the port's.
func advisePort(err error, option string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; stop the server there or choose another port with %s", err, option)
	}
	return err
}

// isLocal reports whether the address of a client is on this machine.
func isLocal(client net.Addr) bool {
	tcp, ok := client.(*net.TCPAddr)
	if !ok {
		return true // a unix socket
	}
	addr, ok := netip.AddrFromSlice(tcp.IP)
	return ok && addr.IsLoopback()
}

// addresses returns the client's address and our own as CLIENT LIST shows them.
func addresses(nc net.Conn) (remote, local string) {
	remote, local = nc.RemoteAddr().String(), nc.LocalAddr().String()
	if nc.LocalAddr().Network() == "unix" {
		remote, local = local+":0", local+":0"
	}
	return remote, local
}
