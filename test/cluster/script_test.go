package cluster

import (
	"context"
	"mayfly/test/harness"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterScripts: the leader runs scripts, and the others copy what they change. A script that loops neither deposes the
// leader nor stops the log. A follower runs read-only scripts for clients that said READONLY.
func TestClusterScripts(t *testing.T) {
	ctx := context.Background()
	c := harness.StartCluster(t, 3, "--lua-time-limit", "1000", "--cluster-node-timeout", "500")
	leader := c.Leader()
	follower := c.Others(leader)[0]
	follower.AwaitServing()
	o := leader.Options(leader.ClientAddr)
	o.ReadTimeout = harness.Patience
	direct, stale := redis.NewClient(o), follower.Connect()
	defer direct.Close()
	defer stale.Close()
	eval := func(c *redis.Client, script string, keys ...string) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- c.Eval(ctx, script, keys).Err() }()
		return ended
	}
	// The second key is not named.
	for range 3 {
		if err := direct.Eval(ctx, "redis.call('INCR', KEYS[1]) return redis.call('INCR', 'undeclared')", []string{"k"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := stale.Eval(ctx, "return 1", []string{"k"}).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("EVAL at a follower: %v", err)
	}
	conn := stale.Conn()
	defer conn.Close()
	if err := conn.Do(ctx, "READONLY").Err(); err != nil {
		t.Fatal(err)
	}
	c.Await("the follower has what the script wrote", func() bool {
		n, err := conn.Do(ctx, "EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "k").Text()
		return err == nil && n == "3"
	})
	if err := conn.Do(ctx, "EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", 1, "k").Err(); err == nil || !strings.Contains(err.Error(), "not allowed from read-only scripts") {
		t.Errorf("a write in EVAL_RO at a follower: %v", err)
	}
	c.Settle()

	// Scripts that loop at the leader: it stays the leader, whatever they lock.
	term := c.Term(follower)
	for _, keys := range [][]string{{"k"}, nil} {
		script := harness.Endless
		if len(keys) == 0 {
			script = "redis.call('SET', 'k', 'half') " + script
		}
		ended := eval(direct, script, keys...)
		time.Sleep(2500 * time.Millisecond) // several times the timeout of nodes
		if got := c.Term(follower); got != term {
			t.Errorf("beside a script the term went from %v to %v", term, got)
		}
		err := direct.ScriptKill(ctx).Err()
		if len(keys) > 0 {
			if err != nil {
				t.Errorf("SCRIPT KILL: %v", err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), "UNKILLABLE ") {
			t.Errorf("SCRIPT KILL: %v", err)
		}
		if err := <-ended; err == nil {
			t.Error("the script has come to its end")
		}
		if err := direct.Set(ctx, "after", "1", 0).Err(); err != nil {
			t.Errorf("after the script: %v", err)
		}
	}
	if got := c.Term(leader); got != term || c.Leader() != leader {
		t.Errorf("the leader was %s in term %v, and is %s in term %v", leader.Name, term, c.Leader().Name, got)
	}
	if v, err := direct.Get(ctx, "k").Result(); err != nil || v != "3" {
		t.Errorf("the key is %q, %v", v, err)
	}
	c.Settle()

	// At a follower a script ends after a second: it applies nothing meanwhile.
	began := time.Now()
	err := conn.Do(ctx, "EVAL_RO", harness.Endless, 1, "k").Err()
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "ended after 1s") || took > harness.Patience {
		t.Errorf("a script that loops at a follower: %v after %s", err, took)
	}
	if err := direct.Set(ctx, "last", "1", 0).Err(); err != nil {
		t.Error(err)
	}
	c.Settle()

	// The leader hands over while a script loops: the script ends.
	ended := eval(direct, "redis.call('SET', KEYS[1], 'half') "+harness.Endless, "k")
	time.Sleep(200 * time.Millisecond)
	if reply, err := follower.Ask(ctx, "CLUSTER", "TRANSFER", follower.Name); err != nil {
		t.Logf("CLUSTER TRANSFER: %v, %v", reply, err)
	}
	if err := <-ended; err == nil {
		t.Error("the script has come to its end")
	}
	next := c.Leader()
	client := next.Connect()
	defer client.Close()
	c.Await("writes go on", func() bool { return client.Set(ctx, "next", "1", 0).Err() == nil })
	if v, err := client.Get(ctx, "k").Result(); err != nil || v != "3" {
		t.Errorf("the key is %q, %v", v, err)
	}
	c.Settle()
}

// TestClusterProxyScripts: a follower passes scripts on to the leader, which need not know what the follower has cached.
func TestClusterProxyScripts(t *testing.T) {
	ctx := context.Background()
	_, _, follower := startProxies(t)
	c := follower.Connect()
	defer c.Close()
	const body = "return redis.call('INCR', KEYS[1])"
	sha, err := c.ScriptLoad(ctx, body).Result()
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 3; want++ {
		if n, err := c.EvalSha(ctx, sha, []string{"n"}).Int(); err != nil || n != want {
			t.Errorf("EVALSHA: %d, %v; want %d", n, err, want)
		}
	}
	reply, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "n", 10, 0)
		p.EvalSha(ctx, sha, []string{"n"})
		return nil
	})
	if err != nil || reply[1].(*redis.Cmd).Val() != int64(11) {
		t.Errorf("EXEC: %v, %v", reply, err)
	}
}
