package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestClusterSlowDisk has a large transaction written to slow disks. No leader is deposed, small writes and reads go on
// afterwards at the same leader, and the transaction is there as a whole, whatever its reply was. A reply that it failed comes
// within 3 s, and says that its fate is open.
func TestClusterSlowDisk(t *testing.T) {
	program, err := instrumented()
	if err != nil {
		t.Fatal(err)
	}
	const rate = 26_000_000
	sizes := []int{15, 60} // MB
	if testing.Short() {
		sizes = sizes[:1]
	}
	c := &nodes{t: t, program: program, args: ledgerArgs}
	for range 3 {
		c.add().env = []string{fmt.Sprintf("TEST_SLOW_DISK=%d", rate)}
	}
	for _, n := range c.all {
		n.start()
	}
	leader := c.leader()
	c.await("all nodes follow", func() bool { return c.others(leader)[0].votes(leader) && c.others(leader)[1].votes(leader) })
	term := c.term(leader)
	o := leader.options(leader.client)
	o.ReadTimeout = patience
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
		c.await("small writes go on", func() bool { return client.Set(context.Background(), "small", mb, 0).Err() == nil })
		if n := c.leader(); n != leader || c.term(leader) != term {
			t.Errorf("%d MB: the leader was %s in term %v and is %s in term %v", mb, leader.name, term, n.name, c.term(n))
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
		c.settle()
	}
}

// term returns the term that a node is in.
func (c *nodes) term(n *node) any {
	c.t.Helper()
	reply, err := n.ask(context.Background(), "CLUSTER", "STATUS")
	if err != nil {
		c.t.Fatal(err)
	}
	status, err := asMap(reply)
	if err != nil {
		c.t.Fatal(err)
	}
	return status["term"]
}
