package cluster

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"mayfly/cluster/bus"
	"mayfly/test/drill"
)

// heardOf reports whether a node has got a message.
func (n *testNode) heardOf(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.heard, text)
}

// reaches waits until a message of one node arrives at the others, and not at itself. Messages that are sent
// while the nodes connect may be lost, so it sends several.
func (c *trio) reaches(from *testNode, others ...*testNode) {
	c.t.Helper()
	for _, n := range others {
		var sent []string
		c.eventually(fmt.Sprintf("a message of %s at %s", from.name, n.name), func() bool {
			text := fmt.Sprint(from.name, " ", len(sent), c.t.Name(), time.Now().UnixNano())
			from.Bus().Send([]bus.Message{{Kind: bus.Channel, Channel: "news", Text: text}})
			sent = append(sent, text)
			return slices.ContainsFunc(sent, n.heardOf)
		})
		if slices.ContainsFunc(sent, from.heardOf) {
			c.t.Errorf("%s has got its own message", from.name)
		}
	}
}

// TestMessagesBetweenNodes: each node reaches each other one, whichever leads, also after a transfer, a
// crash, and the loss of a disk, which gives a node another id.
func TestMessagesBetweenNodes(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	all := func() {
		t.Helper()
		for _, from := range c.nodes {
			for _, to := range c.nodes {
				if from != to {
					c.reaches(from, to)
				}
			}
		}
	}
	c.mustPut("key", "value")
	all()
	leader := c.leader()
	c.eventually("a transfer", func() bool { return leader.Transfer(t.Context(), "") == nil })
	all()
	crashed := c.leader()
	crashed.crash(t)
	c.mustPut("key", "other")
	crashed.start(t)
	all()
	lost := c.follower()
	lost.crash(t)
	check(t, os.RemoveAll(lost.dir))
	check(t, os.Mkdir(lost.dir, 0o700))
	lost.start(t)
	c.has(lost, "key", "other")
	all()
	c.locked(func(n *testNode) {
		seen := map[string]bool{}
		for _, text := range n.heard {
			if seen[text] {
				t.Errorf("%s has got %q twice", n.name, text)
			}
			seen[text] = true
		}
	})
}

// locked calls f for each node, with its mutex held.
func (c *trio) locked(f func(n *testNode)) {
	for _, n := range c.nodes {
		n.mu.Lock()
		f(n)
		n.mu.Unlock()
	}
}

// TestMessagesAfterReload: a leader that is deposed with uncommitted writes opens everything anew, and its
// messages go on.
func TestMessagesAfterReload(t *testing.T) {
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("key", "value")
	old := c.leader()
	old.running.Load().end(errReload)
	c.eventually("another incarnation", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.served == 2 })
	for _, n := range c.nodes {
		if n != old {
			c.reaches(old, n)
			c.reaches(n, old)
		}
	}
}
