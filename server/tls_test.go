package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mayfly/server/config"
	"mayfly/test/drill"
)

// authority signs certificates for a test.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pool.AddCert(a.cert)
	return a
}

// sign makes a certificate and writes it and its key into files of that name. The first signs itself.
func (a *authority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template.SerialNumber = big.NewInt(1)
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(a.t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(a.t, err)
	must(a.t, os.WriteFile(a.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(a.t, os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(a.t, err)
	return cert, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

var must = drill.Check

// secureServer runs a server that speaks TLS. It returns its address and the configuration of a client with a
// certificate.
func secureServer(t testing.TB, authClients string) (s *Server, address string, known *tls.Config) {
	return secureServerOf(t, newFakeEngine(), authClients)
}

// secureServerOf is secureServer with an engine of the test.
func secureServerOf(t testing.TB, e executor, authClients string) (s *Server, address string, known *tls.Config) {
	return secureServerWith(t, func(*Server) executor { return e }, authClients)
}

// secureServerWith is secureServer with an engine for that server.
func secureServerWith(t testing.TB, newEngine func(*Server) executor, authClients string) (s *Server, address string, known *tls.Config) {
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	a.sign("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s = newTestServer(t, "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"),
		"--tls-ca-cert-file", a.file("ca.crt"), "--tls-auth-clients", authClients)
	config, err := tlsConfig(s.Settings())
	must(t, err)
	pair, err := tls.LoadX509KeyPair(a.file("client.crt"), a.file("client.key"))
	must(t, err)
	return s, s.run(t, newEngine(s), config), &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{pair}}
}

func dialTLS(t testing.TB, address string, config *tls.Config) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	must(t, err)
	config = config.Clone()
	config.ServerName = "127.0.0.1"
	return newClient(t, tls.Client(nc, config))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		authClients         string
		uncertifiedWelcomed bool
	}{{"yes", false}, {"optional", true}, {"no", true}} {
		t.Run(c.authClients, func(t *testing.T) {
			s, address, known := secureServer(t, c.authClients)
			client := dialTLS(t, address, known)
			client.send(command("PING") + command("ECHO", strings.Repeat("x", 100_000)) + command("QUIT"))
			client.expect("+PONG\r\n$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n+OK\r\n")
			client.expectEnd()

			unknown := &tls.Config{RootCAs: known.RootCAs}
			client = dialTLS(t, address, unknown)
			_, err := client.Write([]byte("PING\r\n"))
			if err == nil {
				_, err = client.r.Peek(1)
			}
			if welcomed := err == nil; welcomed != c.uncertifiedWelcomed {
				t.Errorf("a client without a certificate: %v", err)
			}
			old := known.Clone()
			old.MaxVersion = tls.VersionTLS11
			if err := dialTLS(t, address, old).Conn.(*tls.Conn).Handshake(); err == nil {
				t.Error("TLS 1.1 is accepted")
			}
			if s.Info().Rejected != 0 {
				t.Error("a failed handshake counts as rejected")
			}
		})
	}
}

// serverName is the name in the server's certificate for a client that connects now; "" if the client is
// refused.
func serverName(t *testing.T, address string, config *tls.Config) string {
	t.Helper()
	c := dialTLS(t, address, config)
	if _, err := c.Write([]byte(command("PING"))); err != nil {
		return ""
	}
	if _, err := c.r.Peek(1); err != nil {
		return ""
	}
	return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

// CONFIG SET renews certificates, and admits or refuses clients, while the server runs.
func TestTLSRenewal(t *testing.T) {
	t.Parallel()
	s, address, known := secureServer(t, "yes")
	set := func(pairs ...[2]string) error { return s.ConfigSet(pairs) }
	old := dialTLS(t, address, known)
	old.send(command("PING"))
	old.expect("+PONG\r\n")
	uncertified := &tls.Config{RootCAs: known.RootCAs}
	if serverName(t, address, uncertified) != "" {
		t.Error("a client without a certificate is welcome")
	}
	must(t, set([2]string{"tls-auth-clients", "optional"}))
	if serverName(t, address, uncertified) == "" {
		t.Error("a client without a certificate is not welcome")
	}

	// Renewed in place: the names of the files stay.
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	cert, key := s.Settings().TLSCertFile, s.Settings().TLSKeyFile
	must(t, os.Rename(a.file("server.crt"), cert))
	must(t, os.Rename(a.file("server.key"), key))
	renewed := &tls.Config{RootCAs: a.pool}
	if serverName(t, address, known) != "server" {
		t.Error("the files are read without being asked for")
	}
	must(t, set([2]string{"tls-cert-file", cert}, [2]string{"tls-key-file", key}))
	if serverName(t, address, renewed) != "server" {
		t.Error("the certificate is not renewed")
	}

	// What cannot be used changes nothing.
	err := set([2]string{"tls-key-file", a.file("ca.key")})
	const want = "ERR CONFIG SET failed (possibly related to argument 'tls-key-file') - Unable to update TLS configuration: cannot use tls-cert-file "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	if serverName(t, address, renewed) != "server" || s.Settings().TLSKeyFile != key {
		t.Error("a key that does not fit is in use")
	}
	old.send(command("PING"))
	old.expect("+PONG\r\n")
}

func TestTLSOptions(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{})
	must(t, os.WriteFile(a.file("junk"), []byte("junk"), 0o600))
	cert, key := a.file("server.crt"), a.file("server.key")
	for _, c := range []struct {
		cert, key, ca, auth string
		want                string
	}{
		{"", "", "", "no", "tls-port needs tls-cert-file and tls-key-file"},
		{cert, a.file("ca.key"), "", "no", "cannot use tls-cert-file " + cert},
		{a.file("none"), key, "", "no", "cannot use tls-cert-file " + a.file("none")},
		{cert, key, "", "yes", "tls-ca-cert-file is needed"},
		{cert, key, a.file("none"), "yes", "cannot read tls-ca-cert-file"},
		{cert, key, a.file("junk"), "optional", "tls-ca-cert-file " + a.file("junk") + " holds no certificate"},
		{cert, key, "", "no", ""},
	} {
		settings := &config.Settings{TLS: config.TLS{TLSCertFile: c.cert, TLSKeyFile: c.key, TLSCACertFile: c.ca, TLSAuthClients: c.auth}}
		_, err := tlsConfig(settings)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
