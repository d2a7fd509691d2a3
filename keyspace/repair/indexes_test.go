package repair

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// TestRepairKeepsIndexes: the definitions of indexes are in what repair copies and Read visits, from the
// journal and from the catalogue.
func TestRepairKeepsIndexes(t *testing.T) {
	t.Parallel()
	o := open(t, 2)
	o.policy("orders", expiry.Forever)
	create := func(paths ...string) {
		o.catalogueTx(func(tx *keyspace.Tx) {
			c := tx.Container("orders")
			tx.RestoreContainer(record.Container{Name: "orders", Created: c.Created(), Policy: *c.Policy(), Indexes: [][]string{paths}})
		})
	}
	create("/status", "/total")
	drill.Check(t, o.Save())
	create("/loc", keyspace.GeoMark)
	for i := range 20 {
		o.put("orders", fmt.Sprint("id-", i), fmt.Sprintf(`{"status":"open","total":%d}`, i), expiry.Inherit)
	}
	dir := filepath.Join(newDir(t), "backup")
	drill.Check(t, o.Backup(dir))
	want := [][]string{{"/status", "/total"}, {"/loc", keyspace.GeoMark}}
	read := func(dir string) (indexes [][]string) {
		t.Helper()
		err := Read(disk, dir, clock.NewManual(aoftest.Epoch), func(c record.Container) error {
			if c.Name == "orders" {
				indexes = c.Indexes
			}
			return nil
		}, func(string, string, record.Item) error { return nil })
		drill.Check(t, err)
		return indexes
	}
	if got := read(dir); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the folder has the indexes %q, want %q", got, want)
	}

	// Damage in a store does not touch the catalogue.
	store := filepath.Join(dir, datadir.PartitionName(0))
	drill.Check(t, truncate(store, 10))
	to := filepath.Join(newDir(t), "new")
	if report, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil }); err != nil || report.Clean() {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := read(to); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the repaired folder has the indexes %q, want %q", got, want)
	}
	copied, err := openIn(t, to, aoftest.Epoch, 2)
	drill.Check(t, err)
	defer copied.stop()
	var tx keyspace.Tx
	copied.BeginSweep(&tx)
	defer tx.Close()
	stats := tx.IndexStats(tx.Container("orders"))
	if len(stats) != 2 || !stats[0].Ready || stats[0].Entries != tx.Count(tx.Container("orders")) || stats[0].Entries == 0 {
		t.Errorf("%+v", stats)
	}
}
