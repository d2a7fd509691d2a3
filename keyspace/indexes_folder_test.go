package keyspace

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/test/drill"
)

// indexesIn returns the definitions of a container's indexes with the numbers of their entries. All must be
// ready.
func (o *opened) indexesIn(container string) (list []string) {
	o.t.Helper()
	var tx Tx
	o.BeginSweep(&tx)
	defer tx.Close()
	for _, s := range tx.IndexStats(tx.Container(container)) {
		if !s.Ready {
			o.t.Errorf("index %s of %s is not ready", &s.Definition, container)
		}
		list = append(list, fmt.Sprintf("%s: %d", &s.Definition, s.Entries))
	}
	return list
}

func (o *opened) createIndex(container string, geo bool, paths ...string) {
	o.t.Helper()
	d, err := index.Define(paths, geo)
	drill.Check(o.t, err)
	o.catalogueTx(func(tx *Tx) {
		if !tx.CreateIndex(tx.Container(container), d) {
			o.t.Fatalf("index %s exists", &d)
		}
	})
	o.BuildIndexes()
}

// TestIndexesInAFolder: definitions of indexes stay over restarts, checkpoints, compactions, backups, FLUSHDB
// and SWAPDB, and the trees are there at the start.
func TestIndexesInAFolder(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("orders", expiry.Forever)
	o.policy("other", expiry.Forever)
	o.createIndex("orders", false, "/status", "/total")
	o.createIndex("orders", false, "/tags/[]")
	o.createIndex("orders", true, "/loc")
	for i := range 100 {
		o.put("orders", fmt.Sprint(i), fmt.Sprintf(`{"status":"open","total":%d,"tags":["a","b"],"loc":{"type":"Point","coordinates":[%d,1]}}`, i, i), expiry.Inherit)
	}
	full := []string{"/status /total: 100", "/tags/[]: 200", "/loc GEO: 100"}
	empty := []string{"/status /total: 0", "/tags/[]: 0", "/loc GEO: 0"}
	is := func(after, container string, want []string) {
		t.Helper()
		if got := o.indexesIn(container); !slices.Equal(got, want) {
			t.Errorf("after %s container %s has the indexes %q, want %q", after, container, got, want)
		}
	}
	save := func() {
		t.Helper()
		drill.Check(t, o.Save())
	}
	is("creating them", "orders", full)
	o.reopen()
	is("a restart", "orders", full)
	save()
	o.reopen()
	is("a checkpoint and a restart", "orders", full)
	o.storage.CompactAll()
	o.reopen()
	is("a compaction and a restart", "orders", full)

	path := filepath.Join(newDir(o.opt.FS), "backup")
	drill.Check(t, o.Backup(path))
	b := &opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: path, Clock: o.clock, NoPurge: true}}
	b.start()
	if got := b.indexesIn("orders"); !slices.Equal(got, full) {
		t.Errorf("the backup has the indexes %q, want %q", got, full)
	}
	b.stop()

	o.catalogueTx(func(tx *Tx) { tx.Swap(tx.Container("orders"), tx.Container("other")) })
	is("SWAPDB", "orders", nil)
	o.reopen()
	is("SWAPDB and a restart", "orders", nil)
	is("SWAPDB and a restart", "other", full)
	o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("other")) })
	is("FLUSHDB", "other", empty)
	save()
	o.reopen()
	is("FLUSHDB and a restart", "other", empty)

	o.catalogueTx(func(tx *Tx) {
		if !tx.DropIndex(tx.Container("other"), tx.Container("other").Indexes()[1].Definition) {
			t.Error("the index was not there")
		}
	})
	o.reopen()
	is("INDEX.DROP and a restart", "other", []string{"/status /total: 0", "/loc GEO: 0"})
	o.catalogueTx(func(tx *Tx) {
		tx.Drop(tx.Container("other"))
		tx.CreateContainer("other", expiry.Forever, expiry.Strict)
	})
	o.reopen()
	is("CONTAINER.DROP, CONTAINER.CREATE and a restart", "other", nil)
}

// TestIndexesOfAside: what was flushed or dropped has its indexes again after a restart too.
func TestIndexesOfAside(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"", "before"} {
		o := open(t)
		drill.Check(t, o.SetUndoWindow(100))
		o.policy("orders", expiry.Forever)
		o.createIndex("orders", false, "/status")
		o.put("orders", "1", `{"status":"open"}`, expiry.Inherit)
		o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("orders")) })
		o.reopen()
		o.catalogueTx(func(tx *Tx) {
			if done, err := tx.Undo("orders", as); done == nil || err != nil {
				t.Fatal(done, err)
			}
		})
		o.BuildIndexes()
		if got, want := o.indexesIn(cmp.Or(as, "orders")), []string{"/status: 1"}; !slices.Equal(got, want) {
			t.Errorf("AS %q: the indexes are %q, want %q", as, got, want)
		}
	}
}
