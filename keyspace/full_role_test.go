package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// fullNodes plays a leader and a follower, of which one has a disk that gets full and has room again.
type fullNodes struct {
	fullDrill
	log              *fakeLog
	leader, follower *node
	small            *node // the one with the small disk
	states           []stateAt
	least            uint64 // the index that the image has at least
	full, refused    int
}

// stateAt is what the container has after a transaction of the leader.
type stateAt struct {
	lsn   LSN
	items map[string]string
}

// TestFullDiskOfNodes: a leader and a follower survive a full disk as a single node does. What is on the disk
// at any moment opens, and is what the log has up to its position. With room again, both nodes are equal.
func TestFullDiskOfNodes(t *testing.T) {
	t.Parallel()
	full, refused, images, torn := 0, 0, 0, 0
	for seed := range fullDisks() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &fullNodes{fullDrill: fullDrill{t: t, r: rand.New(rand.NewPCG(seed, 9))}, log: newFakeLog()}
			d.begin(seed%2 == 0)
			for range 200 {
				d.step()
				d.openImage()
				if t.Failed() {
					return
				}
			}
			d.end()
			full, refused, images, torn = full+d.full, refused+d.refused, images+d.opens, torn+d.torn
		})
	}
	t.Logf("%d images opened, %d with a torn journal; %d commits met a full disk, %d transactions were refused", images, torn, full, refused)
	if images == 0 || torn == 0 || full == 0 || refused == 0 {
		t.Error("one of these never happened")
	}
}

// begin opens the nodes.
func (d *fullNodes) begin(leaderIsSmall bool) {
	change := func(o *Options) { o.Partitions, o.Reserve, o.preallocate = 2, 64<<10, -1 }
	d.leader, d.follower = newNode(d.t, d.log, change), newNode(d.t, d.log, change)
	if d.small = d.follower; leaderIsSmall {
		d.small = d.leader
	}
	d.leader.lead()
	d.leader.mustWait(d.leader.catalogue(func(tx *Tx) { tx.CreateContainer("c", expiry.Forever, expiry.Strict) }))
	d.states = []stateAt{{items: map[string]string{}}}
	d.disk = d.small.opt.FS.(*vfstest.Memory)
	d.disk.Limit(400 << 10)
}

// step does something.
func (d *fullNodes) step() {
	switch n := d.r.IntN(30); {
	case n < 16:
		d.write(n)
	case n < 20:
		d.follow()
	case n < 24:
		if err := d.small.Save(); err != nil && !vfs.IsFull(err) {
			d.t.Errorf("a checkpoint: %v", err)
		}
	case n == 24:
		d.small.storage.CompactWasteful()
	case n == 25:
		d.small.storage.Disk.Refill()
	case n == 26:
		d.disk.Take(d.r.Int64N(100 << 10))
	case n == 27:
		d.disk.Take(0)
	case n == 28:
		d.disk.GiveBack()
	default:
		d.arm()
	}
}

// write makes a transaction of the leader.
func (d *fullNodes) write(n int) {
	refusal := d.leader.Writable
	if n >= 10 {
		refusal = d.leader.Freeing
	}
	if refusal() != nil {
		d.refused++
		return
	}
	before := d.states[len(d.states)-1].items
	id, items := fmt.Sprint("id-", d.r.IntN(60)), maps.Clone(before)
	var tx Tx
	d.leader.BeginAll(&tx)
	c := tx.Container("c")
	switch {
	case n < 10:
		items[id] = fmt.Sprint(d.r.Uint64(), strings.Repeat("x", d.r.IntN(8000)))
		tx.Put(c, id, Plain, items[id], expiry.Never)
	case n < 15:
		tx.Delete(c, id)
		delete(items, id)
	default:
		tx.Flush(c)
		clear(items)
	}
	lsn := tx.Close()
	if !maps.Equal(items, before) { // else the LSN is that of an earlier change
		d.states = append(d.states, stateAt{lsn, items})
	}
	d.met(d.leader.Wait(lsn))
}

// met counts the errors of a full disk. There are no others.
func (d *fullNodes) met(err error) {
	switch {
	case err == nil:
		return
	case !vfs.IsFull(err):
		d.t.Errorf("a commit: %v", err)
	}
	d.full++
}

// follow has the follower apply what it lacks, as far as its disk has room.
func (d *fullNodes) follow() {
	for _, e := range d.log.after(d.follower.Position().Index) {
		if err := d.follower.Apply(e.batch, replica.Tail{Position: e.Position}); err != nil {
			d.met(err)
			return
		}
	}
}

// arm notes what an image has at least, too.
func (d *fullNodes) arm() {
	least := d.small.Position().Index
	d.fullDrill.arm()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.image == nil {
		d.least = least
	}
}

// openImage opens the image, and compares its state with that of the log at its position.
func (d *fullNodes) openImage() {
	d.opt, d.compareImage = d.small.opt, func(image *opened, state map[string]string) {
		at := image.Position()
		want, lsn := d.states[0].items, uint64(0)
		for _, e := range d.log.after(0)[:at.Index] {
			lsn = max(lsn, e.lsn)
		}
		for _, s := range d.states {
			if uint64(s.lsn) <= lsn {
				want = s.items
			}
		}
		if at.Index < d.least || !maps.Equal(state, want) {
			d.t.Errorf("the image is at %d, at least at %d was the disk; it has %d items, the log %d", at.Index, d.least, len(state), len(want))
		}
	}
	d.opt.Replicator = newFakeLog().seat()
	d.fullDrill.openImage()
}

// end gives the disk room, and compares the nodes with each other and with their folders.
func (d *fullNodes) end() {
	d.disk.GiveBack()
	var tx Tx
	d.leader.BeginAll(&tx)
	tx.Flush(tx.Container("c"))
	lsn := tx.Close()
	if err := d.small.Save(); err != nil && !vfs.IsFull(err) {
		d.t.Error(err)
	}
	d.small.storage.Disk.Refill()
	d.leader.mustWait(lsn)
	d.follow()
	d.leader.sweep()
	d.follow()
	for range 2 {
		d.follower.sameAs(d.leader)
		if d.follower.Position() != d.leader.Position() {
			d.t.Errorf("the follower is at %+v, the leader at %+v", d.follower.Position(), d.leader.Position())
		}
		if err := d.small.Writable(); err != nil {
			d.t.Errorf("with room again: %v", err)
		}
		if d.small == d.follower {
			drill.Report(d.t, d.small.Close())
			d.small.open()
			d.follow()
		}
	}
	d.leader.abandon()
	d.follower.abandon()
}
