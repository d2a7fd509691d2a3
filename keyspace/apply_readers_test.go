package keyspace

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// TestApplyBesideReaders: those who read from a follower while it applies see each transaction of the leader
// as a whole, and no order of ids but an ascending one in a log.
func TestApplyBesideReaders(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	leader, follower := newNode(t, log), newNode(t, log)
	leader.lead()
	random := rand.New(rand.NewPCG(1, 2))
	h := &everything{t: t, random: random, opened: &opened{Keyspace: leader.Keyspace, t: t, clock: leader.clock, opt: leader.opt}}
	h.all(func(tx *Tx) { tx.CreateContainer("pairs", expiry.Forever, expiry.Strict) })
	drill.Check(t, leader.journal.CommitAll())
	follower.follow()
	const reads = 10 // of each reader beside each step
	var turns []chan struct{}
	var readers sync.WaitGroup
	read := func(f func(tx *Tx)) {
		turn := make(chan struct{}, reads)
		turns = append(turns, turn)
		readers.Go(func() {
			var tx Tx
			for range turn {
				f(&tx)
			}
		})
	}
	read(func(tx *Tx) {
		follower.BeginKeys(tx, []string{"x", "y", "z"})
		defer tx.Close()
		if c := tx.Container("pairs"); c != nil {
			x, _ := tx.Get(c, "x")
			y, _ := tx.Get(c, "y")
			if x.Body != y.Body {
				t.Errorf("x is %q, y is %q", x.Body, y.Body)
			}
		}
	})
	read(func(tx *Tx) {
		follower.BeginSweep(tx)
		for _, c := range tx.Containers() {
			tx.Count(c)
			tx.Stats(c)
			tx.Scan(c, 0, 10, func(string, Item) {})
			last := streamid.ID{}
			tx.Deaths(c).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
				if !last.Less(e.ID) {
					t.Errorf("%v follows %v", e.ID, last)
				}
				last = e.ID
				return true
			})
		}
		tx.Close()
	})
	read(func(tx *Tx) {
		var w Watcher
		follower.BeginAll(tx)
		for _, c := range tx.Containers() {
			tx.Watch(&w, c, "id3")
			tx.IndexStats(c)
			for _, name := range tx.Groups(c) {
				for range tx.Group(c, name).Items() {
				}
			}
		}
		tx.Close()
		follower.BeginKeys(tx, w.IDs())
		tx.Changed(&w)
		tx.Unwatch(&w)
		tx.Close()
		follower.PurgeOnce()
		follower.DigestAt(follower.Now())
	})
	for i := range drill.Pick(100, 300, 300) {
		for _, turn := range turns {
			for range reads {
				turn <- struct{}{}
			}
		}
		h.all(func(tx *Tx) {
			c := tx.Container("pairs")
			switch random.IntN(10) {
			case 0:
				tx.Flush(c)
			case 1:
				tx.Swap(c, tx.Container("1"))
			default:
				for _, id := range []string{"x", "y"} {
					tx.Put(c, id, Document, fmt.Sprintf(`{"n":%d}`, i), expiry.Inherit)
				}
			}
		})
		for range random.IntN(4) {
			h.step()
		}
		leader.sweep()
		drill.Check(t, leader.journal.CommitAll())
		follower.follow()
	}
	for _, turn := range turns {
		close(turn)
	}
	readers.Wait()
	now := leader.Now()
	if d := difference(leader.describe(now, true), follower.describe(now, true)); d != "" {
		t.Error("the follower differs from the leader: ", d)
	}
	for _, n := range []*node{leader, follower} {
		drill.Report(t, n.Check())
		drill.Report(t, n.Close())
	}
}

// TestWatchOnAFollower: who watches on a follower learns of what the leader does with an item, or with its
// container.
func TestWatchOnAFollower(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(tx *Tx, c *Container)
		want   bool
	}{
		"nothing":            {func(tx *Tx, c *Container) { tx.Put(c, "other", Plain, "1", expiry.Inherit) }, false},
		"put":                {func(tx *Tx, c *Container) { tx.Put(c, "id", Plain, "2", expiry.Inherit) }, true},
		"delete":             {func(tx *Tx, c *Container) { tx.Delete(c, "id") }, true},
		"flush":              {func(tx *Tx, c *Container) { tx.Flush(c) }, true},
		"drop":               {func(tx *Tx, c *Container) { tx.Drop(c) }, true},
		"drop and make":      {func(tx *Tx, c *Container) { tx.Drop(c); tx.CreateContainer("c", 1, expiry.Strict) }, true},
		"swap":               {func(tx *Tx, c *Container) { tx.Swap(c, tx.Container("1")) }, true},
		"a rule":             {func(tx *Tx, c *Container) { tx.SetPolicy(c, 1, expiry.Strict) }, true},
		"a rule it lives by": {func(tx *Tx, c *Container) { tx.SetPolicy(c, 1000, expiry.Strict) }, false},
	} {
		log := newFakeLog()
		leader, follower := newNode(t, log), newNode(t, log)
		leader.lead()
		h := &opened{Keyspace: leader.Keyspace, t: t, clock: leader.clock, opt: leader.opt}
		settle := func() {
			leader.sweep()
			drill.Check(t, leader.journal.CommitAll())
			follower.follow()
		}
		h.all(func(tx *Tx) {
			tx.Put(tx.CreateContainer("c", expiry.Forever, expiry.Strict), "id", Plain, "1", expiry.Inherit)
		})
		leader.clock.Advance(5 * time.Second)
		settle()
		var w Watcher
		var tx Tx
		follower.BeginKey(&tx, "id")
		tx.Watch(&w, tx.Container("c"), "id")
		tx.Close()
		h.all(func(tx *Tx) { tt.change(tx, tx.Container("c")) })
		leader.clock.Advance(5 * time.Second)
		settle()
		follower.BeginKeys(&tx, w.IDs())
		if got := tx.Changed(&w); got != tt.want {
			t.Errorf("%s: changed is %v", name, got)
		}
		tx.Unwatch(&w)
		tx.Close()
		leader.abandon()
		follower.abandon()
	}
}
