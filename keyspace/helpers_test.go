package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// epoch is the time in ms at which tests begin.
const epoch = aoftest.Epoch

// opened is a keyspace for one test. At the end of the test its invariants are checked. Then it is closed,
// opened and checked again.
type opened struct {
	*Keyspace
	t     *testing.T
	clock *clock.Manual
	opt   Options
}

// stopBackground ends what runs in the background, for a test that does it by hand.
func (ks *Keyspace) stopBackground() {
	close(ks.stop)
	ks.background.Wait()
	ks.stop = make(chan struct{})
	ks.storage.Options.Stop = ks.stop
}

func open(t *testing.T, change ...func(*Options)) *opened {
	t.Helper()
	clock := clock.NewManual(epoch)
	o := &opened{t: t, clock: clock, opt: Options{
		FS: vfstest.NewMemory(), Dir: vfstest.Dir, Clock: clock, NoPurge: true, DeathsHeard: func() bool { return true },
	}}
	for _, f := range change {
		f(&o.opt)
	}
	o.start()
	t.Cleanup(func() {
		o.reopen()
		o.stop()
	})
	return o
}

func (o *opened) start() {
	o.t.Helper()
	ks, err := Open(o.opt)
	drill.Check(o.t, err)
	o.Keyspace = ks
	o.ListenersChanged() // most tests have hearers, so tables have timers, which Check verifies
	if err := ks.Check(); err != nil {
		o.t.Fatal("after opening:", err)
	}
}

func (o *opened) stop() {
	o.t.Helper()
	if err := o.Check(); err != nil {
		o.t.Error("before closing:", err)
	}
	drill.Report(o.t, o.Close())
}

// reopen closes and opens the keyspace and checks that the same items live.
func (o *opened) reopen() {
	o.t.Helper()
	before := o.dump()
	o.stop()
	o.start()
	after := o.dump()
	for at, it := range before {
		if after[at] != it {
			o.t.Fatalf("%v was %+v, is %+v after opening again", at, it, after[at])
		}
	}
	if len(after) != len(before) {
		o.t.Fatalf("%d items lived, %d do after opening again", len(before), len(after))
	}
}

// dirs counts the folders of newDir.
var dirs atomic.Int64

// newDir makes a folder with a name of its own.
func newDir(fsys vfs.FS) string {
	dir := fmt.Sprint("/dir-", dirs.Add(1))
	if err := fsys.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	return dir
}

// writeFile is os.WriteFile.
func writeFile(fsys vfs.FS, path string, content []byte) error {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Close())
}

type place struct{ container, id string }

// awaitWritable waits until the journal, which tries again by itself, can write.
func (o *opened) awaitWritable() {
	for o.Writable() != nil {
		runtime.Gosched()
	}
}

// dump returns all living items.
func (o *opened) dump() map[place]Item {
	all := make(map[place]Item)
	var tx Tx
	o.BeginSweep(&tx)
	for _, c := range tx.Containers() {
		tx.Scan(c, 0, 1<<30, func(id string, it Item) { all[place{c.Name(), id}] = it })
	}
	o.commit(&tx)
	return all
}

func (o *opened) commit(tx *Tx) {
	o.t.Helper()
	drill.Check(o.t, o.Wait(tx.Close()))
}

func (o *opened) put(container, id, body string, own int64) (it Item) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	it = tx.Put(tx.Container(container), id, Document, body, own)
	o.commit(&tx)
	return it
}

// putFor puts an item that ends after ttl seconds.
func (o *opened) putFor(container, id string, ttl expiry.TTL) {
	o.t.Helper()
	o.put(container, id, "{}", expiry.ExpireAt(o.clock.Now(), ttl))
}

func (o *opened) get(container, id string) (it Item, ok bool) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	it, ok = tx.Get(tx.Container(container), id)
	o.commit(&tx)
	return it, ok
}

func (o *opened) lives(container, id string) bool {
	o.t.Helper()
	_, ok := o.get(container, id)
	return ok
}

func (o *opened) delete(container, id string) (was bool) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	was = tx.Delete(tx.Container(container), id)
	o.commit(&tx)
	return was
}

func (o *opened) count(container string) (n int) {
	o.t.Helper()
	var tx Tx
	o.BeginSweep(&tx)
	n = tx.Count(tx.Container(container))
	o.commit(&tx)
	return n
}

// policy sets a container's default and creates a missing container.
func (o *opened) policy(container string, def expiry.TTL) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) {
		if c := tx.Container(container); c != nil {
			tx.SetPolicy(c, def, expiry.Strict)
		} else {
			tx.CreateContainer(container, def, expiry.Strict)
		}
	})
}

func (o *opened) catalogueTx(f func(tx *Tx)) {
	o.t.Helper()
	var tx Tx
	o.BeginAll(&tx)
	defer o.commit(&tx) // also when f ends the test
	f(&tx)
}

// storedItems returns the items that are confirmed in a store's file, by key.
func storedItems(t *testing.T, fsys vfs.FS, s *store.Store) map[string]Item {
	t.Helper()
	f := bytes.NewReader(vfstest.Read(t, fsys, s.Path()))
	all := make(map[string]Item)
	_, end, err := aof.Scan(f, s.Path(), f.Size(), aof.Store, &aof.Confirmed{Visit: func(o aof.Op) (err error) {
		if o.Del {
			delete(all, o.Key)
			return nil
		}
		it, _, err := record.Decode(o.Key, o.Rec)
		it.Body = strings.Clone(it.Body)
		all[strings.Clone(o.Key)] = it
		return err
	}})
	if err == nil && end != s.Sealed() {
		err = fmt.Errorf("%s is confirmed up to %d, not %d", s.Path(), end, s.Sealed())
	}
	drill.Check(t, err)
	return all
}

// nothingToUndo reports whether an error of Undo says that there is nothing to take back.
func nothingToUndo(err error) bool {
	_, ok := errors.AsType[*undo.NothingError](err)
	return ok
}
