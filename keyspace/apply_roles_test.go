package keyspace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/eviction"
)

// nodes are the nodes of a cluster, of which one leads and writes a random history.
type nodes struct {
	t      *testing.T
	random *rand.Rand
	log    *fakeLog
	all    []*node
	leader *node
	h      *everything
}

// elect makes a node the leader.
func (c *nodes) elect(n *node) {
	c.t.Helper()
	if c.leader != nil {
		c.settle()
		c.leader.Follow()
	}
	n.lead()
	n.ListenersChanged()
	c.leader = n
	c.h.opened = &opened{Keyspace: n.Keyspace, t: c.t, clock: n.clock, opt: n.opt}
	c.h.evictBy(eviction.AllKeysLRU)
}

// settle commits all that the leader has changed, and lets all nodes apply it.
func (c *nodes) settle() {
	c.t.Helper()
	c.leader.sweep()
	if err := c.leader.journal.CommitAll(); err != nil {
		c.t.Fatal(err)
	}
	for _, n := range c.all {
		if n != c.leader {
			n.clock.Advance(time.Duration(c.leader.clock.Now()-n.clock.Now()) * time.Millisecond)
			n.follow()
		}
	}
}

// compare compares all nodes with the leader, and one with its folder.
func (c *nodes) compare() {
	c.t.Helper()
	c.settle()
	now := c.leader.Now()
	want := c.leader.describe(now, !c.h.rollbacks)
	sum, items := c.leader.DigestAt(now)
	for i, n := range c.all {
		if err := n.Check(); err != nil {
			c.t.Fatalf("node %d, which leads: %v: %v", i, n == c.leader, err)
		}
		if d := difference(want, n.describe(now, !c.h.rollbacks)); d != "" {
			c.t.Fatalf("node %d differs from the leader: %s", i, d)
		}
		if s, k := n.DigestAt(now); s != sum || k != items {
			c.t.Fatalf("node %d has the digest %x of %d items, the leader %x of %d", i, s, k, sum, items)
		}
		// A rollback uses numbers up that no log has: a former leader may be ahead.
		if a, b := n.Keyspace.catalogue.next.Load(), c.leader.Keyspace.catalogue.next.Load(); n.role.Tail().Next > a || a > b && !c.h.rollbacks {
			c.t.Fatalf("node %d goes on with the number %d, its folder has %d, the leader %d", i, a, n.role.Tail().Next, b)
		}
		if n.Position() != c.leader.Position() {
			c.t.Fatalf("node %d is at %+v, the leader at %+v", i, n.Position(), c.leader.Position())
		}
	}
}

// compareFolder compares a node with its folder, opened without a cluster.
func (c *nodes) compareFolder(n *node) {
	c.t.Helper()
	if err := n.Halt(); err != nil {
		c.t.Fatal(err)
	}
	opt := Options{Dir: c.t.TempDir(), Clock: clock.NewManual(n.Now()), NoPurge: true, noCheckpoints: true}
	n.storage.Lock()
	copyFolder(c.t, n.Dir(), opt.Dir)
	n.storage.Unlock()
	fresh, err := Open(opt)
	if err != nil {
		c.t.Fatal(err)
	}
	defer fresh.storage.Abandon()
	now := c.leader.Now()
	if d := difference(n.describe(now, !c.h.rollbacks), fresh.describe(now, !c.h.rollbacks)); d != "" {
		c.t.Fatalf("a folder differs from memory: %s", d)
	}
}

// read reads from a follower as clients do. It removes what is dead there.
func (c *nodes) read(n *node) {
	var tx Tx
	n.BeginSweep(&tx)
	for _, container := range tx.Containers() {
		tx.Count(container)
		tx.Scan(container, 0, 10, func(string, Item) {})
	}
	if lsn := tx.Close(); lsn == refusedLSN {
		c.t.Fatal("a follower refuses a read")
	}
	n.PurgeOnce()
}

// restart stops a follower, cleanly or not, and opens it again.
func (c *nodes) restart(n *node) {
	c.t.Helper()
	if c.random.IntN(2) == 0 {
		n.abandon()
	} else if err := n.Close(); err != nil {
		c.t.Fatal(err)
	}
	n.open()
	n.ListenersChanged()
	n.follow()
}

// TestApplyRoles: three nodes of which each leads at times, restarts and reads at others, while the leader writes a random
// history of everything. Whenever all have applied the same, they have the same, in memory and in their folders.
func TestApplyRoles(t *testing.T) {
	for seed := *applySeed; seed < *applySeed+uint64(*applySeeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 8))
			c := &nodes{t: t, random: random, log: newFakeLog(), h: &everything{t: t, random: random, rollbacks: seed%2 == 0}}
			for range 3 {
				c.all = append(c.all, newNode(t, c.log, func(o *Options) {
					o.Partitions = 1 + int(seed%4)
					o.DeathsHeard = func() bool { return seed%3 == 0 }
				}))
			}
			c.elect(c.all[0])
			for range 600 {
				c.h.step()
				n := c.all[random.IntN(3)]
				switch step := random.IntN(60); {
				case step < 10:
					c.compare()
				case step < 20:
					if err := c.leader.journal.CommitAll(); err != nil {
						t.Fatal(err)
					}
					if n != c.leader {
						n.follow()
					}
				case step < 26 && n != c.leader:
					c.read(n)
				case step < 28:
					c.compare()
					c.compareFolder(n)
				case step < 30:
					c.settle()
					if err := n.Save(); err != nil {
						t.Fatal(err)
					}
				case step < 32 && n != c.leader:
					c.restart(n)
				case step < 35 && n != c.leader:
					c.elect(n)
				}
			}
			c.compare()
			for _, n := range c.all {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
