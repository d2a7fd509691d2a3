package keyspace

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/storage"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// fullDisks is how many drills of full disks are played.
func fullDisks() uint64 { return drill.Pick[uint64](4, 12, 200) }

// fullDrill plays a keyspace on a disk that gets full and has room again. After an acknowledged transaction
// all earlier ones are there for ever. What is on disk at any moment opens, full disk or not, and is a prefix
// of history.
type fullDrill struct {
	t    *testing.T
	r    *rand.Rand
	disk *vfstest.Memory
	o    *opened

	mu       sync.Mutex          // protects what follows
	history  []map[string]string // the states since the last acknowledged one, which is the first
	image    *vfstest.Memory     // the disk at some moment; nil: none
	possible []map[string]string // the states that the image may have
	opens    int
	torn     int // images with a torn journal

	opt          Options // of an image
	compareImage func(image *opened, state map[string]string)
}

// TestFullDiskDrill: a server survives a full disk, injected at any write, in every way it may go on.
func TestFullDiskDrill(t *testing.T) {
	t.Parallel()
	images, torn, full, freed, refused := 0, 0, 0, 0, 0
	for seed := range fullDisks() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &fullDrill{t: t, r: rand.New(rand.NewPCG(seed, 4)), history: []map[string]string{{}}}
			d.disk = vfstest.NewMemory()
			d.disk.Limit(400 << 10)
			c := clock.NewManual(epoch)
			d.o = &opened{t: t, clock: c, opt: Options{FS: d.disk, Dir: vfstest.Dir, preallocate: -1, Partitions: 2, Clock: c, NoPurge: true, Reserve: 64 << 10, Fsync: []Fsync{EverySec, Always, No}[d.r.IntN(3)]}}
			d.o.start()
			d.o.policy("c", expiry.Forever)
			d.opt, d.compareImage = d.o.opt, d.wasThere
			for range 200 {
				switch d.play() {
				case "full":
					full++
				case "freed":
					freed++
				case "refused":
					refused++
				}
				d.openImage()
				if t.Failed() {
					return
				}
			}
			d.disk.GiveBack()
			d.o.flush("c")
			d.remember(map[string]string{})
			d.save(true)
			d.o.storage.Disk.Refill()
			if err := d.o.Writable(); err != nil {
				t.Errorf("with room again: %v", err)
			}
			d.o.reopen()
			d.o.stop()
			images += d.opens
			torn += d.torn
		})
	}
	t.Logf("%d images opened, %d with a torn journal; %d transactions met a full disk, %d freed space on one, %d were refused", images, torn, full, freed, refused)
	if fullDisks() < 100 {
		full = 1 // the reserve makes this rare: one in a thousand transactions
	}
	if images == 0 || torn == 0 || full == 0 || freed == 0 || refused == 0 {
		t.Error("one of these never happened")
	}
}

// TestNoWindowOnAFullDisk: what frees space there frees it at once, unless somebody has asked for a window.
func TestNoWindowOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		disk, c := vfstest.NewMemory(), clock.NewManual(epoch)
		disk.Limit(400 << 10)
		o := &opened{t: t, clock: c, opt: Options{FS: disk, Dir: vfstest.Dir, preallocate: -1, Partitions: 2, Clock: c, NoPurge: true, Reserve: 64 << 10}}
		o.start()
		o.SetUndoWindowAuto()
		if asked {
			drill.Check(t, o.SetUndoWindow(60))
		}
		o.policy("c", expiry.Forever)
		for i := 0; o.Writable() == nil; i++ {
			o.put("c", fmt.Sprint(i), strings.Repeat("x", 8000), expiry.Never)
		}
		o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
		o.catalogueTx(func(tx *Tx) {
			if _, err := tx.Undo("c", ""); nothingToUndo(err) == asked {
				t.Errorf("asked for a window %v: %v", asked, err)
			}
		})
		disk.Limit(0)
		o.stop()
	}
}

// play does something.
func (d *fullDrill) play() (happened string) {
	o, id := d.o, fmt.Sprint("id-", d.r.IntN(60))
	switch n := d.r.IntN(30); {
	case n < 14:
		if o.Writable() != nil {
			return "refused"
		}
		body := fmt.Sprint(d.r.Uint64(), strings.Repeat("x", d.r.IntN(8000)))
		return d.change(func(tx *Tx, state map[string]string) {
			tx.Put(tx.Container("c"), id, Plain, body, expiry.Never)
			state[id] = body
		}, id)
	case n < 20:
		if o.Freeing() != nil {
			return "refused"
		}
		happened = d.change(func(tx *Tx, state map[string]string) {
			tx.Delete(tx.Container("c"), id)
			delete(state, id)
		}, id)
		if o.Writable() != nil && happened == "" {
			return "freed"
		}
		return happened
	case n == 20:
		if o.Freeing() != nil {
			return "refused"
		}
		return d.change(func(tx *Tx, state map[string]string) {
			tx.Flush(tx.Container("c"))
			clear(state)
		}, "")
	case n < 24:
		d.save(false)
	case n == 24:
		d.o.storage.CompactWasteful()
	case n == 25:
		o.storage.Disk.Refill()
	case n == 26:
		d.disk.Take(d.r.Int64N(100 << 10))
	case n == 27:
		d.disk.Take(0)
	case n == 28:
		d.disk.GiveBack()
	default:
		d.arm()
	}
	return ""
}

// change runs a transaction of one id, or of all if it is empty.
func (d *fullDrill) change(f func(tx *Tx, state map[string]string), id string) (happened string) {
	var tx Tx
	if id == "" {
		d.o.BeginAll(&tx)
	} else {
		d.o.BeginKey(&tx, id)
	}
	d.mu.Lock()
	state := maps.Clone(d.history[len(d.history)-1])
	f(&tx, state)
	d.history = append(d.history, state)
	d.mu.Unlock()
	if err := d.o.Wait(tx.Close()); err != nil {
		if !vfs.IsFull(err) {
			d.t.Errorf("a commit: %v", err)
		}
		return "full"
	}
	d.remember(state)
	return ""
}

// remember notes that a state is acknowledged.
func (d *fullDrill) remember(state map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = []map[string]string{state}
}

func (d *fullDrill) save(must bool) {
	if err := d.o.Save(); err != nil && (must || !vfs.IsFull(err)) {
		d.t.Errorf("a checkpoint: %v", err)
	}
}

// arm has one of the next writes take an image of the folder, as a kill would leave it then.
func (d *fullDrill) arm() {
	left := d.r.IntN(12)
	d.disk.Look(func(vfstest.Disk) {
		d.disk.AfterWrite = func(disk vfstest.Disk) {
			if left--; left >= 0 {
				return
			}
			d.disk.AfterWrite = nil
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.image == nil {
				d.image = disk.Clone()
				d.possible = slices.Clone(d.history)
			}
		}
	})
}

// openImage opens the image, on a full disk or one with room, and compares its state.
func (d *fullDrill) openImage() {
	d.mu.Lock()
	left := d.image
	d.image = nil
	d.mu.Unlock()
	if left == nil {
		return
	}
	if d.r.IntN(2) == 0 { // a power cut has torn the end of the journal
		files, err := journal.Files(left, vfstest.Dir)
		drill.Check(d.t, err)
		left.Limit(0)
		d.tear(left, files[len(files)-1].Path)
		left.Limit(400 << 10)
	}
	if d.r.IntN(2) == 0 {
		left.Take(0)
	}
	opt := d.opt
	opt.FS = left
	ks, err := Open(opt)
	if err != nil {
		d.t.Errorf("an image does not open: %v", err)
		return
	}
	image := &opened{Keyspace: ks, t: d.t, opt: opt}
	state := make(map[string]string)
	for at, it := range image.dump() {
		if at.container == "c" {
			state[at.id] = it.Body
		}
	}
	d.compareImage(image, state)
	drill.Report(d.t, ks.Check())
	if err := ks.Close(); err != nil && !vfs.IsFull(err) {
		d.t.Error(err)
	}
	d.opens++
}

// wasThere compares the state of an image with those that it may have.
func (d *fullDrill) wasThere(_ *opened, state map[string]string) {
	if !slices.ContainsFunc(d.possible, func(s map[string]string) bool { return maps.Equal(s, state) }) {
		d.t.Errorf("the image has %d items, a state that never was", len(state))
	}
}

// tear appends half a commit to a journal that ends with a whole one.
func (d *fullDrill) tear(left *vfstest.Memory, path string) {
	content := vfstest.Read(d.t, left, path)
	if _, end, err := aof.Scan(bytes.NewReader(content), path, int64(len(content)), aof.Journal, nil); err != nil || end < int64(len(content)) {
		return
	}
	half := aof.AppendOps(nil, []aof.Op{aoftest.Set("0:torn", strings.Repeat("x", 1+d.r.IntN(9000)))})
	vfstest.Write(d.t, left, path, append(content, half[:1+d.r.IntN(len(half)-1)]...))
	d.torn++
}

// flush empties a container.
func (o *opened) flush(container string) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container(container)) })
}

// TestJournalFitsIntoTheReserve: a checkpoint is due before it needs more room than the reserve has.
func TestJournalFitsIntoTheReserve(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Reserve, opt.Log = 100<<10, zerolog.Nop() })
	disk := o.opt.FS.(*vfstest.Memory)
	disk.Limit(2 << 30)
	for _, tt := range []struct{ free, want int64 }{{0, 50 << 10}, {400 << 10, 50 << 10}, {800 << 10, 100 << 10}, {1 << 30, journal.MinLimit}} {
		disk.GiveBack()
		disk.Take(tt.free)
		o.storage.LimitJournal()
		if got := o.journal.Limit(); got != tt.want {
			t.Errorf("with %d bytes free a checkpoint is due at %d bytes", tt.free, got)
		}
	}
	if fi, err := o.opt.FS.Stat(filepath.Join(o.opt.Dir, storage.ReserveName)); err != nil || fi.Size() != 100<<10 {
		t.Errorf("the reserve: %v, %v", fi, err)
	}
	o.opt.Reserve = 0
	o.reopen()
	if _, err := o.opt.FS.Stat(filepath.Join(o.opt.Dir, storage.ReserveName)); !os.IsNotExist(err) {
		t.Errorf("without a reserve: %v", err)
	}
}

// openOnSmallDisk opens a keyspace with a container c on a disk of 4 MB, without preallocation. The disk has
// room again before the keyspace is closed at the end of the test.
func openOnSmallDisk(t *testing.T, opt Options) (*opened, *vfstest.Memory) {
	t.Helper()
	c := clock.NewManual(epoch)
	disk := vfstest.NewMemory()
	disk.Limit(4 << 20)
	opt.FS, opt.Dir, opt.Clock, opt.NoPurge, opt.preallocate = disk, vfstest.Dir, c, true, -1
	o := &opened{t: t, clock: c, opt: opt}
	o.start()
	t.Cleanup(o.stop)
	t.Cleanup(disk.GiveBack)
	o.policy("c", expiry.Forever)
	return o, disk
}

// fill puts n items of 1000 bytes.
func (o *opened) fill(name string, n int) {
	o.t.Helper()
	for i := range n {
		o.put("c", fmt.Sprint(name, i), strings.Repeat("x", 1000), expiry.Never)
	}
}

// TestFlushAfterFailedCheckpoint: what a failed checkpoint has captured, and a flush has removed since, does
// not keep a full disk from getting room.
func TestFlushAfterFailedCheckpoint(t *testing.T) {
	t.Parallel()
	o, disk := openOnSmallDisk(t, Options{Partitions: 2, Reserve: 256 << 10, noCheckpoints: true})
	o.fill("stored-", 600)
	drill.Check(t, o.Save())
	o.fill("captured-", 600)
	disk.Take(0)
	if err := o.Save(); !vfs.IsFull(err) {
		t.Fatalf("a checkpoint on a full disk: %v", err)
	}
	o.flush("c")
	if err := o.Save(); err != nil {
		t.Errorf("after a flush: %v", err)
	}
	o.storage.Disk.Refill()
	if err := o.Writable(); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestDeletesOfTheLastRoom: when another program has taken the reserve but for its last part, no checkpoint
// that cannot end takes that from the commands that free space.
func TestDeletesOfTheLastRoom(t *testing.T) {
	t.Parallel()
	o, disk := openOnSmallDisk(t, Options{Partitions: 16, Reserve: 512 << 10})
	o.fill("stored-", 600)
	drill.Check(t, o.Save())
	o.fill("in-the-journal-", 60)
	o.storage.Lock() // against checkpoints of the background
	disk.Take(0)
	made := o.storage.Disk.MakeRoom(o.storage.Disk.Releases())
	disk.Take(0)
	o.storage.Unlock()
	if !made {
		t.Fatal("the reserve holds nothing")
	}
	for i := range 20 {
		o.delete("c", fmt.Sprint("stored-", i)) // the first releases the last part
		if err := o.Save(); !vfs.IsFull(err) {
			t.Fatalf("a checkpoint without room: %v", err)
		}
	}
	o.flush("c")
	if err := o.Save(); err != nil {
		t.Errorf("after a flush: %v", err)
	}
	o.storage.Disk.Refill()
	if err := o.Writable(); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
