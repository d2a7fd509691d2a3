package server

import (
	"io"
	"net"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestLogTellsWhatClientsDoWrong: the log says why clients are disconnected, and who changes what, but does
// not drown in it.
func TestLogTellsWhatClientsDoWrong(t *testing.T) {
	harness.Parallel(t)
	cert, key := harness.SelfSigned(t)
	host, port := harness.Host(t), harness.FreePort(t)
	p := harness.Start(t, t.TempDir(), "--bind", "127.0.0.1", host, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no", "--max-value-size", "2kb")
	plain, secret := "127.0.0.1:"+p.Port, net.JoinHostPort(host, port)
	send := func(address, text string) {
		c, err := net.Dial("tcp", address)
		drill.Check(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c) // until the server ends it
	}
	for range 50 {
		send(plain, "*2\r\n$4\r\nECHO\r\n$99999999\r\n")
		send(plain, "*x\r\n")
		send(secret, "nonsense in plain text\r\n")
	}
	db := p.Client()
	drill.Check(t, db.ConfigSet(t.Context(), "requirepass", "secret").Err())
	other := p.Client()
	for range 5 {
		_ = other.Do(t.Context(), "AUTH", "guess").Err()
	}
	for _, text := range []string{
		"legal up to 2048 bytes (max-value-size)", "broke the protocol", "TLS handshake failed", "a wrong password", "CONFIG SET changed options",
		"requirepass (redacted)",
	} {
		harness.WaitFor(t, "the log to say "+text, func() bool { return strings.Contains(p.Log.String(), text) })
		if n := strings.Count(p.Log.String(), text); n > 25 {
			t.Errorf("the log says %q %d times", text, n)
		}
	}
	if strings.Contains(p.Log.String(), "guess") || strings.Contains(p.Log.String(), `"secret`) {
		t.Error("the log tells passwords")
	}
}
