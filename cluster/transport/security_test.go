package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// TestLoad has the mistakes in the options. Each error names what to set.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, "ca")
	good := ca.issue(dir, "127.0.0.1", bothUsages...)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		drill.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	short, long := file("short", strings.Repeat("x", 31)+"\n\n\n"), file("long", someSecret)
	for _, tt := range []struct {
		name string
		o    CredentialOptions
		want string // empty: legal
	}{
		{"loopback", CredentialOptions{Addrs: []string{"127.0.0.1:1", "[::1]:2", "localhost:3", "127.9.9.9:4"}}, ""},
		{"private network", CredentialOptions{Addrs: []string{"127.0.0.1:1", "10.0.0.1:2"}},
			"10.0.0.1:2 is not an address of the loopback interface: set cluster-cert-file, cluster-key-file and cluster-ca-cert-file, or cluster-secret-file"},
		{"any address", CredentialOptions{Addrs: []string{"0.0.0.0:1"}}, "0.0.0.0:1 is not an address of the loopback interface"},
		{"name", CredentialOptions{Addrs: []string{"node-a:1"}}, "node-a:1 is not an address of the loopback interface"},
		{"no port", CredentialOptions{Addrs: []string{"127.0.0.1"}}, "127.0.0.1 is not an address of the loopback interface"},
		{"files", good, ""},
		{"one file", CredentialOptions{CertFile: good.CertFile}, "need each other"},
		{"both", CredentialOptions{CertFile: good.CertFile, KeyFile: good.KeyFile, CACertFile: good.CACertFile, SecretFile: long}, "exclude each other"},
		{"missing file", CredentialOptions{CertFile: good.CertFile, KeyFile: "/no/key", CACertFile: good.CACertFile}, "cannot read cluster-key-file: stat /no/key"},
		{"wrong key", CredentialOptions{CertFile: good.CertFile, KeyFile: good.CACertFile, CACertFile: good.CACertFile}, "cannot use cluster-cert-file"},
		{"no CA", CredentialOptions{CertFile: good.CertFile, KeyFile: good.KeyFile, CACertFile: long}, "holds no certificate in PEM"},
		{"short secret", CredentialOptions{SecretFile: short, Dir: dir}, "has 31 bytes; at least 32 are needed"},
		{"no secret", CredentialOptions{SecretFile: "/no/secret", Dir: dir}, "cannot read cluster-secret-file"},
		{"secret", CredentialOptions{SecretFile: long, Dir: filepath.Join(dir, "tls")}, ""},
	} {
		c, err := Load(tt.o)
		switch {
		case tt.want == "" && (err != nil || (c == nil) != (tt.name == "loopback")):
			t.Errorf("%s: %v, %v", tt.name, c, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, name := range []string{"node.crt", "node.key", "ca.crt"} {
		fi, err := os.Stat(filepath.Join(dir, "tls", name))
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
	if _, err := Listen(ListenOptions{Addr: "0.0.0.0:0", Log: zerolog.Nop()}); err == nil {
		t.Error("it listens on all interfaces without credentials")
	}
}

// Of nodes whose secrets differ both say so, in plain words.
func TestSecretsThatDiffer(t *testing.T) {
	t.Parallel()
	a, logs := listen(t, secret(t, someSecret), nil)
	b, _ := listen(t, secret(t, strings.Repeat("y", 32)), nil)
	var answer struct{}
	err := b.Call(t.Context(), a.Addr(), controlPath+"hello", struct{}{}, &answer)
	want := "the node at " + a.Addr() + " has another cluster secret: cluster-secret-file must be the same on all nodes"
	if err == nil || err.Error() != want {
		t.Errorf("the one that connects says %v, want %s", err, want)
	}
	until(t, "the other one to say it, too", func() bool {
		return logs.has("the node at 127.0.0.1 has another cluster secret: cluster-secret-file must be the same on all nodes")
	})
	if logs.has("tls:") || logs.has("x509") {
		t.Errorf("it logs %s", logs.text.String())
	}
}

// Only what a wrong CA causes is told of a secret, and nothing of the certificates of files: their owner
// knows what a CA is.
func TestWhatDiffers(t *testing.T) {
	t.Parallel()
	ofSecret, ofFiles := &Credentials{name: secretName}, &Credentials{}
	unknown := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{unknown, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(48)}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(40)}, false},
		{io.EOF, false},
		{os.ErrDeadlineExceeded, false},
	} {
		if got := ofSecret.differs(tt.err); got != tt.want {
			t.Errorf("of a secret, %v: %v", tt.err, got)
		}
		if ofFiles.differs(tt.err) {
			t.Errorf("of files, %v: a secret differs", tt.err)
		}
	}
}

// dialTLS connects as someone with a certificate, nil for none, and returns what comes in answer to text.
func dialTLS(t *testing.T, addr string, cert *tls.Certificate, text string) (string, error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

const helloRequest = "POST /cluster/hello HTTP/1.1\r\nHost: x\r\nMayfly-Cluster: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"

// Unauthenticated machines get nothing: with no certificate, one of another CA or another secret, one that is
// not for clients, or one of the right CA for a host that is no node's.
func TestUnauthenticated(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "ca")
	hosts := func() []string { return []string{"127.0.0.1", "node-b"} }
	keyPair := func(a *authority, host string, usages ...x509.ExtKeyUsage) *tls.Certificate {
		o := a.issue(t.TempDir(), host, usages...)
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		drill.Check(t, err)
		return &cert
	}
	secretPair := func(text string) *tls.Certificate { return &secret(t, text).now.cert }
	files, filesLog := listen(t, load(t, ca.issue(t.TempDir(), "127.0.0.1", bothUsages...)), hosts)
	secrets, secretsLog := listen(t, secret(t, someSecret), hosts)
	for _, l := range []*Listener{files, secrets} {
		l.Handle(http.HandlerFunc(echo))
	}
	for _, tt := range []struct {
		name string
		l    *Listener
		logs *lines
		cert *tls.Certificate
		ok   bool
	}{
		{"no certificate", files, filesLog, nil, false},
		{"wrong CA", files, filesLog, keyPair(other, "127.0.0.1", bothUsages...), false},
		{"right CA, a server's certificate", files, filesLog, keyPair(ca, "127.0.0.1", x509.ExtKeyUsageServerAuth), false},
		{"right CA, the name of no node", files, filesLog, keyPair(ca, "10.9.9.9", bothUsages...), false},
		{"right CA, the DNS name of no node", files, filesLog, keyPair(ca, "someone.else", bothUsages...), false},
		{"right CA, a node's DNS name", files, filesLog, keyPair(ca, "node-b", bothUsages...), true},
		{"right CA, a node's address", files, filesLog, keyPair(ca, "127.0.0.1", x509.ExtKeyUsageClientAuth), true},
		{"a node's of a secret", files, filesLog, secretPair(someSecret), false},
		{"no certificate, secret", secrets, secretsLog, nil, false},
		{"another secret", secrets, secretsLog, secretPair(strings.Repeat("y", 32)), false},
		{"file's CA, secret", secrets, secretsLog, keyPair(ca, "127.0.0.1", bothUsages...), false},
		{"the secret with other blanks", secrets, secretsLog, secretPair(strings.TrimSpace(someSecret) + "\r\n"), true},
	} {
		got, err := dialTLS(t, tt.l.Addr(), tt.cert, helloRequest)
		if tt.ok && (err != nil || !strings.HasPrefix(got, "HTTP/1.1 200")) {
			t.Errorf("%s: %q, %v\n%s", tt.name, got, err, tt.logs.text.String())
		}
		if !tt.ok && (got != "" || err == nil) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	for _, logs := range []*lines{filesLog, secretsLog} {
		if !logs.has("an unauthenticated connection from 127.0.0.1:") {
			t.Errorf("the log does not say it: %s", logs.text.String())
		}
	}
	until(t, "the log names the host", func() bool {
		files.log.mu.Lock()
		clear(files.log.last) // a line of a connection before may still come, and then this kind of line is not due again
		files.log.mu.Unlock()
		_, _ = dialTLS(t, files.Addr(), keyPair(ca, "10.9.9.9", bothUsages...), helloRequest)
		return filesLog.has("is for no node of the cluster: 127.0.0.1, node-b")
	})
}

// Who dials checks too: a server with another CA, or with a certificate for another host, gets no request.
func TestDialledUnauthenticated(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "ca")
	mine, _ := listen(t, load(t, ca.issue(t.TempDir(), "127.0.0.1", bothUsages...)), func() []string { return []string{"127.0.0.1"} })
	for name, credentials := range map[string]*Credentials{
		"wrong CA":   load(t, other.issue(t.TempDir(), "127.0.0.1", bothUsages...)),
		"wrong host": load(t, ca.issue(t.TempDir(), "127.0.0.2", bothUsages...)),
		"a client's": load(t, ca.issue(t.TempDir(), "127.0.0.1", x509.ExtKeyUsageClientAuth)),
		"secret":     secret(t, someSecret),
	} {
		theirs, _ := listen(t, credentials, nil)
		asked := false
		theirs.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = true; echo(w, r) }))
		var got string
		err := mine.Call(context.Background(), theirs.Addr(), "/cluster/hello", "x", &got)
		if err == nil || asked {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if name == "a client's" {
			continue // it may connect itself
		}
		a := begin(t, mine, &lines{}, testCluster, 1)
		b := begin(t, theirs, &lines{}, testCluster, 2)
		a.Add(2, theirs.Addr())
		b.Add(1, mine.Addr())
		until(t, "messages are refused", func() bool {
			a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
			b.Send([]*raftpb.Message{message(2, 1, raftpb.MsgHeartbeat, "")})
			return a.lost() > 3 && b.lost() > 3
		})
		if a.received()+b.received() > 0 || a.Active(2) || b.Active(1) {
			t.Errorf("%s: raft's messages have passed", name)
		}
		a.Transport.Close()
		b.Transport.Close()
	}
}

// Plain bytes on a listener with TLS are answered by an alert of TLS at most, and requests without the mark
// of a node on one without TLS not at all.
func TestRawSocket(t *testing.T) {
	t.Parallel()
	withTLS, _ := listen(t, secret(t, someSecret), nil)
	plain, _ := listen(t, nil, nil)
	for _, l := range []*Listener{withTLS, plain} {
		l.Handle(http.HandlerFunc(echo))
	}
	send := func(l *Listener, text string) string {
		conn, err := net.Dial("tcp", l.Addr())
		drill.Check(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(conn, text); err != nil {
			return ""
		}
		b, _ := io.ReadAll(conn)
		return string(b)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PING\r\n", "*1\r\n$4\r\nPING\r\n", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1000), helloRequest} {
		if got := send(withTLS, text); len(got) > 7 || len(got) > 0 && got[0] != 0x15 {
			t.Errorf("%.20q with TLS: %q", text, got)
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /cluster/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "GET /cluster/stores HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if got := send(plain, text); got != "" {
			t.Errorf("%.30q: %q", text, got)
		}
	}
	for _, text := range []string{"PING\r\n", "\x00\x01\x02\r\n\r\n", "GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\n\r\n"} {
		if got := send(plain, text); strings.Contains(strings.ToLower(got), "mayfly") || len(got) > 200 {
			t.Errorf("%.20q: %q", text, got)
		}
	}
	for _, path := range []string{"/raft", "/raft/stream/msgapp/2", "/raft/snapshot", "/raft/probing", "/raft/stream/x"} {
		for _, header := range []string{"", "X-Server-Version: x\r\n", "X-Server-Version: 3.7.0\r\nX-Min-Cluster-Version: 99999999999999999999.0.0\r\nX-Server-From: zz\r\n",
			"X-Server-Version: 3.7.0\r\nX-Min-Cluster-Version: 3.0.0\r\nX-Server-From: 2\r\nX-Etcd-Cluster-Id: c1\r\nX-PeerURLs: not a url\r\n"} {
			for _, method := range []string{"GET", "POST"} {
				if got := send(plain, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+header+"Content-Length: 0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 503") {
					t.Errorf("%s %s before a transport: %q", method, path, got)
				}
			}
		}
	}
	n := begin(t, plain, &lines{}, testCluster, 1)
	n.Add(2, "127.0.0.1:1")
	for _, header := range []string{"", "X-Server-Version: x\r\nX-Server-From: 2\r\n", "X-Server-Version: 3.7.0\r\nX-Min-Cluster-Version: 9999999999999.0.0\r\nX-Server-From: 2\r\n",
		"X-Server-Version: 3.7.0\r\nX-Min-Cluster-Version: 3.0.0\r\nX-Server-From: 2\r\nX-PeerURLs: not a url\r\nX-Etcd-Cluster-Id: c1\r\n"} {
		got := send(plain, "POST /raft HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+header+"Content-Length: 1\r\n\r\nx")
		if !strings.HasPrefix(got, "HTTP/1.1 400") {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// Thousands of connections that say nothing cost a bounded number of goroutines, and do not keep a node out.
// No time limit ends them: each newer one makes room for itself. It counts all goroutines, so no test runs
// beside it.
func TestHalfOpenConnections(t *testing.T) {
	for name, credentials := range map[string]*Credentials{"plain": nil, "secret": secret(t, someSecret)} {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(ListenOptions{Addr: "127.0.0.1:0", Credentials: credentials, Log: zerolog.Nop(), patience: time.Hour})
			drill.Check(t, err)
			defer l.Close()
			l.Handle(http.HandlerFunc(echo))
			pending := func() int {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.pending.Len()
			}
			before := runtime.NumGoroutine()
			var conns []net.Conn
			defer func() {
				for _, conn := range conns {
					conn.Close()
				}
			}()
			for i := range 1500 {
				conn, err := net.Dial("tcp", l.Addr())
				if err != nil {
					t.Fatalf("connection %d: %v", i, err)
				}
				conns = append(conns, conn)
				if i%3 == 0 {
					_, _ = conn.Write([]byte{0x16, 0x03, 0x01})
				}
				if i%300 != 0 {
					continue
				}
				until(t, "all connections are accepted", func() bool { return pending() == min(len(conns), mostPending) })
				until(t, "the goroutines of earlier connections end", func() bool { return runtime.NumGoroutine()-before <= 4*mostPending })
				l.client.CloseIdleConnections()
				until(t, "a node is let in", func() bool {
					var got string
					return l.Call(context.Background(), l.Addr(), "/cluster/hello", "x", &got) == nil
				})
			}
		})
	}
}

// A handshake that comes byte by byte ends after its time, and so do headers.
func TestSlowUnauthenticated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		credentials *Credentials
		text        string // that is not over yet
	}{
		"plain":  {nil, "GET / HTTP/1.1\r\nHost: "},
		"secret": {secret(t, someSecret), "\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := listenWith(t, ListenOptions{Credentials: tt.credentials, patience: 200 * time.Millisecond})
			conn, err := net.Dial("tcp", l.Addr())
			drill.Check(t, err)
			defer conn.Close()
			i := 0
			until(t, "the connection is closed", func() bool {
				b := byte('x')
				if i < len(tt.text) {
					b = tt.text[i]
				}
				i++
				_, err := conn.Write([]byte{b})
				return err != nil
			})
		})
	}
}

// lookAgain makes listeners look at their files as if a second had passed.
func lookAgain(listeners ...*Listener) {
	for _, l := range listeners {
		l.o.Credentials.mu.Lock()
		l.o.Credentials.looked = 0
		l.o.Credentials.mu.Unlock()
	}
}

// A new certificate and then a new CA take effect without a restart, for those who connect and those who are
// dialled.
func TestReload(t *testing.T) {
	t.Parallel()
	old, next := newAuthority(t, "old"), newAuthority(t, "new")
	dirA, dirB := t.TempDir(), t.TempDir()
	la, logsA := listen(t, load(t, old.issue(dirA, "127.0.0.1", bothUsages...)), nil)
	lb, logsB := listen(t, load(t, old.issue(dirB, "127.0.0.1", bothUsages...)), nil)
	a, b := begin(t, la, logsA, testCluster, 1), begin(t, lb, logsB, testCluster, 2)
	a.Add(2, lb.Addr())
	b.Add(1, la.Addr())
	until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
	lb.Handle(http.HandlerFunc(echo))
	serial := func() string {
		lookAgain(la, lb)
		conn, err := tls.Dial("tcp", lb.Addr(), &tls.Config{InsecureSkipVerify: true})
		drill.Check(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	old.issue(dirB, "127.0.0.1", bothUsages...)
	until(t, "the new certificate is shown", func() bool { return serial() != before })

	// Broken files change nothing.
	drill.Check(t, os.WriteFile(filepath.Join(dirB, "node.crt"), []byte("broken"), 0o600))
	until(t, "the log says so", func() bool { serial(); return logsB.has("the cluster's certificates before stay in use") })

	next.issue(dirA, "127.0.0.1", bothUsages...)
	next.issue(dirB, "127.0.0.1", bothUsages...)
	var got string
	until(t, "they trust the new CA", func() bool {
		lookAgain(la, lb)
		la.client.CloseIdleConnections()
		return la.Call(context.Background(), lb.Addr(), "/cluster/hello", "x", &got) == nil
	})
	until(t, "raft has connected anew", func() bool {
		lookAgain(la, lb)
		return logsA.has("the CA of the cluster has changed") && logsB.has("the CA of the cluster has changed")
	})
	received := b.received()
	until(t, "messages arrive", func() bool {
		a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
		return b.received() > received+5
	})
}

// TestOpenSSL connects by openssl s_client: no certificate, and one of its own.
func TestOpenSSL(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	l, _ := listen(t, secret(t, someSecret), nil)
	l.Handle(http.HandlerFunc(echo))
	dir := t.TempDir()
	own := newAuthority(t, "own").issue(dir, secretName, bothUsages...)
	for name, args := range map[string][]string{"no certificate": nil, "its own": {"-cert", own.CertFile, "-key", own.KeyFile}} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, append([]string{"s_client", "-connect", l.Addr(), "-quiet", "-ign_eof"}, args...)...)
		cmd.Stdin = strings.NewReader(helloRequest)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		// The reset that answers what openssl has sent besides may overtake the alert.
		refused := strings.Contains(stderr.String(), "alert") || strings.Contains(stderr.String(), "errno=104")
		if err == nil || stdout.Len() > 0 || !refused {
			t.Errorf("%s: %q\n%s", name, stdout.String(), stderr.String())
		}
		if strings.Contains(strings.ToLower(stderr.String()), "mayfly") {
			t.Errorf("%s: the certificate names the program:\n%s", name, stderr.String())
		}
	}
}

// FuzzStores takes any bytes before the stores.
func FuzzStores(f *testing.F) {
	for _, m := range []*raftpb.Message{snapshot(1, 2, 42), message(1, 2, raftpb.MsgApp, "x")} {
		envelope, err := marshalEnvelope(m)
		drill.Check(f, err)
		f.Add(envelope)
		f.Add(envelope[:len(envelope)-1])
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readEnvelope(bytes.NewReader(b))
		if err == nil && m == nil {
			t.Error("neither a message nor an error")
		}
		_ = fmt.Sprint(m.GetSnapshot().GetMetadata().GetIndex())
	})
}
