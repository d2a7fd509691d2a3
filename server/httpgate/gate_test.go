package httpgate

import (
	"errors"
	"net"
	"testing"

	"mayfly/test/drill"
)

var check = drill.Check

// announcing is a listener that tells when it has accepted a connection.
type announcing struct {
	net.Listener
	accepted chan struct{}
}

func (l announcing) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		close(l.accepted)
	}
	return nc, err
}

// A server ends although a connection waits for a place.
func TestEndWithoutPlace(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	few := NewListener(ln, 1)
	defer few.Close()
	for range 3 {
		nc, err := net.Dial("tcp", ln.Addr().String())
		check(t, err)
		defer nc.Close()
	}
	first, err := few.Accept()
	check(t, err)
	first.(*conn).work()
	waits := make(chan error)
	accept := func() {
		_, err := few.Accept()
		waits <- err
	}
	if few.takePlace() {
		t.Fatal("there is a place while a request is under way")
	}
	go accept()
	first.(*conn).rest()
	drill.Check(t, <-waits)
	if few.open != 1 || few.idle.Len() != 1 || first.Close() == nil {
		t.Errorf("%d connections are open, %d wait", few.open, few.idle.Len())
	}
	few.idle.Front().Value.(*conn).work()
	accepted := make(chan struct{})
	few.Listener = announcing{ln, accepted}
	go accept()
	<-accepted // it has a connection, and no place for it
	check(t, few.Close())
	if err := <-waits; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
}

// The host of the address is known, and any if the option says so.
func TestHostOfAddress(t *testing.T) {
	t.Parallel()
	if !NewHosts("metrics.example.org:9121", nil).has("metrics.example.org") || !NewHosts(":9121", []string{"*"}).has("any.example.org") {
		t.Error("the host of the address, or any host, is not known")
	}
}
