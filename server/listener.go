package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// listenTCP listens on a port of every address of binds, written as in Redis. "*" and "::*" are all addresses
// of IPv4 and IPv6. A negative port is one that is free on all of them. An address after "-" may be missing
// on this machine. backlog is how many connections may wait to be accepted; 0: as many as the system has it.
// After an error, which is one clear line, nothing is open.
func listenTCP(binds []string, port, backlog int) ([]net.Listener, error) {
	for range 10 { // a port that is free on the first address may be in use on another
		list, err := listenAll(binds, port, backlog)
		if port >= 0 || !errors.Is(err, syscall.EADDRINUSE) {
			return list, err
		}
	}
	return nil, errors.New("cannot listen: no port is free on all of the addresses " + strings.Join(binds, " "))
}

// portOf returns the TCP port of listeners of [listenTCP].
func portOf(list []net.Listener) int { return list[0].Addr().(*net.TCPAddr).Port }

// listenAll is one attempt of [listenTCP].
func listenAll(binds []string, port, backlog int) (_ []net.Listener, err error) {
	var list []net.Listener
	defer func() {
		if err != nil {
			closeListeners(list)
		}
	}()
	for _, bind := range binds {
		address, optional := strings.CutPrefix(bind, "-")
		if port < 0 && len(list) > 0 {
			port = portOf(list)
		}
		ln, err := listenOn(address, max(port, 0), backlog)
		switch {
		case err == nil:
			list = append(list, ln)
		case optional && isMissingAddress(err):
		default:
			return nil, fmt.Errorf("cannot listen on %s port %d: %w", address, port, listenCause(err))
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

// listenCause strips the place that package net adds to an error. Our own text names it.
func listenCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}

var umask sync.Mutex // protects the umask of the process while it is changed

// listenUnix listens on a socket file with these permissions; 0 admits only the owner. A file that a dead
// process left behind is replaced. A file that a process listens on, or that is no socket, is an error.
func listenUnix(path string, perm fs.FileMode) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("cannot listen on unix socket %s: %w", path, listenCause(err))
	}
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return fail(fmt.Errorf("its path has %d bytes: legal are at most %d", len(path), most))
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

// closeListeners closes listeners.
func closeListeners(list []net.Listener) {
	for _, ln := range list {
		_ = ln.Close() // nothing is lost with a listener
	}
}
