package clustertest

import (
	"errors"
	"math/rand/v2"
	"time"
)

// ErrUnsupported means that this machine does not let the test make network namespaces.
var ErrUnsupported = errors.New("no network namespaces")

// Link is the quality of a link in one direction. The zero value loses nothing and is as fast as the machine.
type Link struct {
	Cut   bool
	Delay time.Duration // of each packet
	Loss  float64       // share of packets that are lost, 0 to 1
}

// loses reports whether the link loses the next packet.
func (l Link) loses() bool { return l.Cut || l.Loss > 0 && rand.Float64() < l.Loss }
