package transport

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

const testCluster = 0xc1

func init() { attemptPause = 10 * time.Millisecond }

var until = drill.Await

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

// node is a transport and what it has heard.
type node struct {
	*Transport
	l    *Listener
	logs *lines

	mu          sync.Mutex
	got         []*raftpb.Message
	unreachable int
	sent        []bool
	gone        map[uint64]bool
	expelled    int
	stores      []byte
	receive     func(ctx context.Context, r io.Reader) error // nil: into stores
}

func (n *node) lost() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unreachable
}

func (n *node) received() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.got)
}

// listen opens a listener on a free port.
func listen(t *testing.T, c *Credentials, hosts func() []string) (*Listener, *lines) {
	t.Helper()
	return listenWith(t, ListenOptions{Credentials: c, Hosts: hosts})
}

func listenWith(t *testing.T, o ListenOptions) (*Listener, *lines) {
	t.Helper()
	logs := &lines{}
	o.Addr, o.Log = "127.0.0.1:0", zerolog.New(logs)
	l, err := Listen(o)
	drill.Check(t, err)
	t.Cleanup(func() { l.Close() })
	return l, logs
}

// begin makes a transport on a listener.
func begin(t *testing.T, l *Listener, logs *lines, cluster, id uint64) *node {
	t.Helper()
	n := &node{l: l, logs: logs, gone: map[uint64]bool{}}
	var err error
	n.Transport, err = New(Options{
		Listener: l, Cluster: cluster, ID: id, Log: zerolog.New(logs),
		Deliver: func(m *raftpb.Message) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.got = append(n.got, m)
			return nil
		},
		Unreachable: func(uint64) { n.mu.Lock(); n.unreachable++; n.mu.Unlock() },
		StoresSent:  func(_ uint64, ok bool) { n.mu.Lock(); n.sent = append(n.sent, ok); n.mu.Unlock() },
		Removed:     func(id uint64) bool { n.mu.Lock(); defer n.mu.Unlock(); return n.gone[id] },
		Expelled:    func() { n.mu.Lock(); n.expelled++; n.mu.Unlock() },
		ReceiveStores: func(ctx context.Context, _ *raftpb.Message, _ int64, r io.Reader) error {
			if n.receive != nil {
				return n.receive(ctx, r)
			}
			b, err := io.ReadAll(r)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.stores = b
			return err
		},
	})
	drill.Check(t, err)
	t.Cleanup(func() { n.Transport.Close() })
	return n
}

// pair makes two nodes with ids 1 and 2 that know each other.
func pair(t *testing.T, c *Credentials) (a, b *node) {
	t.Helper()
	la, logsA := listen(t, c, nil)
	lb, logsB := listen(t, c, nil)
	a, b = begin(t, la, logsA, testCluster, 1), begin(t, lb, logsB, testCluster, 2)
	a.Add(2, lb.Addr())
	b.Add(1, la.Addr())
	return a, b
}

func message(from, to uint64, kind raftpb.MessageType, text string) *raftpb.Message {
	m := &raftpb.Message{From: &from, To: &to, Type: kind.Enum(), Term: new(uint64(3)), Index: new(uint64(1)), LogTerm: new(uint64(3))}
	if text != "" {
		m.Entries = []*raftpb.Entry{{Term: new(uint64(3)), Index: new(uint64(2)), Data: []byte(text)}}
	}
	return m
}

func snapshot(from, to, index uint64) *raftpb.Message {
	m := message(from, to, raftpb.MsgSnap, "")
	m.Snapshot = &raftpb.Snapshot{Data: []byte("state"), Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: new(uint64(3)), ConfState: &raftpb.ConfState{Voters: []uint64{1, 2}}}}
	return m
}

func secret(t *testing.T, text string) *Credentials {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	drill.Check(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := Load(CredentialOptions{SecretFile: file, Dir: filepath.Join(t.TempDir(), "tls")})
	drill.Check(t, err)
	return c
}

const someSecret = "0123456789abcdef0123456789abcdef\n"

// authority is a CA of tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	drill.Check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	drill.Check(t, err)
	cert, err := x509.ParseCertificate(der)
	drill.Check(t, err)
	return &authority{t, cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes the files of a certificate for a host into dir: node.crt, node.key and ca.crt.
func (a *authority) issue(dir, host string, usages ...x509.ExtKeyUsage) CredentialOptions {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	drill.Check(a.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: usages}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	drill.Check(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	drill.Check(a.t, err)
	o := CredentialOptions{CertFile: filepath.Join(dir, "node.crt"), KeyFile: filepath.Join(dir, "node.key"), CACertFile: filepath.Join(dir, "ca.crt")}
	for path, content := range map[string][]byte{
		o.CertFile:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		o.KeyFile:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		o.CACertFile: a.pem,
	} {
		drill.Check(a.t, os.WriteFile(path+".new", content, 0o600))
		drill.Check(a.t, os.Rename(path+".new", path))
	}
	return o
}

var bothUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

func load(t *testing.T, o CredentialOptions) *Credentials {
	t.Helper()
	c, err := Load(o)
	drill.Check(t, err)
	return c
}

func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	_, _ = w.Write(b)
}
