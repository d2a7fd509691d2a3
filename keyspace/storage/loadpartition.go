package storage

import (
	"fmt"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Latest is the latest write that the files have of a partition.
type Latest struct {
	Version uint64
	TS      int64 // ms
}

// partitionLoader loads the items of one partition, from its store and then from the journals.
type partitionLoader struct {
	e      *Engine
	loader Loader
	number int
	shard  *memtable.Shard
	tables map[tableKey]*memtable.Table
	last   *memtable.Table // of the last change
	latest Latest
	read   int64 // bytes of changes that Options.Loaded does not count yet
}

// tableKey names a table of a partition.
type tableKey struct {
	container uint32
	pages     bool // of its collections
}

// load opens the partition's store and applies its changes.
func (l *partitionLoader) load() (err error) {
	path := filepath.Join(l.e.Options.Dir, datadir.PartitionName(l.number))
	l.e.items[l.number], err = l.e.openStore(path, func(o aof.Op) error {
		l.e.waste.inItems[l.number] = l.e.waste.inItems[l.number] || o.Del
		k, err := record.SplitKey(o.Key)
		if err == nil {
			err = l.apply(k, o, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return err
}

// items returns the number of items loaded so far.
func (l *partitionLoader) items() (n int) {
	for _, t := range l.tables {
		n += t.Len()
	}
	return n
}

// apply applies one change of the store or of a journal. The store lacks those of journals.
func (l *partitionLoader) apply(k record.Key, o aof.Op, journaled bool) error {
	if l.read += aof.SetSize(len(o.Key), len(o.Rec)); l.read > 1<<20 && l.e.Options.Loaded != nil {
		l.e.Options.Loaded.Add(l.read)
		l.read = 0
	}
	t := l.last
	if t == nil || t.Container() != k.Container || t.Pages() != k.Page {
		if t = l.tables[tableKey{k.Container, k.Page}]; t == nil {
			t = l.loader.Table(l.number, k)
			l.tables[tableKey{k.Container, k.Page}] = t
		}
		l.last = t
	}
	if t.Log() != k.Log {
		return fmt.Errorf("item %q does not belong in container %d", o.Key, k.Container)
	}
	if o.Del {
		e := t.Find(k.ID)
		switch {
		case e == nil:
			return nil
		case journaled:
			t.Remove(e)
			t.Release(e)
		default:
			t.Unload(e)
		}
		l.clean()
		return nil
	}
	it, _, err := record.Decode(o.Key, o.Rec)
	if err != nil {
		return err
	}
	if k.Partition(len(l.e.items)) != l.number {
		return fmt.Errorf("item %q does not belong to partition %d", o.Key, l.number)
	}
	l.saw(it)
	h, e := t.Load(k.ID, o.Rec, it)
	l.clean()
	if journaled {
		t.MarkDirty(h, e)
	} else {
		t.MarkStored(e)
	}
	return nil
}

// touch applies a touch of a journal. If it does not count, the item has a later state already, or will have.
func (l *partitionLoader) touch(k record.Key, o aof.Op) error {
	touch, base, err := record.ReadTouch(o.Key, o.Rec)
	if err != nil {
		return err
	}
	l.saw(touch)
	t := l.tables[tableKey{k.Container, k.Page}]
	if t == nil {
		return nil
	}
	if h, e := t.Lookup(k.ID); e != nil && touch.Touches(base, e.Version()) {
		t.Overwrite(h, e, k.ID, t.Item(e).Touched(touch), nil)
		l.clean()
	}
	return nil
}

// saw notes a write.
func (l *partitionLoader) saw(it record.Item) {
	l.latest.Version = max(l.latest.Version, it.Version)
	l.latest.TS = max(l.latest.TS, it.TS)
}

// clean does one step of cleaning if a table needs it.
func (l *partitionLoader) clean() {
	if l.shard.Unclean() {
		l.shard.Clean()
	}
}
