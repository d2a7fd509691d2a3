package keyspace

import (
	"testing"
	"time"
	"unsafe"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestWatchOfWhatUndoBringsBack: what an undone rule had killed is written for those who watch it, whenever
// their watch began. What it had not killed is not.
func TestWatchOfWhatUndoBringsBack(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.SetUndoWindow(100))
	o.policy("c", 1000)
	o.put("c", "killed", "{}", expiry.Inherit)
	o.put("c", "never", "{}", expiry.Never)
	watch := func(id string) (w Watcher) {
		var tx Tx
		o.BeginKey(&tx, id)
		tx.Watch(&w, tx.Container("c"), id)
		o.commit(&tx)
		return w
	}
	changed := func(w *Watcher) bool {
		var tx Tx
		o.BeginKeys(&tx, w.IDs())
		defer o.commit(&tx)
		return tx.Changed(w)
	}
	before, other := watch("killed"), watch("never")
	o.clock.Advance(10 * time.Second)
	o.policy("c", 5)
	meanwhile := watch("killed")
	o.put("c", "young", "{}", expiry.Inherit)
	young := watch("young")
	o.catalogueTx(func(tx *Tx) {
		if done, err := tx.Undo("c", ""); err != nil || done == nil {
			t.Fatal(done, err)
		}
	})
	if !changed(&before) || !changed(&meanwhile) || changed(&other) || changed(&young) {
		t.Errorf("changed: %v, %v, want true; %v, %v, want false", changed(&before), changed(&meanwhile), changed(&other), changed(&young))
	}
	after := watch("killed")
	if changed(&after) {
		t.Error("a watch that began afterwards has seen a change")
	}
}

// Undo keeps no part of the name that it is given: that may be a view of a buffer which is used again.
func TestUndoCopiesTheName(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.SetUndoWindow(100))
	o.policy("orders", 10)
	o.put("orders", "k", "{}", expiry.Inherit)
	for _, as := range []string{"", "before"} {
		o.catalogueTx(func(tx *Tx) {
			tx.Drop(tx.Container("orders"))
			buffer := []byte("orders" + as)
			name, other := unsafe.String(&buffer[0], len("orders")), unsafe.String(&buffer[len("orders")-1], len(as)+1)[1:]
			if done, err := tx.Undo(name, other); done == nil || err != nil {
				t.Fatal(done, err)
			}
			clear(buffer)
		})
		name := "orders"
		if as != "" {
			name = as
		}
		if !o.lives(name, "k") {
			t.Errorf("%s is not there", name)
		}
	}
}

// TestFlushOfTheDead: a flush where nothing lives or can live again opens no window, however far the purge
// is. One of the dead that can come back does.
func TestFlushOfTheDead(t *testing.T) {
	t.Parallel()
	for _, purged := range []bool{true, false} {
		o := open(t)
		drill.Check(t, o.SetUndoWindow(100))
		flush := func() { o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) }) }
		undo := func() (what expiry.Action) {
			o.catalogueTx(func(tx *Tx) {
				done, err := tx.Undo("c", "")
				if err != nil && !nothingToUndo(err) {
					t.Fatal(err)
				}
				if done != nil {
					what = done.What
				}
			})
			return what
		}
		o.policy("c", 10)
		o.put("c", "k", "{}", expiry.Inherit)
		o.clock.Advance(11 * time.Second)
		if purged {
			o.PurgeOnce()
		}
		flush()
		if what := undo(); what != "" {
			t.Errorf("purged %v: a flush of the dead has a window: %s is taken back", purged, what)
		}
		o.put("c", "k", "{}", expiry.Inherit)
		o.clock.Advance(5 * time.Second)
		o.policy("c", 3)
		flush()
		for _, want := range []expiry.Action{expiry.Flushed, expiry.Set, ""} {
			if what := undo(); what != want {
				t.Errorf("purged %v: %q is taken back, want %q", purged, what, want)
			}
		}
		if !o.lives("c", "k") {
			t.Errorf("purged %v: what can come back does not", purged)
		}
	}
}

// TestUndoIntoAnotherContainer: what was dead when it was flushed stays dead in a container that was made
// since, however long its default is.
func TestUndoIntoAnotherContainer(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.SetUndoWindow(100))
	undo := func(name, as string) func(tx *Tx) {
		return func(tx *Tx) {
			if done, err := tx.Undo(name, as); err != nil || done == nil {
				t.Fatal(done, err)
			}
		}
	}
	o.policy("c", 5)
	o.put("c", "dead", "{}", expiry.Inherit)
	o.clock.Advance(6 * time.Second)
	o.put("c", "alive", "{}", expiry.Inherit)
	o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) })
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	o.catalogueTx(undo("c", "other"))
	o.policy("c", 1000)
	o.catalogueTx(undo("c", ""))
	if o.lives("c", "dead") || !o.lives("c", "alive") {
		t.Errorf("the dead lives: %v, the living lives: %v", o.lives("c", "dead"), o.lives("c", "alive"))
	}
}
