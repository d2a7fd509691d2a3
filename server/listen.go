package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"mayfly/server/config"
)

// listen opens all listeners of the settings; those for TLS have its configuration. After an error, which is one
// clear line, nothing is open.
func listen(s *config.Settings) (_ map[net.Listener]*tls.Config, err error) {
	open := make(map[net.Listener]*tls.Config)
	defer func() {
		if err != nil {
			closeAll(slices.Collect(maps.Keys(open)))
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

// advisePort adds to an error what to do about a port that is in use. option is the port's.
func advisePort(err error, option string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; stop the server there or choose another port with %s", err, option)
	}
	return err
}

// listenTCP listens on a port of every address of binds, written as in Redis. "*" and "::*" are all addresses of
// IPv4 and IPv6. An address after "-" may be missing on this machine. After an error, which is one clear line,
// nothing is open.
func listenTCP(binds []string, port, backlog int) (_ []net.Listener, err error) {
	var list []net.Listener
	defer func() {
		if err != nil {
			closeAll(list)
		}
	}()
	for _, bind := range binds {
		address, optional := strings.CutPrefix(bind, "-")
		ln, err := listenOn(address, port, backlog)
		switch {
		case err == nil:
			list = append(list, ln)
		case optional && isMissingAddress(err):
		default:
			return nil, fmt.Errorf("cannot listen on %s port %d: %w", address, port, cause(err))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cannot listen on port %d: this machine has none of the addresses %s", port, strings.Join(binds, " "))
	}
	return list, nil
}

func listenOn(address string, port, backlog int) (net.Listener, error) {
	network, host := "tcp4", address
	switch {
	case address == "*":
		host = "0.0.0.0"
	case address == "::*":
		network, host = "tcp6", "::"
	case strings.Contains(address, ":"):
		network = "tcp6"
	}
	// The listener's own keepalive is off: the option may change, and applies to each accepted connection.
	config := net.ListenConfig{KeepAlive: -1}
	ln, err := config.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	if err := setBacklog(ln.(*net.TCPListener), backlog); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// setBacklog sets how many connections may wait to be accepted. Package net offers no choice, but listening
// again on the same socket changes it.
func setBacklog(ln *net.TCPListener, backlog int) error {
	if backlog <= 0 {
		return nil
	}
	raw, err := ln.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) })
	return cmp.Or(err, failed)
}

// isMissingAddress reports whether listening failed because the machine lacks the address or its family.
func isMissingAddress(err error) bool {
	for _, missing := range []error{syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENOPROTOOPT} {
		if errors.Is(err, missing) {
			return true
		}
	}
	return false
}

// cause strips the place that package net adds to an error. Our own text names it.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}

var umask sync.Mutex // protects the umask of the process while it is changed

// listenUnix listens on a socket file with these permissions; 0 admits only the owner. A file that a dead process
// left behind is replaced. A file that a process listens on, or that is no socket, is an error.
func listenUnix(path string, perm fs.FileMode) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("cannot listen on unix socket %s: %w", path, cause(err))
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return fail(errors.New("the file exists and is not a socket"))
		}
		nc, err := net.Dial("unix", path)
		if err == nil {
			return fail(errors.Join(errors.New("another process listens on it"), nc.Close()))
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fail(err)
		}
		if err := os.Remove(path); err != nil {
			return fail(err)
		}
	}
	umask.Lock()
	old := syscall.Umask(0o077)
	ln, err := net.Listen("unix", path)
	syscall.Umask(old)
	umask.Unlock()
	if err != nil {
		return fail(err)
	}
	if perm != 0 {
		if err := os.Chmod(path, perm); err != nil {
			return fail(errors.Join(err, ln.Close()))
		}
	}
	return ln, nil
}

func closeAll(list []net.Listener) {
	for _, ln := range list {
		_ = ln.Close() // nothing is lost with a listener
	}
}

// isLocal reports whether the address of a client is on this machine.
func isLocal(client net.Addr) bool {
	tcp, ok := client.(*net.TCPAddr)
	if !ok {
		return true // a unix socket
	}
	addr, ok := netip.AddrFromSlice(tcp.IP)
	return ok && addr.Unmap().IsLoopback()
}

// addresses returns the client's address and our own as CLIENT LIST shows them.
func addresses(nc net.Conn) (remote, local string) {
	remote, local = nc.RemoteAddr().String(), nc.LocalAddr().String()
	if nc.LocalAddr().Network() == "unix" {
		remote, local = local+":0", local+":0"
	}
	return remote, local
}
