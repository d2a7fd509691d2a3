package tools

import (
	"net"
	"net/http/httptest"
	"testing"

	"mayfly/test/drill"
)

// TestServersThatRefuse: a server that cannot be spoken to is an error that names the option which helps.
func TestServersThatRefuse(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	address := secure.Listener.Addr().String()
	h.refused("", []string{address, "authority", "--cacert"}, "export", address, "--tls")
	h.refused("", []string{address, "--cacert"}, "import", "rediss://"+address+"/0", "--dir", h.path("other"))

	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	address = plain.Listener.Addr().String()
	h.refused("", []string{address, "leave out --tls"}, "export", address, "--tls")

	closing, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	t.Cleanup(func() { closing.Close() })
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 100))
			conn.Close()
		}
	}()
	address = closing.Addr().String()
	h.refused("", []string{address, "--tls", "rediss://"}, "export", address)
}
