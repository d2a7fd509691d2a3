package server

import (
	"net"
	"testing"

	"mayfly/test/drill"
)

// TestAnyPort: all addresses get the same port, which is another one for each caller.
func TestAnyPort(t *testing.T) {
	t.Parallel()
	binds := []string{"127.0.0.1", "-192.0.2.1", "127.0.0.2"}
	first, err := listenTCP(binds, -1, 0)
	drill.Check(t, err)
	defer closeListeners(first)
	second, err := listenTCP(binds, -1, 0)
	drill.Check(t, err)
	defer closeListeners(second)
	if len(first) != 2 || portOf(first) == 0 || first[1].Addr().(*net.TCPAddr).Port != portOf(first) || portOf(second) == portOf(first) {
		t.Errorf("%v and %v", first, second)
	}
}
