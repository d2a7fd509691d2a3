package keyspace

import (
	"fmt"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestLoadedItemsAreThoseInMemory: what a journal overwrites, deletes or drops is not counted as loaded.
func TestLoadedItemsAreThoseInMemory(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.policy("dropped", expiry.Forever)
	for i := range 20 {
		o.put("c", fmt.Sprint(i), "{}", expiry.Inherit)
		o.put("dropped", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	drill.Check(t, o.Save())
	for i := range 20 {
		o.put("c", fmt.Sprint(i%10), "{}", expiry.Inherit)
	}
	o.put("c", "new", "{}", expiry.Inherit)
	o.delete("c", "0")
	o.delete("c", "new")
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("dropped")) })
	dir := newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.opt.Dir, dir)
	killed := &opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: dir, Clock: o.clock, NoPurge: true}}
	killed.start()
	defer killed.stop()
	if got := killed.Stats().LoadedItems; got != 19 {
		t.Errorf("%d items were loaded, not 19", got)
	}
}

// TestUntouched: a folder with an item, however small, or a container is not untouched, after a kill either.
func TestUntouched(t *testing.T) {
	t.Parallel()
	for _, touch := range []func(o *opened){
		func(o *opened) { o.put("0", "key", "{}", expiry.Inherit) },
		func(o *opened) { o.policy("orders", 1000) },
	} {
		o := open(t)
		if !o.Untouched() {
			t.Error("a new folder is not untouched")
		}
		o.reopen()
		if !o.Untouched() {
			t.Error("an empty folder is not untouched")
		}
		touch(o)
		o.kill()
		if o.Untouched() {
			t.Error("a folder with something in it is untouched")
		}
	}
}
