//go:build !linux

package clustertest

import (
	"context"
	"net"
	"os/exec"
)

// Clients is the host of the test itself.
const Clients = 0

// Network exists on Linux only.
type Network struct{}

// New returns ErrUnsupported.
func New(int) (*Network, error) { return nil, ErrUnsupported }

// The methods are never called: there is no Network.

func (*Network) Addr(int) string                                        { return "" }
func (*Network) Start(int, *exec.Cmd) error                             { return ErrUnsupported }
func (*Network) Dial(context.Context, string, string) (net.Conn, error) { return nil, ErrUnsupported }
func (*Network) Set(_, _ int, _ Link)                                   {}
func (*Network) SetBoth(_, _ int, _ Link)                               {}
func (*Network) Isolate(int)                                            {}
func (*Network) Heal()                                                  {}
func (*Network) Close()                                                 {}
