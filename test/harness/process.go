package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"

	"github.com/redis/go-redis/v9"
)

// WaitFor waits for another process.
var WaitFor = drill.Await

// Patience is how long anything that a process of ours should do may take on a busy machine.
const Patience = drill.Patience

var Binary string // path of mayfly, built once for all tests

// quiet drops what go-redis would log when a server that is being stopped no longer answers.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Main runs the tests of a package: it builds mayfly once for all of them, and lets them run in the root of
// the module. The quick form starts no program and builds none. Twice as many tests as usual run at once:
// they wait for programs most of the time. What tests share ends after them.
func Main(m *testing.M, ends ...func()) {
	flag.Parse()
	cores := runtime.GOMAXPROCS(0)
	if parallel := flag.Lookup("test.parallel").Value; parallel.String() == strconv.Itoa(cores) {
		_ = parallel.Set(strconv.Itoa(2 * cores)) // it is a number
	}
	// go test takes no result of these tests from its cache: it does not see that what another process builds
	// has changed, nor the files that are read from the root of the module.
	if err := flag.Set("test.testlogfile", ""); err != nil {
		panic(err)
	}
	redis.SetLogger(quiet{})
	code := run(m)
	for _, end := range ends {
		end()
	}
	os.Exit(code)
}

// CollectRarely has the servers of a package collect the garbage of their small heaps as rarely as tests do.
// Those of a drill tune their collector, as servers of users do.
func CollectRarely() {
	flag.Parse()
	if !drill.On() && os.Getenv("GOGC") == "" {
		_ = os.Setenv("GOGC", "400") // the name is legal
	}
}

func run(m *testing.M) (code int) {
	root, err := moduleRoot()
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if testing.Short() && !drill.On() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	Binary = filepath.Join(dir, "mayfly")
	if err := share(Binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// share puts mayfly at a path. The packages of one go test share what the first of them builds: it lies where
// go test links their tests, and goes with these.
func share(path string) error {
	work := filepath.Dir(filepath.Dir(os.Args[0]))
	if !strings.HasPrefix(filepath.Base(work), "go-build") {
		return Build(path) // the test was linked by go test -c
	}
	shared := filepath.Join(work, "mayfly")
	if os.Link(shared, path) == nil {
		return nil
	}
	err := Build(path)
	if err == nil {
		_ = os.Link(path, shared) // in vain if another package is first, or on another file system
	}
	return err
}

// Build puts mayfly at a path.
func Build(path string, flags ...string) error { return Link(path, append(flags, ".")...) }

// Link puts a program at a path. go run keeps what it has linked, so packages of tests and later runs share
// it; go build links anew.
func Link(path string, args ...string) error {
	args = append([]string{"run", "-exec", "echo"}, args...)
	for linked := false; ; linked = true {
		cmd := exec.Command("go", args...)
		var said bytes.Buffer // what it downloads, and errors
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("go run: %w\n%s", err, said.Bytes())
		}
		text, err := os.ReadFile(strings.TrimSpace(string(out)))
		if errors.Is(err, fs.ErrNotExist) && !linked {
			continue // the run that links it names a file that is gone when it ends
		}
		if err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o755)
	}
}

// moduleRoot is the folder of go.mod above the package under test.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	for ; err == nil; folder = filepath.Dir(folder) {
		if _, missing := os.Stat(filepath.Join(folder, "go.mod")); missing == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			err = errors.New("no go.mod above the tests")
		}
	}
	return "", err
}

// Host gives a loopback host of a test's own. Any port may be taken there still, by a process that listens
// on all hosts, such as a Redis of the machine: see [FreeAddress]. It needs Linux, where the whole of
// 127.0.0.0/8 is the machine itself.
func Host(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// FreeAddress gives a [FreePort] on a [Host].
func FreeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort(Host(t), FreePort(t))
}

// FreePort gives a TCP port on which no process listens, below those from which connections are made: no
// other process gets it before it is used, and a process that is started again finds it free. It gives each
// port once. The tests of other packages have other ranges.
func FreePort(t *testing.T) string {
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
		drill.Check(t, err)
		return port
	}
	t.Fatal("no port is free")
	return ""
}

// givenPorts are the ports that freePort has given.
var givenPorts sync.Map

// outcome is what a finished process has left.
type outcome struct {
	Code           int
	Stdout, Stderr string
}

// RunToEnd runs mayfly to its end; env has lines such as MAYFLY_PORT=7000.
func RunToEnd(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary, args...)
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

// CheckRefusal checks that mayfly did not start, and said why in one line that has all of the texts.
func CheckRefusal(t *testing.T, got outcome, texts ...string) {
	t.Helper()
	if got.Code != 1 {
		t.Errorf("exit code %d, want 1", got.Code)
	}
	if got.Stdout != "" {
		t.Errorf("standard output %q, want none", got.Stdout)
	}
	line, ok := strings.CutSuffix(got.Stderr, "\n")
	if !ok || strings.Contains(line, "\n") {
		t.Errorf("want one line on standard error, got\n%s", got.Stderr)
	}
	for _, text := range append(texts, "mayfly: ") {
		if !strings.Contains(line, text) {
			t.Errorf("%q does not say %q", line, text)
		}
	}
}

// Process is a running mayfly.
type Process struct {
	T        *testing.T
	Cmd      *exec.Cmd
	Port     string // the first that it listens on
	PortFile string
	Dir      string

	Greeting string // what it printed to standard output by the time it was ready
	Log      LogBuffer
}

// LogBuffer gathers standard error. Safe for concurrent use.
type LogBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Start starts mayfly with its data in dir, on a free port, and waits until it is ready. It is stopped when
// the test ends.
func Start(t *testing.T, dir string, args ...string) *Process {
	t.Helper()
	return StartOn(t, "auto", dir, args...)
}

// StartOn is Start with a port.
func StartOn(t *testing.T, port, dir string, args ...string) *Process {
	t.Helper()
	return start(t, nil, port, dir, args...)
}

// StartWith is Start with more of an environment, in lines such as TMPDIR=/tmp.
func StartWith(t *testing.T, env []string, dir string, args ...string) *Process {
	t.Helper()
	return start(t, env, "auto", dir, args...)
}

func start(t *testing.T, env []string, port, dir string, args ...string) *Process {
	t.Helper()
	home := t.TempDir()
	p := &Process{T: t, Dir: dir, PortFile: filepath.Join(home, "port")}
	p.Cmd = exec.Command(Binary, append([]string{"--port", port, "--port-file", p.PortFile, "--dir", dir}, args...)...)
	p.Cmd.Dir, p.Cmd.Env = home, append(os.Environ(), env...)
	p.Cmd.Stderr = &p.Log
	stdout, err := p.Cmd.StdoutPipe()
	drill.Check(t, err)
	drill.Check(t, p.Cmd.Start())
	t.Cleanup(p.Discard)
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(stdout)
		for !strings.Contains(p.Greeting, "(nil)") && !strings.Contains(p.Greeting, "CONTAINER.LIST") { // its last line
			line, err := lines.ReadString('\n')
			p.Greeting += line
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
			t.Fatalf("mayfly did not start: %v\n%s", err, p.Log.String())
		}
	case <-time.After(Patience):
		t.Fatalf("mayfly did not get ready\n%s", p.Log.String())
	}
	ports, err := os.ReadFile(p.PortFile)
	drill.Check(t, err)
	p.Port, _, _ = strings.Cut(string(ports), "\n")
	return p
}

// Discard ends a process that a test has left running.
func (p *Process) Discard() {
	if p.Cmd.ProcessState == nil {
		_ = p.Cmd.Process.Kill()
		_ = p.Cmd.Wait()
	}
	if p.T.Failed() {
		p.T.Logf("log of mayfly:\n%s", p.Log.String())
	}
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.T.Helper()
	drill.Check(p.T, p.Cmd.Process.Signal(s))
}

// Wait waits for the end and returns the exit code; -1 if a signal ended the process.
func (p *Process) Wait() int {
	p.T.Helper()
	timer := time.AfterFunc(Patience, func() { _ = p.Cmd.Process.Kill() })
	_ = p.Cmd.Wait() // the exit code tells
	if !timer.Stop() {
		p.T.Fatalf("mayfly did not stop\n%s", p.Log.String())
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Terminate stops the process as a service manager does, and checks that it ends well.
func (p *Process) Terminate() {
	p.T.Helper()
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 0 {
		p.T.Fatalf("exit code %d after SIGTERM\n%s", code, p.Log.String())
	}
}

// Client connects a client, which is closed when the test ends.
func (p *Process) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, DialerRetries: 1, ReadTimeout: Patience})
	p.T.Cleanup(func() { _ = c.Close() })
	return c
}

// CLI runs one command in redis-cli and returns what it prints.
func (p *Process) CLI(args ...string) string {
	p.T.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		p.T.Skip("redis-cli is not installed")
	}
	out, err := exec.Command(path, append([]string{"-p", p.Port}, args...)...).CombinedOutput()
	if err != nil {
		p.T.Errorf("redis-cli %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// CLIWith runs redis-cli with options and what it reads from standard input, and returns what it
// prints, as it is, and its exit code.
func (p *Process) CLIWith(stdin io.Reader, args ...string) (printed string, code int) {
	p.T.Helper()
	cmd := exec.Command(Need(p.T, "redis-cli"), append([]string{"-p", p.Port}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.T.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
