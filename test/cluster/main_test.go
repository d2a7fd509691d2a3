// Package cluster tests clusters of processes: nodes that die, lose their disks or the network, are restarted
// and upgraded, while clients write and remember what was acknowledged.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	harness.CollectRarely()
	harness.Main(m)
}

// startBrief starts three nodes that elect a new leader soon after they have lost theirs.
func startBrief(t *testing.T, args ...string) *harness.Cluster {
	t.Helper()
	c := harness.NewCluster(t, args...)
	c.NodeTimeout = harness.Brief
	c.StartAll(3)
	return c
}

// instrumented is the program with the hooks of test builds. Few packages have some, so most are compiled for
// both programs. In a drill the keyspace also checks its invariants.
var instrumented = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(harness.Binary), "mayfly-hooks")
	return path, harness.Build(path, "-tags", drill.Pick("hooks", "hooks", "hooks,invariants"))
})

// newInstrumented returns a cluster without nodes, of programs with hooks.
func newInstrumented(t *testing.T, args ...string) *harness.Cluster {
	t.Helper()
	c := harness.NewCluster(t, args...)
	program, err := instrumented()
	drill.Check(t, err)
	c.Program = program
	return c
}

// do sends a command to the leader until it is not refused for lack of one. A removal without an answer may
// have been done.
func do(c *harness.Cluster, args ...any) (reply any) {
	c.T.Helper()
	unanswered := false
	c.Await(fmt.Sprintf("%v", args), func() bool {
		leader := c.FindLeader(c.T.Context())
		if leader == nil {
			return false
		}
		var err error
		reply, err = leader.Do(c.T.Context(), args...)
		if unanswered && err != nil && strings.Contains(err.Error(), "is neither a member nor announced") {
			return true
		}
		unanswered = unanswered || errors.Is(err, io.EOF)
		if err != nil && !harness.Temporary(err) && !errors.Is(err, redis.Nil) {
			c.T.Fatalf("%v: %v", args, err)
		}
		return err == nil
	})
	return reply
}

// transfer makes a node the leader.
func transfer(c *harness.Cluster, to *harness.Node) {
	c.T.Helper()
	c.Await("node "+to.Name+" to lead", func() bool {
		leader := c.FindLeader(c.T.Context())
		if leader != nil && leader != to {
			_, _ = leader.Ask(c.T.Context(), "CLUSTER", "TRANSFER", to.Name) // the next look shows what came of it
		}
		return leader == to
	})
}

// keepsLead plays a part during which the leader must stay. A busy machine may take the lead from it, but not
// each time.
func keepsLead(c *harness.Cluster, part func(leader *harness.Node)) {
	c.T.Helper()
	const tries = 5
	for range tries {
		leader := c.Leader()
		followers := c.Others(leader)
		term := func() int64 { return max(followers[0].Term(), followers[1].Term()) } // those that would elect another
		before := term()
		part(leader)
		if term() == before {
			return
		}
		c.T.Logf("node %s was deposed: once more", leader.Name)
	}
	c.T.Errorf("each of %d times the leader was deposed", tries)
}

// durations are times that a drill has measured.
type durations []time.Duration

func (d durations) String() string {
	if len(d) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(d))
	at := func(share float64) time.Duration {
		return sorted[int(share*float64(len(sorted)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("median %v, p90 %v, most %v (%d)", at(0.5), at(0.9), at(1), len(d))
}
