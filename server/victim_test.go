package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"

	"github.com/tidwall/redcon"
)

// Hazards are shown on servers in processes of their own, which may die of them. The unguarded one is
// redcon.Serve with a simple handler. The guarded one is ours with a fake engine. Both know PING, SET, and
// BIG, whose reply is a megabyte.
const (
	unguarded = "unguarded"
	guarded   = "guarded"
)

const victimVariable = "TEST_VICTIM_KIND"

var megabyte = strings.Repeat("x", 1<<20)

// victim is such a process.
type victim struct {
	t       testing.TB
	cmd     *exec.Cmd
	address string
	died    chan struct{} // closed when the process has ended
}

// startVictim starts a server of the kind, in TLS if a certificate is given.
func startVictim(t testing.TB, kind string, certFile, keyFile string) *victim {
	t.Helper()
	v := &victim{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestVictim$"), died: make(chan struct{})}
	// What it has in its temporary folder stays when it is killed.
	v.cmd.Env = append(os.Environ(), victimVariable+"="+kind+" "+certFile+" "+keyFile, "TMPDIR="+t.TempDir())
	out, err := v.cmd.StdoutPipe()
	must(t, err)
	must(t, v.cmd.Start())
	t.Cleanup(func() {
		_ = v.cmd.Process.Kill() // it may be dead
		<-v.died
	})
	v.address, err = bufio.NewReader(out).ReadString('\n')
	v.address = strings.TrimSpace(v.address)
	go func() {
		_ = v.cmd.Wait() // how it ends does not matter
		close(v.died)
	}()
	must(t, err)
	return v
}

// TestVictim is the process of a victim.
func TestVictim(t *testing.T) {
	kind, files, ok := strings.Cut(os.Getenv(victimVariable), " ")
	if !ok {
		t.Skip("only as a child process of the tests of hazards")
	}
	// Go's own bound of a gigabyte takes longer to reach than a test should.
	debug.SetMaxStack(1 << 20)
	debug.SetGCPercent(100) // its memory is what it holds, not the garbage of a test
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	config := (*tls.Config)(nil)
	if certFile, keyFile, _ := strings.Cut(files, " "); certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		must(t, err)
		config = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	fmt.Println(ln.Addr())
	if kind == unguarded {
		if config != nil {
			ln = tls.NewListener(ln, config)
		}
		t.Fatal(redcon.Serve(ln, naiveHandler, nil, nil))
	}
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"BIG":   func(*engine.Session, []string) engine.Reply { return engine.Bulk(megabyte) },
		"PANIC": func(*engine.Session, []string) engine.Reply { panic("on purpose") },
	}
	newTestServer(t).serve(e, map[net.Listener]*tls.Config{ln: config})
	select {} // until it is killed
}

func naiveHandler(c redcon.Conn, cmd redcon.Command) {
	switch strings.ToUpper(string(cmd.Args[0])) {
	case "PING":
		c.WriteString("PONG")
	case "SET":
		c.WriteString("OK")
	case "BIG":
		c.WriteBulkString(megabyte)
	case "PANIC":
		panic("on purpose")
	default:
		c.WriteError("ERR unknown command")
	}
}

// alive reports whether the process still runs.
func (v *victim) alive() bool {
	select {
	case <-v.died:
		return false
	default:
		return true
	}
}

// memory is the peak of the resident memory of the process in bytes.
func (v *victim) memory() int {
	fields := v.proc("status")
	kilobytes, _ := strconv.Atoi(fields[slices.Index(fields, "VmHWM:")+1])
	return kilobytes << 10
}

// tick is the unit in which the system counts processor time.
const tick = 10 * time.Millisecond

// cpu is the processor time of the process.
func (v *victim) cpu() time.Duration {
	fields := v.proc("stat")
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * tick
}

// count is one of the counts of system calls and bytes of the process, 0 if the system does not count.
func (v *victim) count(name string) int {
	fields := v.proc("io")
	n, _ := strconv.Atoi(fields[slices.Index(fields, name)+1])
	return n
}

// asleep reports whether all threads of the process wait.
func (v *victim) asleep() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", v.cmd.Process.Pid))
	return !slices.ContainsFunc(threads, func(file string) bool {
		content, _ := os.ReadFile(file)
		_, state, _ := strings.Cut(string(content), ") ")
		return state != "" && state[0] != 'S'
	})
}

// proc reads the fields of a file in the process' folder under /proc; they are empty if it has ended.
func (v *victim) proc(file string) []string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", v.cmd.Process.Pid, file))
	return append(strings.Fields(string(content)), make([]string, 20)...)
}

// answers reports whether the victim answers a new client.
func (v *victim) answers(config *tls.Config) bool {
	nc, err := net.Dial("tcp", v.address)
	if err != nil {
		return false
	}
	defer nc.Close()
	if config != nil {
		nc = tls.Client(nc, config)
	}
	must(v.t, nc.SetDeadline(time.Now().Add(testTimeout)))
	if _, err := nc.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, _ := bufio.NewReader(nc).ReadString('\n')
	return line == "+PONG\r\n"
}
