package keyspace

import (
	"testing"
	"time"

	"mayfly/expiry"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  func(o *opened)
		between func(o *opened)
		changed bool
	}{
		{"nothing happens", nil, func(o *opened) {}, false},
		{"another id is written", nil, func(o *opened) { o.put("c", "other", "{}", expiry.Inherit) }, false},
		{"the same id of another container", nil, func(o *opened) { o.put("0", "k", "{}", expiry.Inherit) }, false},
		{"written", nil, func(o *opened) { o.put("c", "k", "{}", expiry.Inherit) }, true},
		{"deleted", nil, func(o *opened) { o.delete("c", "k") }, true},
		{"deleted and written again", nil, func(o *opened) { o.delete("c", "k"); o.put("c", "k", "{}", expiry.Inherit) }, true},
		{"dies", nil, func(o *opened) { o.clock.Advance(10 * time.Second) }, true},
		{"dies and is purged", nil, func(o *opened) { o.clock.Advance(10 * time.Second); o.count("c") }, true},
		{"killed by a new default", nil, func(o *opened) { o.clock.Advance(5 * time.Second); o.policy("c", 5) }, true},
		{"lives by a longer default", nil, func(o *opened) { o.policy("c", 100); o.clock.Advance(50 * time.Second) }, false},
		{"dies by a longer default", nil, func(o *opened) { o.policy("c", 100); o.clock.Advance(100 * time.Second) }, true},
		{"dies before a longer default", nil, func(o *opened) { o.clock.Advance(10 * time.Second); o.policy("c", 100) }, true},
		{"flushed", nil, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) }) }, true},
		{"dropped", nil, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) }) }, true},
		{"was dead before and is purged", func(o *opened) { o.clock.Advance(10 * time.Second) }, func(o *opened) { o.count("c") }, false},
		{"was dead before and is written", func(o *opened) { o.clock.Advance(10 * time.Second) }, func(o *opened) { o.put("c", "k", "{}", expiry.Inherit) }, true},
		{"was absent and is made and deleted", func(o *opened) { o.delete("c", "k") }, func(o *opened) { o.put("c", "k", "{}", expiry.Inherit); o.delete("c", "k") }, true},
		{"was absent and its container is dropped", func(o *opened) { o.delete("c", "k") }, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) }) }, true},
		{"was absent and another is dropped", func(o *opened) { o.delete("c", "k"); o.policy("d", 10) }, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("d")) }) }, false},
		{"was absent and its container is flushed", func(o *opened) { o.delete("c", "k") }, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) }) }, false},
		{"was dead before and its container is flushed", func(o *opened) { o.clock.Advance(10 * time.Second) }, func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) }) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t, func(opt *Options) { opt.Partitions = 2 })
			o.policy("c", 10)
			o.put("c", "k", "{}", expiry.Inherit)
			if c.before != nil {
				c.before(o)
			}
			var w Watcher
			var tx Tx
			o.BeginKey(&tx, "k")
			tx.Watch(&w, tx.Container("c"), "k")
			tx.Watch(&w, tx.Container("c"), "k") // the second call changes nothing
			o.commit(&tx)
			c.between(o)
			o.BeginKeys(&tx, w.IDs())
			changed := tx.Changed(&w)
			o.commit(&tx)
			if changed != c.changed {
				t.Errorf("changed is %v", changed)
			}
			o.Unwatch(&w)
			for _, p := range o.partitions {
				if !p.Watchers.Empty() {
					t.Error("a watch is left behind")
				}
			}
		})
	}
}

// TestWatchCoversTheChange: the LSN of a transaction that finds a watched item changed covers the change.
func TestWatchCoversTheChange(t *testing.T) {
	t.Parallel()
	o := open(t)
	var w Watcher
	var tx Tx
	o.BeginKey(&tx, "k")
	tx.Watch(&w, tx.Container("0"), "k")
	o.commit(&tx)
	o.BeginKey(&tx, "k")
	tx.Put(tx.Container("0"), "k", Plain, "v", expiry.Inherit)
	change := tx.Close()
	o.BeginKeys(&tx, w.IDs())
	changed := tx.Changed(&w)
	tx.Unwatch(&w)
	if seen := tx.Close(); !changed || seen < change {
		t.Errorf("changed %v, covered by LSN %d, the change has %d", changed, seen, change)
	}
}
