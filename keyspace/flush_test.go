package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestFlushAllTakesLong: no loop waits for the locks of a flush of many containers.
func TestFlushAllTakesLong(t *testing.T) {
	t.Parallel()
	o := open(t)
	for i := range longFlush {
		o.policy(fmt.Sprint("c", i), expiry.Forever)
		o.put(fmt.Sprint("c", i), "k", "{}", expiry.Inherit)
	}
	var tx, other Tx
	o.BeginAll(&tx)
	tx.FlushAll()
	begun := make(chan bool)
	go func() { begun <- o.TryBeginKeys(&other, []string{"k"}) }()
	select {
	case ok := <-begun:
		if o.commit(&tx); ok {
			t.Error("two transactions hold the same lock")
		}
	case <-time.After(drill.Patience):
		t.Error("it waits")
		o.commit(&tx)
		<-begun
		other.Close()
	}
}

// TestFlushAllBesideWatchers flushes many containers while many keys are watched. A flush that walks the
// watched keys takes minutes.
func TestFlushAllBesideWatchers(t *testing.T) {
	t.Parallel()
	o := open(t)
	const containers, keys = 500, 100_000
	for i := range containers {
		o.policy(fmt.Sprint("c", i), expiry.Forever)
		o.put(fmt.Sprint("c", i), "k", "{}", expiry.Inherit)
	}
	var absent, present, large Watcher
	var tx Tx
	o.BeginAll(&tx)
	for i := range keys {
		tx.Watch(&large, tx.Container("0"), fmt.Sprint("absent-", i))
	}
	tx.Watch(&absent, tx.Container("c1"), "absent")
	tx.Watch(&present, tx.Container("c1"), "k")
	o.commit(&tx)
	o.catalogueTx((*Tx).FlushAll)
	o.BeginAll(&tx)
	if tx.Changed(&absent) || tx.Changed(&large) || !tx.Changed(&present) {
		t.Error("a flush changes exactly the watched items that live")
	}
	for _, c := range tx.Containers() {
		if tx.Count(c) != 0 {
			t.Errorf("%s has items", c.Name())
		}
	}
	tx.Unwatch(&large) // in the background
	tx.Unwatch(&absent)
	tx.Unwatch(&present)
	o.commit(&tx)
	for _, p := range o.partitions {
		drill.Await(t, "the watchers to leave", func() bool {
			p.Mu.Lock()
			defer p.Mu.Unlock()
			return p.Watchers.Empty()
		})
	}
}

// TestMaxContainers: the limit is on new containers besides the databases, and 0 is none.
func TestMaxContainers(t *testing.T) {
	t.Parallel()
	o := open(t)
	full := func(want int, is bool) {
		t.Helper()
		o.catalogueTx(func(tx *Tx) {
			if limit, full := tx.ContainersFull(); limit != want || full != is {
				t.Errorf("limit %d, full: %t; want %d, %t", limit, full, want, is)
			}
		})
	}
	full(DefaultMaxContainers, false)
	o.SetMaxContainers(2)
	o.policy("a", 1)
	full(2, false)
	o.policy("b", 1)
	o.policy("b", 2)
	full(2, true)
	o.SetMaxContainers(1) // below what there are
	full(1, true)
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("a")); tx.Drop(tx.Container("b")) })
	full(1, false)
	o.policy("a", 1)
	full(1, true)
	o.SetMaxContainers(0)
	full(0, false)
}

// TestSwapBringsItems: a watched id that was absent has changed if a swap brings an item, also if that dies
// before the end of the watch, purged or not. It has not if the item was dead when it came.
func TestSwapBringsItems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		before  time.Duration // the swap
		after   time.Duration
		purge   bool
		changed bool
	}{
		{"lives", 0, 0, false, true},
		{"dies", 0, 10 * time.Second, false, true},
		{"dies and is purged", 0, 10 * time.Second, true, true},
		{"was dead", 10 * time.Second, 0, false, false},
		{"was dead and is purged", 10 * time.Second, 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := open(t)
			o.putFor("1", "k", 10)
			o.clock.Advance(tt.before)
			w := o.watch("0", "k")
			o.swap("0", "1")
			o.clock.Advance(tt.after)
			if tt.purge {
				o.PurgeOnce()
			}
			var tx Tx
			o.BeginKeys(&tx, w.IDs())
			if changed := tx.Changed(w); changed != tt.changed {
				t.Errorf("changed is %v", changed)
			}
			tx.Unwatch(w)
			o.commit(&tx)
		})
	}
}

// TestWatchAgainLater: keys watched before and after a change of their container are judged each by its own
// state.
func TestWatchAgainLater(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		early   string // watched before the flush
		late    string // watched after it
		then    func(o *opened)
		changed bool
	}{
		{"an absent id, then another", "absent", "k", func(*opened) {}, false},
		{"an item that is flushed, then another", "flushed", "k", func(*opened) {}, true},
		{"the late one dies", "absent", "k", func(o *opened) { o.clock.Advance(10 * time.Second) }, true},
		{"flushed again", "absent", "k", func(o *opened) { o.catalogueTx((*Tx).FlushAll) }, true},
		{"both absent and flushed again", "absent", "absent too", func(o *opened) { o.catalogueTx((*Tx).FlushAll) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := open(t)
			o.policy("c", 10)
			o.put("c", "flushed", "{}", expiry.Inherit)
			w := o.watch("c", tt.early)
			o.catalogueTx((*Tx).FlushAll)
			o.put("c", "k", "{}", expiry.Inherit)
			var tx Tx
			o.BeginKey(&tx, tt.late)
			tx.Watch(w, tx.Container("c"), tt.late)
			o.commit(&tx)
			tt.then(o)
			o.BeginKeys(&tx, w.IDs())
			if changed := tx.Changed(w); changed != tt.changed {
				t.Errorf("changed is %v", changed)
			}
			tx.Unwatch(w)
			o.commit(&tx)
		})
	}
}
