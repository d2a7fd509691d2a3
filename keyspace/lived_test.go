package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// lived is a data folder with a history, as a crash has left it, and its living items. It has items of
// both kinds in several containers, overwritten, deleted and dead ones. They are in stores that were
// checkpointed several times, and in a journal with the changes since.
type lived struct {
	fs    *vfstest.Memory
	dir   string
	state map[place]Item
	t     *testing.T
}

// livedUntil is the time in ms to which state belongs.
const livedUntil = epoch + 29_000

func newLived(t *testing.T, seed uint64) *lived {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	o := open(t, func(opt *Options) { opt.Partitions = 3 })
	o.policy("orders", 100)
	o.policy("carts", expiry.Off)
	o.policy("gone", expiry.Forever)
	for round := range 4 {
		for range 60 {
			o.randomWrite(random, []string{"orders", "carts", "0", "gone"})
		}
		o.clock.Advance(7 * time.Second)
		switch round {
		case 0:
			o.policy("orders", 30)
		case 1:
			o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("carts")) })
		case 2:
			o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("gone")) })
			o.policy("gone", 50)
		}
		if round < 3 {
			drill.Check(t, o.Save())
		}
	}
	o.dump() // leases the clock to livedUntil
	l := &lived{fs: o.opt.FS.(*vfstest.Memory).Clone(), dir: o.opt.Dir, t: t}
	o.clock.Advance(leaseTime)
	if now := o.clock.Now(); now != livedUntil {
		t.Fatalf("it is %d ms later than it should be", now-livedUntil)
	}
	l.state = o.dump()
	return l
}

// randomWrite puts or deletes a random item.
func (o *opened) randomWrite(random *rand.Rand, containers []string) {
	o.t.Helper()
	name := containers[random.IntN(len(containers))]
	id := fmt.Sprint("id-", random.IntN(40))
	if random.IntN(5) == 0 {
		o.delete(name, id)
		return
	}
	kind, body := Document, fmt.Sprintf(`{"n":%d,"fill":"%s"}`, random.IntN(1e6), strings.Repeat("x", random.IntN(80)))
	if random.IntN(3) == 0 {
		kind, body = Plain, fmt.Sprintf("bytes \xff\r\n %x", random.Uint64())
	}
	own := []int64{expiry.Inherit, expiry.Never, o.clock.Now() + random.Int64N(60_000) + 1, expiry.CapAt(o.clock.Now() + random.Int64N(60_000) + 1)}[random.IntN(4)]
	var tx Tx
	o.BeginKey(&tx, id)
	tx.Put(tx.Container(name), id, kind, body, own)
	o.commit(&tx)
}

// starts returns the living items that a keyspace finds in a folder.
func starts(t *testing.T, fsys vfs.FS, dir string) (map[place]Item, error) {
	t.Helper()
	clock := clock.NewManual(livedUntil)
	ks, err := Open(Options{FS: fsys, Dir: dir, Clock: clock, NoPurge: true, Partitions: 3})
	if err != nil {
		return nil, err
	}
	o := &opened{Keyspace: ks, t: t, clock: clock}
	state := o.dump()
	o.stop()
	return state, nil
}

// fingerprint describes all files of a folder: name, size, mode, content.
func fingerprint(t *testing.T, fsys vfs.FS, dir string) (print string) {
	t.Helper()
	for _, name := range namesIn(t, fsys, dir) {
		path := filepath.Join(dir, name)
		fi, err := fsys.Lstat(path)
		drill.Check(t, err)
		print += fmt.Sprintln(path, fi.Size(), fi.Mode(), record.Sum(0, string(vfstest.Read(t, fsys, path))))
	}
	return print
}

// compare reports the items in which two states differ, but for those excused.
func compare(t *testing.T, what string, want, got map[place]Item, excused func(at place) bool) {
	t.Helper()
	both := maps.Clone(want)
	maps.Copy(both, got)
	for at := range both {
		if want[at] != got[at] && (excused == nil || !excused(at)) {
			t.Errorf("%s: %v was %+v, is %+v", what, at, want[at], got[at])
		}
	}
}
