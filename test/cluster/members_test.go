package cluster

import (
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// unchanged are clients as programs in Go use them: what they write must succeed with the retries of the
// library alone.
type unchanged struct {
	*harness.Cluster
	stopped atomic.Bool
	wg      sync.WaitGroup

	mu    sync.Mutex // protects the rest
	done  int
	worst time.Duration // the longest call
	fails []error
}

// startUnchanged lets cluster clients write, each its own key, until stop.
func startUnchanged(c *harness.Cluster) *unchanged {
	u := &unchanged{Cluster: c}
	for i := range drill.Pick(2, 2, 4) {
		u.wg.Go(func() {
			client := c.ClusterClient()
			defer client.Close()
			key := fmt.Sprint("unchanged-", i)
			pace := time.NewTicker(drill.Pick[time.Duration](100, 100, 2) * time.Millisecond)
			defer pace.Stop()
			for n := 1; !u.stopped.Load(); n++ {
				began := time.Now()
				err := client.Set(c.T.Context(), key, n, 0).Err()
				if got := ""; err == nil {
					got, err = client.Get(c.T.Context(), key).Result()
					if err == nil && got != fmt.Sprint(n) {
						err = fmt.Errorf("%s is %s, was set to %d", key, got, n)
					}
				}
				u.mu.Lock()
				u.done++
				u.worst = max(u.worst, time.Since(began))
				if err != nil {
					u.fails = append(u.fails, err)
				}
				u.mu.Unlock()
				<-pace.C
			}
		})
	}
	return u
}

// awaitCalls waits until the clients have made n more calls.
func (u *unchanged) awaitCalls(n int) {
	u.T.Helper()
	calls := func() int { u.mu.Lock(); defer u.mu.Unlock(); return u.done }
	before := calls()
	u.Await("calls of cluster clients", func() bool { return calls() >= before+n })
}

// stop stops the clients and checks that none has seen an error.
func (u *unchanged) stop() {
	u.T.Helper()
	u.stopped.Store(true)
	u.wg.Wait()
	if len(u.fails) > 0 {
		u.T.Errorf("%d of %d calls of cluster clients failed, the first: %v", len(u.fails), u.done, u.fails[0])
	}
	u.T.Logf("cluster clients: %d calls, %d failed, the longest took %v", u.done, len(u.fails), u.worst.Round(time.Millisecond))
}

// startUnderLoad starts three nodes, the writers of a ledger and cluster clients.
func startUnderLoad(t *testing.T) (*harness.Cluster, *clusterLedger, *unchanged) {
	t.Helper()
	c := harness.StartCluster(t, 3, ledgerArgs...)
	l := newLedger(c, drill.Seed(t))
	l.begin()
	t.Cleanup(l.pause)
	return c, l, startUnchanged(c)
}

// TestClusterRollingRestart restarts one node after the other while clients write. They see no error.
func TestClusterRollingRestart(t *testing.T) {
	t.Parallel()
	c, l, u := startUnderLoad(t)
	var outages durations
	for range drill.Pick(1, 1, 10) {
		for _, n := range c.Nodes {
			led := c.Leader() == n
			n.Terminate()
			if outage := l.awaitSteps(2); led {
				outages = append(outages, outage)
			}
			n.Start()
			n.AwaitServing()
			l.awaitSteps(2)
		}
	}
	u.stop()
	l.pause()
	l.verify()
	t.Logf("after SIGTERM of the leader writes went on after %v", outages)
	t.Log(l.figures())
}

// TestClusterTransfer passes the lead on while clients count without a pause, and restarts the leader. Each
// command is done once: a library that is told too early that one was not done repeats it. Nothing lives
// shorter.
func TestClusterTransfer(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3)
	var stopped atomic.Bool
	var calls atomic.Int64
	var wg sync.WaitGroup
	count := func(i int, name string, client redis.UniversalClient, incr func(key string) (int64, error)) {
		wg.Go(func() {
			defer client.Close()
			for n := int64(1); !stopped.Load() && !t.Failed(); n++ {
				if got, err := incr(fmt.Sprint("count-", name, i)); err != nil || got != n {
					t.Errorf("INCR number %d of the %s client %d: %d, %v", n, name, i, got, err)
				}
				calls.Add(1)
			}
		})
	}
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.ClientAddr)
	}
	for i := range drill.Pick(2, 2, 4) {
		alone, together := c.ClusterClient(), c.ClusterClient()
		sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: addrs})
		count(i, "cluster", alone, func(key string) (int64, error) { return alone.Incr(t.Context(), key).Result() })
		count(i, "Sentinel", sentinel, func(key string) (int64, error) { return sentinel.Incr(t.Context(), key).Result() })
		count(i, "transactional", together, func(key string) (int64, error) {
			var incr *redis.IntCmd
			_, err := together.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				incr = p.Incr(t.Context(), key)
				return nil
			})
			return incr.Val(), err
		})
	}
	goesOn := func() {
		t.Helper()
		before := calls.Load()
		c.Await("calls of cluster clients", func() bool { return calls.Load() > before+100 || t.Failed() })
	}
	for range drill.Pick(1, 1, 50) {
		goesOn()
		const life = 20 * time.Second
		began := time.Now()
		do(c, "SET", "lock", "v", "PX", life.Milliseconds())
		do(c, "CLUSTER", "TRANSFER")
		goesOn()
		leader := c.Leader()
		left, _ := do(c, "PTTL", "lock").(int64)
		if lived := time.Since(began); time.Duration(left)*time.Millisecond+lived < life-time.Millisecond {
			t.Errorf("after %v another leader says that a key of %v has %d ms left", lived, life, left)
		}
		leader.Terminate()
		goesOn() // the clients know the next leader, from this node
		leader.Start()
		leader.AwaitServing()
	}
	goesOn()
	stopped.Store(true)
	wg.Wait()
	t.Logf("%d calls", calls.Load())
}

// TestClusterMembers adds a node under load and removes the leader; in a drill, it adds two and removes two.
func TestClusterMembers(t *testing.T) {
	t.Parallel()
	c, l, u := startUnderLoad(t)
	changes := drill.Pick(1, 1, 2)
	l.awaitSteps(5)
	for range changes {
		n := c.Add()
		do(c, "CLUSTER", "ADD", n.Name+"="+n.PeerAddr)
		began := time.Now()
		n.Start()
		n.AwaitServing()
		l.awaitSteps(5)
		t.Logf("node %s serves after %v", n.Name, time.Since(began).Round(time.Millisecond))
	}
	l.pause()
	l.verify()
	l.begin()
	for range changes {
		leader := c.Leader()
		do(c, "CLUSTER", "REMOVE", leader.Name)
		outage := l.awaitSteps(5)
		t.Logf("the leader, %s, is removed; the next write was acknowledged after %v", leader.Name, outage.Round(time.Millisecond))
		u.awaitCalls(20) // it sends them to the next leader as long as it runs
		if slices.Contains(c.Running(), leader) {
			leader.End(syscall.SIGTERM) // it may have ended by itself
		}
		l.awaitSteps(5)
	}
	u.stop()
	l.pause()
	l.verify()
	t.Log(l.figures())
}
