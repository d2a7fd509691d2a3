package cluster

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"mayfly/test/harness"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var failovers = flag.Int("failovers", 3, "how many changes of the leader TestClusterClients and TestClusterFailover make")

// TestClusterFailover measures how long no write is acknowledged after a kill of the leader, and during a transfer.
//
// The long form:
//
//	go test . -run ClusterFailover -timeout 0 -failovers 20
func TestClusterFailover(t *testing.T) {
	c := harness.StartCluster(t, 3)
	p := &prober{Cluster: c}
	p.begin()
	defer p.stop()
	var kills, transfers harness.Durations
	for range *failovers {
		p.awaitAcks(20)
		leader := c.Leader()
		began := time.Now()
		do(c, "CLUSTER", "TRANSFER")
		p.awaitAcks(20)
		transfers = append(transfers, p.gapSince(began))
		if next := c.Leader(); next == leader {
			t.Errorf("node %s leads after it has passed the lead on", leader.Name)
		}

		leader = c.Leader()
		began = time.Now()
		leader.Kill()
		p.awaitAcks(20)
		kills = append(kills, p.gapSince(began))
		leader.Start()
		leader.AwaitServing()
	}
	t.Logf("without acknowledged writes: after a kill %v; during a transfer %v", kills, transfers)
	// The targets are 2.5 s and 0.2 s. A busy machine misses them now and then, but not each time; of few transfers it may
	// miss all.
	transfer := 200 * time.Millisecond
	if *failovers < 20 {
		transfer = time.Second
	}
	if slices.Min(kills) > 2500*time.Millisecond || slices.Min(transfers) > transfer {
		t.Error("none of them meets the target")
	}
	if kills.Most() > 10*time.Second || transfers.Most() > 5*time.Second {
		t.Error("that is too long even for a busy machine")
	}
}

// prober writes to whichever node acknowledges, one write at a time, and notes when.
type prober struct {
	*harness.Cluster
	stopping chan struct{}
	wg       sync.WaitGroup

	mu   sync.Mutex // protects acks
	acks []time.Time
}

func (p *prober) begin() {
	p.stopping = make(chan struct{})
	for _, n := range p.Nodes {
		p.wg.Go(func() {
			client := n.Connect()
			defer client.Close()
			for i := 0; ; i++ {
				select {
				case <-p.stopping:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if client.Set(p.T.Context(), "probe", i, 0).Err() == nil {
					p.mu.Lock()
					p.acks = append(p.acks, time.Now())
					p.mu.Unlock()
				}
			}
		})
	}
}

func (p *prober) stop() {
	close(p.stopping)
	p.wg.Wait()
}

func (p *prober) awaitAcks(n int) {
	p.T.Helper()
	count := func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.acks) }
	before := count()
	p.Await("acknowledged writes", func() bool { return count() >= before+n })
}

// gapSince returns the longest time between two acknowledged writes since a moment.
func (p *prober) gapSince(began time.Time) (gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := began
	for _, at := range p.acks {
		if at.After(began) {
			gap = max(gap, at.Sub(last))
			last = at
		}
	}
	return gap
}

// TestClusterClients changes the leader while programs in Go, Python and JavaScript write through clients for clusters and for
// Sentinel. They go on by themselves after each change.
//
// The long form:
//
//	go test . -run ClusterClients -timeout 0 -failovers 20
func TestClusterClients(t *testing.T) {
	c := harness.StartCluster(t, 3)
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
	for _, kind := range []string{"cluster", "sentinel"} {
		args := append([]string{"test/cluster/testdata/cluster_redis_py.py", kind}, addrs...)
		programs = append(programs, script(t, "redis-py "+kind, exec.Command(interpreter, args...)))
	}
	node, modules := harness.InstallInNode(t, "ioredis", harness.IoredisVersions[len(harness.IoredisVersions)-1])
	for _, kind := range []string{"cluster", "sentinel"} {
		cmd := exec.Command(node, append([]string{"test/cluster/testdata/cluster_ioredis.js", kind}, addrs...)...)
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
		programs = append(programs, script(t, "ioredis "+kind, cmd))
	}
	cli := harness.Need(t, "redis-cli")
	_, port, _ := strings.Cut(c.Nodes[0].ClientAddr, ":")

	goOn := func(after string) {
		t.Helper()
		for _, p := range programs {
			before := p.count()
			c.Await(fmt.Sprintf("%s to go on after %s; the last error: %s", p.name, after, p.lastError()), func() bool { return p.count() >= before+5 })
		}
		out, err := exec.Command(cli, "-c", "-p", port, "SET", "cli", after).CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "OK") {
			t.Errorf("redis-cli -c after %s: %v\n%s", after, err, out)
		}
	}
	goOn("the start")
	for n := range *failovers {
		if n%2 == 0 {
			leader := c.Leader()
			leader.Kill()
			c.Leader()
			leader.Start()
			leader.AwaitServing()
			goOn(fmt.Sprint("kill ", n+1))
		} else {
			do(c, "CLUSTER", "TRANSFER")
			goOn(fmt.Sprint("transfer ", n+1))
		}
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
			case <-time.After(5 * time.Millisecond):
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

// script is a program in a process of its own, which ends with its input.
func script(t *testing.T, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, name: name}
	var said harness.LogBuffer
	cmd.Stderr = &said
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err == nil {
				p.said(strings.TrimSpace(line))
			} else if errors.Is(err, io.EOF) {
				return
			}
		}
	}()
	p.stop = sync.OnceFunc(func() {
		_ = in.Close()
		timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
		<-read
		if err := cmd.Wait(); err != nil || !timer.Stop() {
			t.Errorf("%s: %v\n%s", name, err, harness.LastLines(said.String(), 20))
		}
	})
	t.Cleanup(p.stop)
	return p
}
