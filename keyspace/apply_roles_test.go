package keyspace

import (
	"math/rand/v2"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/record"
	"mayfly/keyspace/storage"
	"mayfly/test/drill"
)

// nodes are the nodes of a cluster, of which one leads and writes a random history.
type nodes struct {
	t      *testing.T
	random *rand.Rand
	log    *fakeLog
	all    []*node
	leader *node
	h      *everything

	numbers numbersInLog
	given   uint32 // no node has given a container this number, or a greater one
}

// numbersInLog follows the numbers of containers in a log.
type numbersInLog struct {
	index   uint64          // of the last entry
	next    uint32          // one more than the greatest number
	seen    map[uint32]bool // numbers with a record; false: it was removed
	dropped map[uint32]bool // those of the entry that were removed in it
}

// read reads the entries behind the last one. A number is new only above all others, and never used again
// once its container is removed.
func (n *numbersInLog) read(t *testing.T, log *fakeLog) {
	t.Helper()
	if n.seen == nil {
		n.seen = make(map[uint32]bool)
	}
	for _, e := range log.after(n.index) {
		n.index, n.dropped = e.Index, make(map[uint32]bool)
		before := n.next
		for text := e.batch; text != ""; {
			o, rest, ok := aof.Cut(text)
			if !ok {
				t.Fatalf("entry %d has %.100q", e.Index, text)
			}
			text = rest
			if record.ContainsText(o.Key) {
				n.container(t, e.Index, before, o)
			} else if !record.InCatalogue(o.Key) {
				n.item(t, e.Index, o)
			}
		}
	}
}

// container reads the record of a container. All numbers before the entry are lesser than one.
func (n *numbersInLog) container(t *testing.T, index uint64, before uint32, o aof.Op) {
	t.Helper()
	number, err := record.ContainerNumber(o.Key)
	drill.Check(t, err)
	if o.Del {
		n.seen[number], n.dropped[number] = false, true
		return
	}
	if used, seen := n.seen[number]; seen && !used || !seen && number < before {
		t.Fatalf("entry %d gives the number %d again, or late; the next one was %d", index, number, before)
	}
	n.seen[number], n.next = true, max(n.next, number+1)
}

// item reads an item, whose container the log has, or removes in the same entry.
func (n *numbersInLog) item(t *testing.T, index uint64, o aof.Op) {
	t.Helper()
	key, _ := record.TouchedKey(o.Key)
	k, err := record.SplitKey(key)
	drill.Check(t, err)
	if !n.seen[k.Container] && !n.dropped[k.Container] {
		t.Fatalf("entry %d has the item %q of a container that is not there", index, o.Key)
	}
}

// checkNumbers: the next number of each node, and of its folder, is above all in the log, and none is ahead
// of what a leader has given. Only a rollback uses up a number that the log has not.
func (c *nodes) checkNumbers() {
	c.t.Helper()
	c.numbers.read(c.t, c.log)
	for i, n := range c.all {
		next, stored := n.Keyspace.catalogue.Next(), n.role.Tail().Next
		switch least := c.numbers.next; {
		case stored < least || next < stored || next > c.given:
			c.t.Fatalf("node %d goes on with the number %d, its folder with %d; the log's next is %d, %d was not given", i, next, stored, least, c.given)
		case !c.h.rollbacks && next != least:
			c.t.Fatalf("node %d goes on with the number %d, the log's next is %d", i, next, least)
		}
	}
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
	c.given = max(c.given, c.leader.Keyspace.catalogue.Next())
	c.leader.sweep()
	drill.Check(c.t, c.leader.journal.CommitAll())
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
		if n.Position() != c.leader.Position() {
			c.t.Fatalf("node %d is at %+v, the leader at %+v", i, n.Position(), c.leader.Position())
		}
	}
	c.checkNumbers()
}

// compareFolder compares a node with its folder, opened without a cluster.
func (c *nodes) compareFolder(n *node) {
	c.t.Helper()
	drill.Check(c.t, n.Halt())
	opt := Options{FS: n.opt.FS, Dir: newDir(n.opt.FS), Clock: clock.NewManual(n.Now()), NoPurge: true, noCheckpoints: true}
	n.storage.Lock()
	copyFolder(c.t, n.opt.FS, n.Dir(), opt.Dir)
	n.storage.Unlock()
	fresh, err := Open(opt)
	drill.Check(c.t, err)
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
	if lsn := tx.Close(); lsn == storage.Refused {
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

// TestApplyRoles: three nodes of which each leads at times, restarts and reads at others, while the leader
// writes a random history of everything. Whenever all have applied the same, they have the same, in memory
// and in their folders.
func TestApplyRoles(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 2, 100, func(t *testing.T, seed uint64) {
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
				drill.Check(t, c.leader.journal.CommitAll())
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
				drill.Check(t, n.Save())
			case step < 32 && n != c.leader:
				c.restart(n)
			case step < 35 && n != c.leader:
				c.elect(n)
			}
		}
		c.compare()
		for _, n := range c.all {
			drill.Report(t, n.Close())
		}
	})
}
