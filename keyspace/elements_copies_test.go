package keyspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/elements"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// TestHashFollower: a follower has the same living hashes, keys with the same times and etags, and the same
// pages as the leader, whatever that writes, purges or takes back.
func TestHashFollower(t *testing.T) {
	t.Parallel()
	first := drill.Seed(t)
	for n := range drill.Pick[uint64](2, 4, 100) {
		seed := first + n
		log := newFakeLog()
		leader, follower := newNode(t, log), newNode(t, log)
		leader.lead()
		if err := leader.AllowCollections(); err != nil {
			t.Fatal(err)
		}
		m := &hashModel{
			opened: &opened{Keyspace: leader.Keyspace, t: t, clock: leader.clock, opt: leader.opt},
			random: rand.New(rand.NewPCG(seed, 7)), keys: make(map[place]*modelHash),
		}
		m.policy("left", 30)
		m.policy("right", expiry.Forever)
		for range 150 {
			switch m.random.IntN(8) {
			case 0:
				leader.clock.Advance(time.Duration(m.random.IntN(3000)) * time.Millisecond)
			case 1:
				m.letRest()
				leader.PurgeOnce()
				leader.mustWait(leader.journal.Last())
			case 2:
				before := cloneKeys(m.keys)
				var tx Tx
				m.BeginAll(&tx)
				m.write(&tx)
				m.write(&tx)
				tx.Rollback()
				m.keys = before
			default:
				var tx Tx
				m.BeginAll(&tx)
				m.write(&tx)
				m.write(&tx)
				m.commit(&tx)
			}
			follower.follow()
			leader.sameAs(follower)
			sameKeys(t, leader, follower)
			if t.Failed() {
				t.Fatalf("play it again with seed %d", seed)
			}
		}
		leader.abandon()
		follower.abandon()
	}
}

// sameKeys compares the times and etags of keys.
func sameKeys(t *testing.T, a, b *node) {
	t.Helper()
	for _, name := range []string{"left", "right"} {
		for _, id := range modelKeys {
			now := a.Now()
			var items [2]Item
			for i, n := range []*node{a, b} {
				var tx Tx
				n.lockAll(&tx)
				p := n.partitionOf(id)
				if table := tx.Container(name).tables[p.Number]; table != nil {
					if e := table.Find(id); e != nil && !e.Dead(tx.Container(name).Policy(), now) && !table.IsHollow(e, tx.Container(name).Policy().DeadLimits(now)) {
						items[i] = table.Item(e)
					}
				}
				tx.Close()
			}
			if items[0] != items[1] {
				t.Errorf("%s %s is %+v, on the follower %+v", name, id, items[0], items[1])
			}
		}
	}
}

// TestHashPowerCut cuts the power at fsyncs while hashes are written, purged and checkpointed: each image of
// the disk has the hashes of one moment, and nothing that was acknowledged is missing.
func TestHashPowerCut(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	disk := vfstest.NewMemory()
	r := rand.New(rand.NewPCG(seed, 3))
	type image struct {
		left  *vfstest.Memory
		acked int
	}
	var mu sync.Mutex
	var images []image
	acked, cuts := 0, 0
	m := &hashModel{
		opened: open(t, func(o *Options) { o.FS, o.Partitions, o.Fsync, o.noCheckpoints = disk, 2, Always, true }),
		random: rand.New(rand.NewPCG(seed, 7)), keys: make(map[place]*modelHash),
	}
	if err := m.AllowCollections(); err != nil {
		t.Fatal(err)
	}
	m.policy("left", 30)
	m.policy("right", expiry.Forever)
	m.storage.Lock()
	m.storage.Options.Piece = 2
	m.storage.Unlock()
	states := []map[place]*modelHash{cloneKeys(m.keys)}
	disk.BeforeSync = func(d vfstest.Disk, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if cuts++; cuts%3 == 0 {
			images = append(images, image{d.Least(), acked}, image{d.Some(r), acked})
		}
		return nil
	}
	for range drill.Pick(40, 100, 1000) {
		switch m.random.IntN(8) {
		case 0:
			m.clock.Advance(time.Duration(m.random.IntN(3000)) * time.Millisecond)
		case 1:
			m.letRest()
			m.PurgeOnce()
			if err := m.Wait(m.journal.Last()); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := errors.Join(m.Save(), m.storage.CompactAll()); err != nil {
				t.Fatal(err)
			}
		default:
			var tx Tx
			m.BeginAll(&tx)
			for range 1 + m.random.IntN(3) {
				m.write(&tx)
			}
			states = append(states, cloneKeys(m.keys))
			m.commit(&tx)
			mu.Lock()
			acked = len(states) - 1
			mu.Unlock()
		}
	}
	mu.Lock()
	disk.BeforeSync = nil
	mu.Unlock()
	if len(images) < 20 {
		t.Fatalf("%d images", len(images))
	}
	for i, im := range images {
		c := clock.NewManual(m.clock.Now())
		ks, err := Open(Options{FS: im.left, Dir: vfstest.Dir, Partitions: 2, Clock: c, NoPurge: true})
		if err != nil {
			t.Fatal(i, err)
		}
		var last error
		found := false
		for k := im.acked; k < min(im.acked+2, len(states)) && !found; k++ {
			last = m.sameAs(ks, states[k], true)
			found = last == nil
		}
		if !found {
			t.Errorf("image %d, after %d transactions: %v", i, im.acked, last)
		}
		if err := errors.Join(ks.Check(), ks.Close()); err != nil {
			t.Error(fmt.Sprint(i), err)
		}
	}
}

// TestPagesThatAreReplaced makes a large set anew again and again: what the former ones took does not pile
// up, whether writers come without a pause or the purge has time.
func TestPagesThatAreReplaced(t *testing.T) {
	t.Parallel()
	ks := open(t)
	drill.Check(t, ks.AllowCollections())
	var tx Tx
	all := func(yield func(Element) bool) {
		for i := range 5000 {
			if !yield(Element{Field: fmt.Sprint("member", i)}) {
				return
			}
		}
	}
	replace := func(times int) {
		ks.BeginKey(&tx, "a")
		for range times {
			x, _ := tx.EditElements(tx.Container("0"), "a", SetKind)
			x.Replace(all)
			x.Close()
		}
		drill.Check(t, ks.Wait(tx.Close()))
	}
	replace(1)
	one := ks.Used()
	for range 20 {
		replace(1)
	}
	if now := ks.Used(); now > 3*one {
		t.Errorf("one set takes %d bytes, after 20 others %d", one, now)
	}
	replace(20)
	ks.purge.Whole()
	if now := ks.Used(); now > 3*one {
		t.Errorf("one set takes %d bytes, after 20 of one transaction and a purge %d", one, now)
	}
}

// TestCopiesOfASortedSetChangeSideBySide: the copies share their order at first, and each is changed under
// the lock of its own partition.
func TestCopiesOfASortedSetChangeSideBySide(t *testing.T) {
	t.Parallel()
	o := open(t, func(o *Options) { o.Partitions = 4 })
	drill.Check(t, o.AllowCollections())
	ids := []string{"a", "b", "c", "d", "e", "f"}
	member := func(n int) Element {
		e := elements.Scored{Score: float64(n % 50)}.Element()
		e.Field = fmt.Sprint("member", n)
		return e
	}
	var tx Tx
	o.BeginAll(&tx)
	c := tx.Container("0")
	x, _ := tx.EditElements(c, ids[0], ZSetKind)
	for n := range 3000 {
		x.Set(member(n))
	}
	x.Close()
	for _, id := range ids[1:] {
		tx.Move(c, ids[0], c, id, expiry.Inherit, true)
	}
	o.commit(&tx)
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			for n := range 300 {
				var tx Tx
				o.BeginKey(&tx, id)
				x, _ := tx.EditElements(tx.Container("0"), id, ZSetKind)
				x.Delete(member(n * 10).Field)
				x.Set(member(4000 + n + i))
				x.Close()
				tx.Close()
			}
		})
	}
	all.Wait()
	drill.Check(t, o.Check())
	o.BeginAll(&tx)
	defer tx.Close()
	for i, id := range ids {
		want := make(map[string]Element)
		for n := range 3000 {
			if n%10 != 0 {
				want[member(n).Field] = member(n)
			}
		}
		for n := range 300 {
			want[member(4000+n+i).Field] = member(4000 + n + i)
		}
		h, _, _ := tx.Elements(tx.Container("0"), id)
		if err := sameSortedSet(&h, want); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
