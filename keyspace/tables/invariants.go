//go:build invariants || race

package tables

import (
	"fmt"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Check verifies the invariants of a table at the present time in ms, but for those of package memtable. All
// partitions are locked.
func (t *Table[C]) Check(now int64) (err error) {
	number := t.set.host.Number(t.C)
	switch {
	case t.set.host.Tables(t.C)[t.P.Number] != t || !t.Gone() && t.set.Some(nil, t.place, 1)[0] != t:
		return fmt.Errorf("the table belongs elsewhere")
	case t.Container() != number:
		return fmt.Errorf("the table has number %d, the container %d", t.Container(), number)
	case t.P.Shard.Table(number) != &t.Table:
		return fmt.Errorf("the partition does not have the table")
	case t.timer != nil && t.Gone():
		return fmt.Errorf("the table has a timer that is not needed")
	}
	if err := t.checkPages(); err != nil {
		return err
	}
	t.Descend(0, func(_ uint64, e *memtable.Entry) (more bool) {
		k, split := record.SplitKey(t.Key(e))
		switch {
		case split != nil || k.Partition(t.set.partitions) != t.P.Number:
			err = fmt.Errorf("%q belongs to another partition", t.ID(e))
		case e.Version() > t.P.Version:
			err = fmt.Errorf("%q has a version from the future", t.ID(e))
		case t.timer != nil && t.timer.At() > max(t.Due(e.Moments()), now):
			err = fmt.Errorf("%q may be removed from %d on, the timer of its table is set to %d", t.ID(e), t.Due(e.Moments()), t.timer.At())
		}
		return err == nil
	})
	return err
}
