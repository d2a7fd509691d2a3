package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long anything that a process of ours should do may take on a busy machine.
const patience = 30 * time.Second

var binary string // path of mayfly, built once for all tests

// quiet drops what go-redis would log when a server that is being stopped no longer answers.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "mayfly")
	code := 1
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// freePort gives a TCP port on which no process listens, below those from which connections are made: no other process gets it
// before it is used, and a process that is started again finds it free. It gives each port once. The tests of other packages
// have other ranges.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		number := 10_000 + rand.IntN(14_000)
		if _, again := givenPorts.LoadOrStore(number, true); again {
			continue
		}
		ln, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", number))
		if err != nil {
			continue
		}
		defer ln.Close()
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return ""
}

// givenPorts are the ports that freePort has given.
var givenPorts sync.Map

// outcome is what a finished process has left.
type outcome struct {
	code           int
	stdout, stderr string
}

// runToEnd runs mayfly to its end; env has lines such as MAYFLY_PORT=7000.
func runToEnd(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("mayfly %q went on running\n%s", args, stderr.String())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// checkRefusal checks that mayfly did not start, and said why in one line that has all of the texts.
func checkRefusal(t *testing.T, got outcome, texts ...string) {
	t.Helper()
	if got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
	if got.stdout != "" {
		t.Errorf("standard output %q, want none", got.stdout)
	}
	line, ok := strings.CutSuffix(got.stderr, "\n")
	if !ok || strings.Contains(line, "\n") {
		t.Errorf("want one line on standard error, got\n%s", got.stderr)
	}
	for _, text := range append(texts, "mayfly: ") {
		if !strings.Contains(line, text) {
			t.Errorf("%q does not say %q", line, text)
		}
	}
}

// process is a running mayfly.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	port string // if it was started with --port
	dir  string

	greeting string // what it printed to standard output by the time it was ready
	log      logBuffer
}

// logBuffer gathers standard error. Safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts mayfly with its data in dir and waits until it is ready. It is stopped when the test
// ends.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startOn(t, freePort(t), dir, args...)
}

// startOn is start with a port.
func startOn(t *testing.T, port, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, port: port, dir: dir}
	p.cmd = exec.Command(binary, append([]string{"--port", p.port, "--dir", dir}, args...)...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stderr = &p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.discard)
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(stdout)
		for !strings.Contains(p.greeting, "(nil)") && !strings.Contains(p.greeting, "CONTAINER.LIST") { // its last line
			line, err := lines.ReadString('\n')
			p.greeting += line
			if err != nil {
				ready <- err
				return
			}
		}
		ready <- nil
		_, _ = io.Copy(io.Discard, lines) // until the process ends
	}()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatalf("mayfly did not start: %v\n%s", err, p.log.String())
		}
	case <-time.After(patience):
		t.Fatalf("mayfly did not get ready\n%s", p.log.String())
	}
	return p
}

// discard ends a process that a test has left running.
func (p *process) discard() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	if p.t.Failed() {
		p.t.Logf("log of mayfly:\n%s", p.log.String())
	}
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end and returns the exit code; -1 if a signal ended the process.
func (p *process) wait() int {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // the exit code tells
	if !timer.Stop() {
		p.t.Fatalf("mayfly did not stop\n%s", p.log.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// terminate stops the process as a service manager does, and checks that it ends well.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code %d after SIGTERM\n%s", code, p.log.String())
	}
}

// client connects a client, which is closed when the test ends.
func (p *process) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.port, MaxRetries: -1, DialerRetries: 1, ReadTimeout: patience})
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// cli runs one command in redis-cli and returns what it prints.
func (p *process) cli(args ...string) string {
	p.t.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		p.t.Skip("redis-cli is not installed")
	}
	out, err := exec.Command(path, append([]string{"-p", p.port}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Errorf("redis-cli %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}
