package clustertest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"

	"mayfly/test/drill"
)

// network makes a network for a test.
func network(t *testing.T, n int) *Network {
	t.Helper()
	w, err := New(n)
	if errors.Is(err, ErrUnsupported) {
		t.Skipf("NOT TESTED: %v", err)
	}
	drill.Check(t, err)
	t.Cleanup(w.Close)
	return w
}

// echo starts a process on a host that sends back what it gets on port 7.
func echo(t *testing.T, w *Network, host int) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: python3 is not installed")
	}
	cmd := exec.Command(python, "-c", `
import socket, threading
s = socket.create_server(("0.0.0.0", 7))
print("ready", flush=True)
def serve(c):
    while b := c.recv(65536):
        c.sendall(b)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = w.Start(host, cmd)
	}
	drill.Check(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
}

// round sends bytes to and fro and returns the time that this took.
func round(t *testing.T, conn net.Conn, patience time.Duration) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	drill.Check(t, conn.SetDeadline(began.Add(patience)))
	b := make([]byte, 100)
	_, err := conn.Write(b)
	if err == nil {
		_, err = io.ReadFull(conn, b)
	}
	return time.Since(began), err
}

func connect(t *testing.T, w *Network, host int) net.Conn {
	t.Helper()
	conn, err := w.Dial(t.Context(), "tcp", net.JoinHostPort(w.Addr(host), "7"))
	drill.Check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestNetwork(t *testing.T) {
	drill.Slow(t)
	w := network(t, 2)
	echo(t, w, 1)
	echo(t, w, 2)
	one, two := connect(t, w, 1), connect(t, w, 2)
	sound := func(c net.Conn) {
		t.Helper()
		if _, err := round(t, c, 10*time.Second); err != nil {
			t.Error(err)
		}
	}
	silent := func(c net.Conn) {
		t.Helper()
		_, err := round(t, c, 100*time.Millisecond)
		if failure, ok := errors.AsType[net.Error](err); !ok || !failure.Timeout() {
			t.Errorf("over a cut link: %v, want a timeout", err)
		}
	}
	sound(one)
	sound(two)

	w.Set(Clients, 1, Link{Cut: true}) // one way
	silent(one)
	sound(two)
	w.Set(Clients, 1, Link{})
	w.Set(1, Clients, Link{Cut: true}) // the other way
	silent(one)
	w.Heal()
	one = connect(t, w, 1) // the old one has bytes of before under way
	sound(one)

	w.SetBoth(Clients, 2, Link{Delay: 50 * time.Millisecond})
	if took, err := round(t, two, 10*time.Second); err != nil || took < 100*time.Millisecond {
		t.Errorf("a slow link takes %v, %v", took, err)
	}
	w.SetBoth(Clients, 2, Link{Loss: 0.1})
	for range 20 {
		sound(two)
	}
}
