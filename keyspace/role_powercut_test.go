package keyspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/repair"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// TestPowerCutOfANode cuts the power of a leader and of a follower at each fsync, while clients write, change
// rules and drop containers, deaths are logged, the majority comes and goes, and others make checkpoints,
// compact and purge. Each image of the disk is at one position of the log, no earlier than the durable one,
// and has exactly what the log has up to there.
func TestPowerCutOfANode(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{"leader": true, "follower": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := drill.Seed(t)
			d := &nodeDrill{t: t, log: newFakeLog(), r: rand.New(rand.NewPCG(seed, 1)), sums: make(map[uint64]nodeSum), turns: newTurns()}
			d.run(seed, leads)
			t.Logf("%d power cuts, %d images up to index %d", d.cuts, d.images, d.log.last().Index)
		})
	}
}

// nodeDrill is a node whose power is cut, and a follower that knows what the log has at each index.
type nodeDrill struct {
	t    *testing.T
	log  *fakeLog
	r    *rand.Rand // used with the disk's mutex held
	node *node

	reference *node
	sums      map[uint64]nodeSum

	cuts, images int
	turns        turns
}

// nodeSum is the digest at an index.
type nodeSum struct {
	sum   [32]byte
	items int64
}

func (d *nodeDrill) run(seed uint64, leads bool) {
	log := d.log
	few := func(o *Options) { o.Partitions = 3 }
	d.reference = newNode(d.t, log, few)
	defer func() { d.reference.abandon() }()
	sum, items := d.reference.DigestAt(epoch)
	d.sums[1] = nodeSum{sum, items}
	d.node = newNode(d.t, log, few)
	leader := d.node
	if !leads {
		leader = newNode(d.t, log, few)
		defer leader.abandon()
	}
	d.node.storage.Lock()
	d.node.storage.Options.Piece = 2
	d.node.storage.Unlock()
	leader.lead()
	disk := d.node.opt.FS.(*vfstest.Memory)
	disk.Look(func(vfstest.Disk) { disk.BeforeSync = d.cut })
	fails := rand.New(rand.NewPCG(seed, 2))
	log.set(func() {
		log.fail = func() error {
			if fails.IntN(10) == 0 {
				return replica.ErrNoMajority
			}
			return nil
		}
		log.lost = log.fail
	})
	followed := make(chan struct{})
	var all sync.WaitGroup
	for w := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 10+w))
			for d.turns.take() {
				for log.last().Index > d.node.Position().Index+20 && !drill.Done(d.turns.stop) {
					<-followed // a follower that falls behind has no power cuts
				}
				d.transact(leader, r)
			}
		})
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(seed, 3))
		defer close(followed)
		for !drill.Done(d.turns.stop) {
			if !leads {
				d.node.follow()
			}
			select {
			case followed <- struct{}{}:
			default:
			}
			d.disturb(leader, r)
		}
	})
	all.Wait()
	d.node.abandon()
}

// transact is a transaction of a client.
func (d *nodeDrill) transact(n *node, r *rand.Rand) {
	var tx Tx
	id := func() string { return fmt.Sprint("k", r.IntN(40)) }
	name := []string{"0", "1", "logged", "other"}[r.IntN(4)]
	switch r.IntN(12) {
	case 0:
		n.BeginAll(&tx)
		if c := tx.Container(name); c == nil {
			c = tx.CreateContainer(name, 5, expiry.Strict)
			if name == "logged" {
				drill.Report(d.t, tx.SetLog(c, LogSettings{Seconds: 20, MaxLen: 30}))
			}
		} else {
			tx.SetPolicy(c, expiry.TTL(1+r.IntN(20)), expiry.Strict)
		}
	case 1:
		n.BeginAll(&tx)
		if c := tx.Container(name); c != nil && !c.IsDatabase() {
			tx.Drop(c)
		} else if c != nil {
			tx.Flush(c)
		}
	case 2:
		n.BeginAll(&tx)
		tx.Swap(tx.Container("0"), tx.Container("1"))
	default:
		ids := []string{id(), id()}
		n.BeginKeys(&tx, ids)
		if c := tx.Container(name); c != nil {
			tx.Put(c, ids[0], Plain, strings.Repeat("v", 1<<r.IntN(12)), expiry.ExpireAt(tx.Now(), expiry.TTL(1+r.IntN(10))))
			tx.Delete(c, ids[1])
		}
	}
	if err := n.Wait(tx.Close()); err != nil && !errors.Is(err, replica.ErrNoMajority) {
		d.t.Error(err)
	}
}

// disturb lets time pass, and runs the background work of the node.
func (d *nodeDrill) disturb(leader *node, r *rand.Rand) {
	n, err := d.node, error(nil)
	switch r.IntN(8) {
	case 0:
		err = n.Save()
	case 1:
		if err = n.Save(); err == nil {
			err = n.storage.CompactAll()
		}
	case 2:
		n.storage.Lock()
		err = n.storage.RewriteStore(n.storage.Stores()[r.IntN(4)], nil)
		n.storage.Unlock()
	case 3:
		err = n.journal.Sync()
	case 4:
		n.PurgeOnce()
		leader.PurgeOnce()
	default:
		leader.clock.Advance(time.Duration(r.IntN(600)) * time.Millisecond)
		leader.sweep()
	}
	if err != nil && !errors.Is(err, replica.ErrNoMajority) {
		d.t.Error(err)
	}
}

// cut opens the images that a power cut may leave.
func (d *nodeDrill) cut(disk vfstest.Disk, _ string) error {
	if drill.Done(d.turns.stop) {
		return nil
	}
	d.turns.allow()
	durable := d.node.Durable()
	d.look(disk.Least(), durable)
	d.look(disk.Some(d.r), durable)
	d.look(disk.Clone(), durable)
	if d.cuts++; d.cuts >= powerCuts() || d.t.Failed() {
		close(d.turns.stop)
	}
	return nil
}

// look opens an image.
func (d *nodeDrill) look(image *vfstest.Memory, durable uint64) {
	d.images++
	tail, err := ReadReplica(image, vfstest.Dir)
	if err != nil {
		d.t.Errorf("cut %d: %v", d.cuts, err)
		return
	}
	if d.cuts%10 == 0 {
		if in, err := repair.Inspect(image, vfstest.Dir); err != nil || in.State == repair.Damaged {
			d.t.Errorf("cut %d: the folder is damaged: %v %+v", d.cuts, err, in)
		}
	}
	opt := d.node.opt
	opt.FS, opt.Replicator = image, d.log.seat()
	ks, err := Open(opt)
	if err != nil {
		d.t.Errorf("cut %d: %v", d.cuts, err)
		return
	}
	defer ks.Abandon()
	at := ks.Position()
	if at != tail.Position || at.Index < durable || at.Index > d.log.last().Index || string(ks.ReplicaState()) != "members" {
		d.t.Errorf("cut %d: the folder is at %+v, opened at %+v; up to %d was durable", d.cuts, tail, at, durable)
		return
	}
	d.learn(at.Index)
	sum, items := ks.DigestAt(at.Moment)
	if want := d.sums[at.Index]; sum != want.sum || items != want.items {
		d.t.Errorf("cut %d: %d items live at %+v, and %d by the log", d.cuts, items, at, want.items)
	}
	if err := ks.Check(); err != nil {
		d.t.Errorf("cut %d: %v", d.cuts, err)
	}
}

// learn has the reference follow the log up to an index.
func (d *nodeDrill) learn(index uint64) {
	ref := d.reference
	for _, e := range d.log.after(ref.Position().Index) {
		if e.Index > index {
			break
		}
		if err := ref.Apply(e.batch, replica.Tail{Position: e.Position}); err != nil {
			d.t.Error(err)
			return
		}
		sum, items := ref.DigestAt(e.Moment)
		d.sums[e.Index] = nodeSum{sum, items}
	}
}
