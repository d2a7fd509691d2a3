package cluster

import (
	"errors"
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterProxy: a follower with cluster-proxy serves plain clients as the leader does.
func TestClusterProxy(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, "--cluster-proxy", "yes")
	leader := c.Leader()
	follower := c.Others(leader)[0]
	follower.AwaitServing()
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", proto), func(t *testing.T) { proxyCommands(t, leader, follower, proto) })
	}
	t.Run("blocks", func(t *testing.T) { proxyBlocks(t, leader, follower) })
	t.Run("claims", func(t *testing.T) { proxyClaims(t, leader, follower) })
	t.Run("scripts", func(t *testing.T) { proxyScripts(t, follower) })
	t.Run("programs", func(t *testing.T) {
		host, port, _ := strings.Cut(follower.ClientAddr, ":")
		if out := harness.Run(t, nil, harness.Need(t, "redis-cli"), "-h", host, "-p", port, "SET", "cli", "1"); out != "OK" {
			t.Errorf("redis-cli: %q", out)
		}
		for _, depth := range []string{"1", "16"} {
			args := []string{"-h", host, "-p", port, "-n", "1000", "-c", "20", "-P", depth, "-t", "set,get,incr,mset", "--csv", "-e"}
			c.Await("redis-benchmark", func() bool { // it ends when the leader is lost
				out, err := exec.Command(harness.Need(t, "redis-benchmark"), args...).CombinedOutput()
				t.Logf("redis-benchmark: %v\n%s", err, out)
				return err == nil && !strings.Contains(string(out), "Error")
			})
		}
	})
}

// proxyCommands sends a follower commands of many kinds.
func proxyCommands(t *testing.T, leader, follower *harness.Node, proto int) {
	ctx := t.Context()
	direct := leader.Connect()
	defer direct.Close()
	o := follower.Options(follower.ClientAddr)
	o.Protocol, o.ClientName, o.PoolSize = proto, fmt.Sprint("plain", proto), 1
	c := redis.NewClient(o)
	defer c.Close()
	must := func(err error) {
		t.Helper()
		drill.Check(t, err)
	}
	equal := func(got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	p := c.Pipeline() // in order, with commands of the node itself between
	for i := range 3000 {
		p.Set(ctx, "n", i, 0)
		if i%500 == 0 {
			p.Echo(ctx, i)
		}
		p.Get(ctx, "n")
	}
	replies, err := p.Exec(ctx)
	must(err)
	want := -1
	for _, r := range replies {
		switch cmd := r.(type) {
		case *redis.StatusCmd:
			want++
		case *redis.StringCmd:
			equal(cmd.Val(), want)
		}
	}
	large := strings.Repeat("large\r\n", drill.Pick(1<<17, 1<<17, 1<<20))
	// On a busy machine its commit may take longer than a client waits for.
	harness.WaitFor(t, "a large value and reply", func() bool {
		err := c.Set(ctx, "large", large, 0).Err()
		var got []any
		if err == nil {
			got, err = c.MGet(ctx, "large", "missing", "large").Result()
		}
		if err == nil && (got[0] != large || got[1] != nil || got[2] != large) || err != nil && !harness.Temporary(err) {
			t.Fatalf("a large reply: %v", err)
		}
		return err == nil
	})
	must(c.Do(ctx, "DOC.PUT", "0", "d", `{"a":1}`).Err())
	equal(c.Do(ctx, "DOC.META", "0", "missing").Err(), redis.Nil)
	equal(c.Incr(ctx, "large").Err(), direct.Incr(ctx, "large").Err())

	must(c.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "a", 1, 0)
			p.Incr(ctx, "a")
			return nil
		})
		return err
	}, "a"))
	equal(direct.Get(ctx, "a").Val(), 2)
	equal(c.Watch(ctx, func(tx *redis.Tx) error {
		must(direct.Set(ctx, "a", 5, 0).Err())
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "a", 6, 0).Err() })
		return err
	}, "a"), redis.TxFailedErr)
	must(c.Watch(ctx, func(tx *redis.Tx) error { return direct.Set(ctx, "a", 7, 0).Err() }, "a")) // UNWATCH follows
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "a", 8, 0).Err() })
	must(err)
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "a", 9, 0); return p.ConfigGet(ctx, "port").Err() })
	if err == nil || !strings.HasPrefix(err.Error(), "EXECABORT ") {
		t.Errorf("a transaction about this node and the data: %v", err)
	}
	equal(direct.Get(ctx, "a").Val(), 8)

	conn := c.Conn()
	defer conn.Close()
	must(conn.Select(ctx, 3).Err())
	must(conn.Set(ctx, "selected", 3, 0).Err())
	_, err = conn.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Select(ctx, 4); return p.Set(ctx, "selected", 4, 0).Err() })
	must(err)
	equal(conn.Get(ctx, "selected").Val(), 4)
	must(conn.Select(ctx, 3).Err())
	equal(conn.Get(ctx, "selected").Val(), 3)
	if list := direct.ClientList(ctx).Val(); !strings.Contains(list, " name="+o.ClientName+" ") || !strings.Contains(list, " laddr="+follower.ClientAddr+" ") {
		t.Errorf("the leader's clients: %s", list)
	}
	must(conn.Select(ctx, 0).Err())

	must(conn.Do(ctx, "CLIENT", "NO-TOUCH", "ON").Err())
	must(conn.Do(ctx, "READONLY").Err())
	must(conn.Get(ctx, "a").Err())
	must(conn.Do(ctx, "READWRITE").Err())
	if n, err := conn.Wait(ctx, 1, time.Second).Result(); err != nil || n < 1 {
		t.Errorf("WAIT: %d, %v", n, err)
	}
}

// proxyBlocks: a command that blocks waits at the leader, and ends there when its client leaves.
func proxyBlocks(t *testing.T, leader, follower *harness.Node) {
	ctx := t.Context()
	c, direct := follower.Connect(), leader.Connect()
	defer c.Close()
	defer direct.Close()
	drill.Check(t, c.Do(ctx, "CONTAINER.CREATE", "carts", "TTL", "100", "LOG", "1000").Err())
	blocked := func() bool { return strings.Contains(direct.ClientList(ctx).Val(), "flags=b ") }
	for range 2 {
		conn := c.Conn()
		done := make(chan error, 1)
		go func() {
			done <- conn.Process(ctx, redis.NewCmd(ctx, "XREAD", "BLOCK", "0", "STREAMS", "__keyevent@carts__:expired", "$"))
		}()
		leader.Await("the block", blocked)
		_ = conn.Close()
		c.Close()
		<-done
		leader.Await("its end", func() bool { return !blocked() })
		c = follower.Connect()
	}
}

// proxyClaims: a worker that waits at a follower takes over what another one has had for too long.
func proxyClaims(t *testing.T, leader, follower *harness.Node) {
	const stream = "__keyevent@claimed__:expired"
	ctx := t.Context()
	direct, c := leader.Connect(), follower.Connect()
	defer direct.Close()
	defer c.Close()
	must := func(err error) {
		t.Helper()
		drill.Check(t, err)
	}
	must(direct.Do(ctx, "CONTAINER.CREATE", "claimed", "TTL", "1", "LOG", "1000").Err())
	must(direct.XGroupCreate(ctx, stream, "g", "0").Err())
	must(direct.Do(ctx, "DOC.PUT", "claimed", "1", "{}").Err())
	args := func(consumer string, claim time.Duration) *redis.XReadGroupArgs {
		return &redis.XReadGroupArgs{Group: "g", Consumer: consumer, Streams: []string{stream, ">"}, Block: 30 * time.Second, Claim: claim}
	}
	read, err := direct.XReadGroup(ctx, args("crashes", 0)).Result()
	must(err)
	taken, err := c.XReadGroup(ctx, args("takes over", 20*time.Millisecond)).Result()
	must(err)
	m := taken[0].Messages[0]
	if m.ID != read[0].Messages[0].ID || m.MillisElapsedFromDelivery < 20 || m.DeliveredCount != 1 {
		t.Errorf("a worker at a follower takes over %+v", m)
	}
	if list, err := direct.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: stream, Group: "g", Start: "-", End: "+", Count: 9}).Result(); err != nil || len(list) != 1 || list[0].Consumer != "takes over" {
		t.Errorf("pending: %+v, %v", list, err)
	}
}

// proxyScripts: a follower passes scripts on to the leader, which need not know what the follower has cached.
func proxyScripts(t *testing.T, follower *harness.Node) {
	ctx := t.Context()
	c := follower.Connect()
	defer c.Close()
	const body = "return redis.call('INCR', KEYS[1])"
	sha, err := c.ScriptLoad(ctx, body).Result()
	drill.Check(t, err)
	for want := 1; want <= 3; want++ {
		if n, err := c.EvalSha(ctx, sha, []string{"counted"}).Int(); err != nil || n != want {
			t.Errorf("EVALSHA: %d, %v; want %d", n, err, want)
		}
	}
	reply, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "counted", 10, 0)
		p.EvalSha(ctx, sha, []string{"counted"})
		return nil
	})
	if err != nil || reply[1].(*redis.Cmd).Val() != int64(11) {
		t.Errorf("EXEC: %v, %v", reply, err)
	}
}

// TestClusterProxyFailover: clients of a follower go on while leaders are killed. None has its connection
// broken, no acknowledged write is lost, and none is written twice.
func TestClusterProxyFailover(t *testing.T) {
	t.Parallel()
	c := startBrief(t, "--cluster-proxy", "yes")
	follower := c.Others(c.Leader())[0]
	follower.AwaitServing()
	const workers = 6
	var (
		wg            sync.WaitGroup
		stopped       atomic.Bool
		acked, broken [workers]int64 // replies and errors of unknown fate
		slowest       atomic.Int64
	)
	for w := range workers {
		wg.Go(func() {
			o := follower.Options(follower.ClientAddr)
			o.ReadTimeout = harness.Patience
			client := redis.NewClient(o)
			defer client.Close()
			conn := client.Conn()
			defer conn.Close()
			id := conn.ClientID(t.Context()).Val()
			for !stopped.Load() && !t.Failed() {
				began := time.Now()
				var err error
				if w%2 == 0 {
					err = conn.Incr(t.Context(), fmt.Sprint("counter", w)).Err()
				} else {
					_, err = conn.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
						p.Incr(t.Context(), fmt.Sprint("counter", w))
						return p.Incr(t.Context(), fmt.Sprint("twin", w)).Err()
					})
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				said := redis.Error(nil)
				switch {
				case err == nil:
					acked[w]++
				case errors.As(err, &said) && strings.Contains(said.Error(), "CLUSTERDOWN "): // EXECABORT names it, too: it did not run
				case errors.As(err, &said) && strings.HasPrefix(said.Error(), "UNCERTAIN "):
					broken[w]++
				default:
					t.Errorf("worker %d: %v", w, err)
				}
			}
			if now := conn.ClientID(t.Context()).Val(); now != id {
				t.Errorf("the connection of worker %d broke", w)
			}
		})
	}
	total := func() (sum int64) { // it races with the workers on purpose: only progress matters
		client := follower.Connect()
		defer client.Close()
		for w := range workers {
			n, _ := client.Get(t.Context(), fmt.Sprint("counter", w)).Int64()
			sum += n
		}
		return sum
	}
	progress := func() {
		t.Helper()
		before := total()
		c.Await("writes through the follower", func() bool { return total() > before+50 })
	}
	progress()
	for range drill.Pick(1, 1, 10) {
		if c.Leader() == follower { // another is to lead
			transfer(c, c.Others(follower)[0])
			progress()
		}
		leader := c.Leader()
		leader.Kill()
		progress()
		leader.Start()
		leader.AwaitServing()
	}
	for _, n := range c.Nodes { // a change in order, there and back
		transfer(c, n)
		progress()
	}
	stopped.Store(true)
	wg.Wait()
	client := follower.Connect()
	defer client.Close()
	acks, unknown := int64(0), int64(0)
	for w := range workers {
		n, err := client.Get(t.Context(), fmt.Sprint("counter", w)).Int64()
		if err != nil || n < acked[w] || n > acked[w]+broken[w] {
			t.Errorf("worker %d: the counter is %d (%v), %d were acknowledged, %d have an unknown fate", w, n, err, acked[w], broken[w])
		}
		if twin := client.Get(t.Context(), fmt.Sprint("twin", w)).Val(); w%2 == 1 && twin != fmt.Sprint(n) {
			t.Errorf("worker %d: a transaction was run in part: %d and %s", w, n, twin)
		}
		acks, unknown = acks+acked[w], unknown+broken[w]
	}
	t.Logf("%d writes acknowledged through a follower, %d refused or of unknown fate, the longest wait %v", acks, unknown, time.Duration(slowest.Load()).Round(time.Millisecond))
}
