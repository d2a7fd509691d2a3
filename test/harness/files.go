package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mayfly/test/drill"
)

// WriteFile writes a file into a folder of the test and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	drill.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// SelfSigned makes a certificate for 127.0.0.1 and more addresses, which is its own CA, and its key. It
// returns the paths of both.
func SelfSigned(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	addresses := []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, host := range hosts {
		addresses = append(addresses, net.ParseIP(host))
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	drill.Check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: addresses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	signed, err1 := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	encoded, err2 := x509.MarshalPKCS8PrivateKey(private)
	drill.Check(t, err1, err2)
	return WriteFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))),
		WriteFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}
