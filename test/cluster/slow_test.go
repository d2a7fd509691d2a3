package cluster

import (
	"context"
	"fmt"
	"mayfly/test/harness"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterSlowDisk has a large transaction written to slow disks. No leader is deposed, small writes and reads go on
// afterwards at the same leader, and the transaction is there as a whole, whatever its reply was. A reply that it failed comes
// within 3 s, and says that its fate is open.
func TestClusterSlowDisk(t *testing.T) {
	program, err := harness.Instrumented()
	if err != nil {
		t.Fatal(err)
	}
	const rate = 26_000_000
	sizes := []int{15, 60} // MB
	if testing.Short() {
		sizes = sizes[:1]
	}
	c := &harness.Cluster{T: t, Program: program, Args: ledgerArgs}
	for range 3 {
		c.Add().Env = []string{fmt.Sprintf("TEST_SLOW_DISK=%d", rate)}
	}
	for _, n := range c.Nodes {
		n.Start()
	}
	leader := c.Leader()
	c.Await("all nodes follow", func() bool { return c.Others(leader)[0].Votes(leader) && c.Others(leader)[1].Votes(leader) })
	term := c.Term(leader)
	o := leader.Options(leader.ClientAddr)
	o.ReadTimeout = harness.Patience
	client := redis.NewClient(o)
	defer client.Close()
	for _, mb := range sizes {
		value := strings.Repeat("0123456789abcdef", 1<<16)
		began := time.Now()
		commands, err := client.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
			for i := range mb {
				p.Set(context.Background(), fmt.Sprintf("large:%d:%d", mb, i), value, 0)
			}
			return nil
		})
		took := time.Since(began)
		t.Logf("%d MB in a transaction, replied after %v: %v", mb, took.Round(time.Millisecond), err)
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), "CLUSTERDOWN "):
			t.Errorf("%d MB: %v", mb, err)
		case err == nil && len(commands) != mb:
			t.Errorf("%d MB: %d replies", mb, len(commands))
		}
		c.Await("small writes go on", func() bool { return client.Set(context.Background(), "small", mb, 0).Err() == nil })
		if n := c.Leader(); n != leader || c.Term(leader) != term {
			t.Errorf("%d MB: the leader was %s in term %v and is %s in term %v", mb, leader.Name, term, n.Name, c.Term(n))
		}
		n, err := client.Exists(context.Background(), func() (keys []string) {
			for i := range mb {
				keys = append(keys, fmt.Sprintf("large:%d:%d", mb, i))
			}
			return keys
		}()...).Result()
		if err != nil || n != int64(mb) {
			t.Errorf("%d MB: %d keys of %d are there, %v", mb, n, mb, err)
		}
		c.Settle()
	}
}
