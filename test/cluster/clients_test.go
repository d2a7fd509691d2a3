package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterClients changes the leader while programs in Go, Python and JavaScript write through clients for
// clusters and for Sentinel. They go on by themselves after each change.
func TestClusterClients(t *testing.T) {
	t.Parallel()
	c := startBrief(t)
	var programs []*program
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.ClientAddr)
	}
	cluster := c.ClusterClient()
	defer cluster.Close()
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: addrs})
	defer sentinel.Close()
	programs = append(programs, inGo(t, "go-redis ClusterClient", cluster), inGo(t, "go-redis FailoverClient", sentinel))
	interpreter := harness.Python(t)
	args := append([]string{strconv.Itoa(betweenWrites())}, addrs...)
	py := exec.Command(interpreter, append([]string{"test/cluster/testdata/cluster_redis_py.py"}, args...)...)
	programs = append(programs, script(t, "redis-py", py)...)
	node, modules := harness.InstallInNode(t, "ioredis", harness.IoredisVersions[len(harness.IoredisVersions)-1])
	js := exec.Command(node, append([]string{"test/cluster/testdata/cluster_ioredis.js"}, args...)...)
	js.Env = append(js.Environ(), "NODE_PATH="+modules)
	programs = append(programs, script(t, "ioredis", js)...)
	cli := harness.Need(t, "redis-cli")
	host, port, _ := strings.Cut(c.Nodes[0].ClientAddr, ":")

	goOn := func(after string) {
		t.Helper()
		for _, p := range programs {
			before := p.count()
			c.Await(fmt.Sprintf("%s to go on after %s; the last error: %s", p.name, after, p.lastError()), func() bool { return p.count() >= before+3 })
		}
		out, err := exec.Command(cli, "-c", "-h", host, "-p", port, "SET", "cli", after).CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "OK") {
			t.Errorf("redis-cli -c after %s: %v\n%s", after, err, out)
		}
	}
	goOn("the start")
	for n := range drill.Pick(1, 1, 10) {
		leader := c.Leader()
		leader.Kill()
		c.Leader()
		leader.Start()
		leader.AwaitServing()
		goOn(fmt.Sprint("kill ", n+1))
		do(c, "CLUSTER", "TRANSFER")
		goOn(fmt.Sprint("transfer ", n+1))
	}
	for _, p := range programs {
		p.stop()
		t.Logf("%s: %d writes were acknowledged and read back, %d failed, the longest pause was %v; the last error: %s",
			p.name, p.ok, p.failed, p.pause.Round(time.Millisecond), p.lastError())
	}
}

// program is a client that writes numbers and reads them back.
type program struct {
	t    *testing.T
	name string
	stop func()

	mu         sync.Mutex // protects the rest
	ok, failed int
	last       string // error
	at         time.Time
	pause      time.Duration // the longest between two acknowledged writes
}

func (p *program) count() int { p.mu.Lock(); defer p.mu.Unlock(); return p.ok }

func (p *program) lastError() string { p.mu.Lock(); defer p.mu.Unlock(); return p.last }

// said takes note of a line: "ok" and a number, "wrong" and what, or an error.
func (p *program) said(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "ok "):
		if !p.at.IsZero() {
			p.pause = max(p.pause, time.Since(p.at))
		}
		p.ok++
		p.at = time.Now()
	case strings.HasPrefix(line, "error "):
		p.failed++
		p.last = line
	default:
		p.t.Errorf("%s: %s", p.name, line)
	}
}

// betweenWrites is the pause of a client after a write in ms. In a drill more writes are under way at a kill.
func betweenWrites() int { return drill.Pick(100, 100, 20) }

// inGo is a program in this process.
func inGo(t *testing.T, name string, c redis.UniversalClient) *program {
	p := &program{t: t, name: name}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	p.stop = sync.OnceFunc(func() { close(stopping); <-stopped })
	t.Cleanup(p.stop)
	go func() {
		defer close(stopped)
		key := strings.ReplaceAll(name, " ", "-")
		for n := 1; ; n++ {
			select {
			case <-stopping:
				return
			case <-time.After(time.Duration(betweenWrites()) * time.Millisecond):
			}
			err := c.Set(t.Context(), key, n, 0).Err()
			got := 0
			if err == nil {
				got, err = c.Get(t.Context(), key).Int()
			}
			switch {
			case err != nil:
				p.said("error " + err.Error())
			case got != n:
				p.said(fmt.Sprintf("wrong %d is %d", n, got))
			default:
				p.said(fmt.Sprint("ok ", n))
			}
		}
	}()
	return p
}

// script is a process with a client for clusters and one for Sentinel, which ends with its input.
func script(t *testing.T, name string, cmd *exec.Cmd) []*program {
	t.Helper()
	cluster, sentinel := &program{t: t, name: name + " cluster"}, &program{t: t, name: name + " sentinel"}
	var said harness.LogBuffer
	cmd.Stderr = &said
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	drill.Check(t, err1, err2, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
			case kind == "sentinel":
				sentinel.said(text)
			case kind == "cluster":
				cluster.said(text)
			default:
				t.Errorf("%s says %q", name, line)
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		_ = in.Close()
		timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
		<-read
		if err := cmd.Wait(); err != nil || !timer.Stop() {
			t.Errorf("%s: %v\n%s", name, err, harness.LastLines(said.String(), 20))
		}
	})
	t.Cleanup(stop)
	cluster.stop, sentinel.stop = stop, stop
	return []*program{cluster, sentinel}
}
