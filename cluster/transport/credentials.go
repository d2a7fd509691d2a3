package transport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mayfly/expiry/clock"
	"mayfly/vfs"
)

// CredentialOptions names the files of the options cluster-cert-file, cluster-key-file, cluster-ca-cert-file
// and cluster-secret-file.
type CredentialOptions struct {
	CertFile, KeyFile, CACertFile string
	SecretFile                    string
	Dir                           string   // for files that are made of the secret, DIR/cluster/tls
	Addrs                         []string // of all nodes; without credentials they must be on loopback
}

// minSecret is the length in bytes of the shortest secret.
const minSecret = 32

// Credentials is how nodes know each other: mutual TLS. Certificates are read again when their files change.
// Safe for concurrent use.
type Credentials struct {
	certFile, keyFile, caFile string
	name                      string // that each certificate must be valid for; empty: the host of its node

	mu       sync.Mutex
	now      *material
	stamps   [3]stamp
	looked   time.Duration // when the files were looked at last
	complain error         // of the last look
}

// material is what the files hold.
type material struct {
	cert    tls.Certificate
	roots   *x509.CertPool
	rootPEM []byte
}

// stamp identifies the state of a file that was read.
type stamp struct {
	size    int64
	changed time.Time
}

// Load checks and reads the files. It returns nil without files, if all addresses are on loopback.
func Load(o CredentialOptions) (*Credentials, error) {
	files := slices.DeleteFunc([]string{o.CertFile, o.KeyFile, o.CACertFile}, func(path string) bool { return path == "" })
	switch {
	case len(files) > 0 && o.SecretFile != "":
		return nil, errors.New("cluster-secret-file and cluster-cert-file exclude each other")
	case len(files) == 3:
		c := &Credentials{certFile: o.CertFile, keyFile: o.KeyFile, caFile: o.CACertFile}
		return c, c.load()
	case len(files) > 0:
		return nil, errors.New("cluster-cert-file, cluster-key-file and cluster-ca-cert-file need each other")
	case o.SecretFile != "":
		return fromSecret(o.SecretFile, o.Dir)
	}
	for _, addr := range o.Addrs {
		if !onLoopback(addr) {
			return nil, fmt.Errorf("%s is not an address of the loopback interface: set cluster-cert-file, cluster-key-file and "+
				"cluster-ca-cert-file, or cluster-secret-file", addr)
		}
	}
	return nil, nil
}

// onLoopback reports whether host:port is on this machine alone.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// secretName is the name in the certificates that are made of a secret. Addresses do not matter: who has the
// secret is a node.
const secretName = "node.cluster.internal"

// fromSecret derives the CA from the secret, which is the same at all nodes, and issues a certificate for
// this node. The CA's key stays in memory and is dropped.
func fromSecret(path, dir string) (*Credentials, error) {
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read cluster-secret-file: %w", err)
	}
	secret = bytes.TrimSpace(secret)
	if len(secret) < minSecret {
		return nil, fmt.Errorf("cluster-secret-file %s has %d bytes; at least %d are needed", path, len(secret), minSecret)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "mayfly cluster CA, version 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	caKey := ed25519.NewKeyFromSeed(seed)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: always, NotAfter: forever,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	node := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "node"}, DNSNames: []string{secretName}, NotBefore: always, NotAfter: forever,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	nodeDER, err := x509.CreateCertificate(rand.Reader, node, ca, public, caKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	// rafthttp takes files only.
	c := &Credentials{name: secretName, certFile: filepath.Join(dir, "node.crt"), keyFile: filepath.Join(dir, "node.key"),
		caFile: filepath.Join(dir, "ca.crt")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path, kind string
		der        []byte
	}{{c.certFile, "CERTIFICATE", nodeDER}, {c.keyFile, "PRIVATE KEY", key}, {c.caFile, "CERTIFICATE", caDER}} {
		if err := vfs.WriteFile(vfs.OS, f.path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})); err != nil {
			return nil, err
		}
	}
	return c, c.load()
}

// Certificates that are made of a secret hold whatever the clocks of the machines say.
var (
	always  = time.Unix(0, 0)
	forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// load reads the files. c.mu must be held, or c be new.
func (c *Credentials) load() error {
	stamps, err := c.stat()
	if err != nil {
		return err
	}
	m := &material{}
	if m.cert, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err != nil {
		return fmt.Errorf("cannot use cluster-cert-file %s with cluster-key-file %s: %w", c.certFile, c.keyFile, err)
	}
	if m.rootPEM, err = os.ReadFile(c.caFile); err != nil {
		return fmt.Errorf("cannot read cluster-ca-cert-file: %w", err)
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM(m.rootPEM) {
		return fmt.Errorf("cluster-ca-cert-file %s holds no certificate in PEM", c.caFile)
	}
	c.now, c.stamps = m, stamps
	return nil
}

func (c *Credentials) stat() (stamps [3]stamp, err error) {
	for i, path := range []string{c.certFile, c.keyFile, c.caFile} {
		fi, err := os.Stat(path)
		if err != nil {
			return stamps, fmt.Errorf("cannot read %s: %w", [...]string{"cluster-cert-file", "cluster-key-file", "cluster-ca-cert-file"}[i], err)
		}
		stamps[i] = stamp{fi.Size(), fi.ModTime()}
	}
	return stamps, nil
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

// current returns the material, read again if a file has changed. The error of files that cannot be used is
// returned once; the material before stays in use.
func (c *Credentials) current() (*material, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.Monotonic()
	if c.looked != 0 && now-c.looked < lookEvery {
		return c.now, nil
	}
	c.looked = now
	stamps, err := c.stat()
	if err == nil && stamps != c.stamps {
		err = c.load()
	}
	if err != nil && c.complain != nil && err.Error() == c.complain.Error() {
		return c.now, nil
	}
	c.complain = err
	return c.now, err
}

// server returns the configuration for connections from other nodes. hosts returns those of the nodes, nil:
// all are.
func (c *Credentials) server(hosts func() []string, failed func(error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m, err := c.current()
			if err != nil {
				failed(err)
			}
			return &tls.Config{
				MinVersion:             tls.VersionTLS13,
				Certificates:           []tls.Certificate{m.cert},
				ClientAuth:             tls.RequireAndVerifyClientCert,
				ClientCAs:              m.roots,
				NextProtos:             []string{"http/1.1"},
				SessionTicketsDisabled: true, // each connection shows its certificate
				VerifyConnection: func(state tls.ConnectionState) error {
					return c.checkName(state.PeerCertificates[0], hosts)
				},
			}, nil
		},
	}
}

// anotherSecret is what is wrong with a node whose cluster-secret-file differs.
const anotherSecret = "has another cluster secret: cluster-secret-file must be the same on all nodes"

// differs reports whether a handshake has failed because the secrets of the two nodes differ: one of them
// does not know the CA of the other. Nothing else can be wrong with certificates that are made of a secret.
func (c *Credentials) differs(err error) bool {
	if c.name == "" { // of files, whose owner knows certificates
		return false
	}
	var unknown x509.UnknownAuthorityError
	var remote *net.OpError // its cause is of a type that crypto/tls does not export
	return errors.As(err, &unknown) ||
		errors.As(err, &remote) && remote.Op == "remote error" && slices.Contains(unknownToRemote, remote.Err.Error())
}

// unknownToRemote is what the other side says of a certificate whose CA it does not know (RFC 8446, 6.2):
// bad_certificate or unknown_ca.
var unknownToRemote = []string{tls.AlertError(42).Error(), tls.AlertError(48).Error()}

// checkName checks the name in the certificate of a node that has connected.
func (c *Credentials) checkName(cert *x509.Certificate, hosts func() []string) error {
	if c.name != "" {
		return cert.VerifyHostname(c.name)
	}
	if hosts == nil {
		return nil
	}
	known := hosts()
	for _, host := range known {
		if cert.VerifyHostname(host) == nil {
			return nil
		}
	}
	return fmt.Errorf("the certificate of %q is for no node of the cluster: %s", cert.Subject.String(), strings.Join(known, ", "))
}

// client returns the configuration for a connection to the node at addr.
func (c *Credentials) client(addr string, failed func(error)) *tls.Config {
	m, err := c.current()
	if err != nil {
		failed(err)
	}
	name := c.name
	if name == "" {
		name, _, _ = net.SplitHostPort(addr) // dialled already
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{m.cert},
		RootCAs:      m.roots,
		ServerName:   name,
		NextProtos:   []string{"http/1.1"},
	}
}
