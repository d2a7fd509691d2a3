package cluster

import (
	"context"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterScripts: the leader runs scripts, and the others copy what they change. A follower runs
// read-only scripts for clients that said READONLY.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := harness.StartCluster(t, 3)
	leader := c.Leader()
	follower := c.Others(leader)[0]
	follower.AwaitServing()
	// The second key is not named.
	for range 3 {
		do(c, "EVAL", "redis.call('INCR', KEYS[1]) return redis.call('INCR', 'undeclared')", 1, "k")
	}
	o := follower.Options(follower.ClientAddr)
	o.ReadTimeout = harness.Patience
	stale := redis.NewClient(o)
	defer stale.Close()
	conn := stale.Conn()
	defer conn.Close()
	if err := conn.Eval(ctx, "return 1", []string{"k"}).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("EVAL at a follower: %v", err)
	}
	drill.Check(t, conn.Do(ctx, "READONLY").Err())
	c.Await("the follower has what the script wrote", func() bool {
		n, err := conn.Do(ctx, "EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "k").Text()
		return err == nil && n == "3"
	})
	if err := conn.Do(ctx, "EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", 1, "k").Err(); err == nil || !strings.Contains(err.Error(), "not allowed from read-only scripts") {
		t.Errorf("a write in EVAL_RO at a follower: %v", err)
	}
	c.Settle()

	// At a follower a script ends after a second: it applies nothing meanwhile.
	err := conn.Do(ctx, "EVAL_RO", harness.Endless, 1, "k").Err()
	if err == nil || !strings.Contains(err.Error(), "ended after 1s") {
		t.Errorf("a script that loops at a follower: %v", err)
	}
	do(c, "SET", "last", "1")
	c.Settle()
}

// TestClusterScriptLoops: a script that loops neither deposes the leader nor stops the log, whatever it
// locks. It ends by SCRIPT KILL, or when the leader hands over; in a drill also by itself.
func TestClusterScriptLoops(t *testing.T) {
	t.Parallel()
	c := startBrief(t, "--lua-time-limit", "100")
	do(c, "SET", "k", "whole")
	const writing = "redis.call('SET', KEYS[1], 'half') " + harness.Endless
	for _, tt := range []struct {
		script, refusal string // of SCRIPT KILL
		transfer        bool
	}{
		{harness.Endless, "", false},
		{writing, "UNKILLABLE ", true},
		{writing, "UNKILLABLE ", false}, // it ends by itself
	}[:drill.Pick(2, 2, 3)] {
		var leader *harness.Node
		var ended chan error
		keepsLead(c, func(n *harness.Node) {
			if ended != nil {
				<-ended // of the try before
			}
			leader, ended = n, loop(n, tt.script)
			time.Sleep(3 * c.NodeTimeout) // the others would elect another leader meanwhile
		})
		refusal := ""
		if _, err := leader.Ask(t.Context(), "SCRIPT", "KILL"); err != nil {
			refusal = err.Error()
		}
		if !strings.HasPrefix(refusal, tt.refusal) {
			t.Errorf("SCRIPT KILL: %q, want %q", refusal, tt.refusal)
		}
		c.Await("the end of the script", func() bool {
			if next := c.Others(leader)[0]; tt.transfer {
				_, _ = next.Ask(t.Context(), "CLUSTER", "TRANSFER", next.Name) // it takes its time; then the script ends
			}
			return len(ended) > 0
		})
		switch err := <-ended; {
		case err == nil:
			t.Error("the script has come to its end")
		case tt.transfer && strings.Contains(err.Error(), "has ended after"):
			t.Errorf("the script loops on although the leader hands over: %v", err)
		}
		if v := do(c, "GET", "k"); v != "whole" {
			t.Errorf("the key is %q", v)
		}
		do(c, "SET", "after", "1")
		c.Settle()
	}
}

// loop lets a script loop at the leader, and returns when it refuses other commands for it.
func loop(leader *harness.Node, script string) (ended chan error) {
	leader.T.Helper()
	ended = make(chan error, 1)
	go func() {
		o := leader.Options(leader.ClientAddr)
		o.ReadTimeout = harness.Patience
		client := redis.NewClient(o)
		defer client.Close()
		ended <- client.Eval(context.Background(), script, []string{"k"}).Err()
	}()
	leader.Await("the script to run", func() bool {
		_, err := leader.Ask(leader.T.Context(), "GET", "k")
		return err != nil && strings.HasPrefix(err.Error(), "BUSY ") || len(ended) > 0
	})
	return ended
}
