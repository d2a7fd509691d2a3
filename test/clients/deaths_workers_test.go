package clients

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// deathsPage has the workers, one for each language.
const deathsPage = "docs/deaths.md"

// deathsStream is the stream that the workers read.
const deathsStream = "__keyevent@carts__:expired"

// worker returns the program of the docs that works through dead carts, in a language.
func worker(t *testing.T, language string) string {
	t.Helper()
	for _, program := range harness.Blocks(harness.Guides(t)[deathsPage], language) {
		if harness.IsWorker(program) {
			return program
		}
	}
	t.Fatalf("%s has no worker in %s", deathsPage, language)
	return ""
}

// TestWorkerInGo kills the worker of the docs and the server while carts die.
func TestWorkerInGo(t *testing.T) {
	harness.Parallel(t)
	killWorkers(t, func(t *testing.T, port string) func() *exec.Cmd {
		source, program := harness.ProgramFolder(t, worker(t, "go")), filepath.Join(t.TempDir(), "worker")
		drill.Check(t, harness.Link(program, filepath.Join(source, "main.go"), filepath.Join(source, "at.go")))
		return func() *exec.Cmd { return exec.Command(program, "6379=127.0.0.1:"+port) }
	})
}

// TestWorkerInPython is TestWorkerInGo in Python.
func TestWorkerInPython(t *testing.T) {
	harness.Parallel(t)
	interpreter := harness.Python(t)
	killWorkers(t, func(t *testing.T, port string) func() *exec.Cmd {
		source := harness.WriteFile(t, "worker.py", strings.ReplaceAll(worker(t, "python"), "port=6379", "port="+port))
		return func() *exec.Cmd { return exec.Command(interpreter, source) }
	})
}

// TestWorkerInNode is TestWorkerInGo in Node.js.
func TestWorkerInNode(t *testing.T) {
	harness.Parallel(t)
	for _, version := range tested(harness.IoredisVersions) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			node, modules := harness.InstallInNode(t, "ioredis", version)
			killWorkers(t, func(t *testing.T, port string) func() *exec.Cmd {
				source := harness.WriteFile(t, "worker.js", strings.ReplaceAll(worker(t, "js"), "6379", port))
				return func() *exec.Cmd {
					cmd := exec.Command(node, source)
					cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
					return cmd
				}
			})
		})
	}
}

// ledger is what workers have said: a line "mail <address> <etag>" for each mail, and "done <etag>" once the
// entry is acknowledged. Safe for concurrent use, but for accepted.
type ledger struct {
	t        *testing.T
	accepted []string // addresses in the carts that the server has

	mu    sync.Mutex // protects what follows
	etags map[string]string
	mails map[string]int // by etag
	done  map[string]bool
}

func (l *ledger) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch words := strings.Fields(line); {
	case len(words) == 3 && words[0] == "mail":
		address, etag := words[1], words[2]
		if before, ok := l.etags[address]; ok && before != etag {
			l.t.Errorf("%s died once, with the etags %s and %s", address, before, etag)
		}
		if l.done[etag] {
			l.t.Errorf("%s gets a mail again, which was acknowledged", address)
		}
		l.etags[address] = etag
		l.mails[etag]++
	case len(words) == 2 && words[0] == "done":
		l.done[words[1]] = true
	default:
		l.t.Errorf("a worker says %q", line)
	}
}

// missing returns how many of the addresses have had no mail.
func (l *ledger) missing(addresses []string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, address := range addresses {
		if l.etags[address] == "" {
			n++
		}
	}
	return n
}

// emptied is the address in carts that their customer deletes: it gets no mail.
const emptied = "emptied@example.org"

// killWorkers runs a worker while carts die, kills it and starts it again, and does the same to the server.
// Each cart that the server has accepted gets a mail, and none gets another after the first was acknowledged.
// A cart that is deleted gets none. build makes the worker for a server on a port; what it returns makes a
// process of it.
func killWorkers(t *testing.T, build func(t *testing.T, port string) func() *exec.Cmd) {
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir)
	command := build(t, p.Port)
	c := p.Client()
	drill.Check(t, c.Do(t.Context(), "CONTAINER.CREATE", "carts", "TTL", 1, "LOG", 3600, "DELETES", "yes").Err())
	l := &ledger{t: t, etags: map[string]string{}, mails: map[string]int{}, done: map[string]bool{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%d of %d customers have no mail; %v\n%v", l.missing(l.accepted), len(l.accepted),
				c.XInfoStream(context.Background(), deathsStream), c.XInfoGroups(context.Background(), deathsStream))
		}
	})
	many := drill.Pick(50, 50, 200)
	l.put(c, 2*many)
	drill.Check(t, c.Do(t.Context(), "DOC.PUT", "carts", "emptied", fmt.Sprintf(`{"mail":%q}`, emptied), "TTL", -1).Err())
	if n, err := c.Do(t.Context(), "DOC.DEL", "carts", "emptied").Int(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	kill := l.run(command())
	harness.WaitFor(t, "the first mails", func() bool { return l.missing(l.accepted) < 3*many/2 })
	kill()
	l.put(c, many)
	kill = l.run(command())
	before := len(l.accepted)
	l.put(c, 2*many)
	harness.WaitFor(t, "more mails", func() bool { return l.missing(l.accepted[:before]) < many })
	l.put(c, many)
	last := time.Now()
	p.Signal(syscall.SIGKILL)
	p.Wait()
	harness.WaitFor(t, "the last to die while the server is down", func() bool { return time.Since(last) > time.Second })
	p = harness.StartOn(t, p.Port, dir)
	c = p.Client()
	l.put(c, many)
	kill()
	l.run(command())
	harness.WaitFor(t, "all mails and acknowledgements", func() bool {
		groups, err := c.XInfoGroups(context.Background(), deathsStream).Result()
		return err == nil && l.missing(l.accepted) == 0 && groups[0].Pending == 0 && groups[0].Lag == 0
	})
	if n, err := c.XLen(context.Background(), deathsStream).Result(); err != nil || n != int64(len(l.accepted))+1 {
		t.Errorf("the log has %d entries, %v, and %d carts died and one was deleted", n, err, len(l.accepted))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if etag := l.etags[emptied]; etag != "" {
		t.Errorf("a cart that was deleted gets a mail, %s", etag)
	}
	twice := 0
	for _, n := range l.mails {
		twice += n - 1
	}
	t.Logf("%d carts died; %d mails were sent again, because the worker or the server was killed before the acknowledgement",
		len(l.accepted), twice)
}

// put puts carts that live for a second.
func (l *ledger) put(c *redis.Client, n int) {
	l.t.Helper()
	for range n {
		address := fmt.Sprintf("customer-%d@example.org", len(l.accepted))
		cart, text := fmt.Sprint("cart-", len(l.accepted)), fmt.Sprintf(`{"mail":%q}`, address)
		drill.Check(l.t, c.Do(l.t.Context(), "DOC.PUT", "carts", cart, text).Err())
		l.accepted = append(l.accepted, address)
	}
}

// run starts a worker. kill kills it, and returns once the ledger has all that it said.
func (l *ledger) run(cmd *exec.Cmd) (kill func()) {
	l.t.Helper()
	out, err := cmd.StdoutPipe()
	drill.Check(l.t, err)
	var log harness.LogBuffer
	cmd.Stderr = &log
	drill.Check(l.t, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // without the line in which it was killed
			}
			l.note(line)
		}
	}()
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		if l.t.Failed() {
			l.t.Logf("log of a worker:\n%s", log.String())
		}
	})
	l.t.Cleanup(kill)
	return kill
}
