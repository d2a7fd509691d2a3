//go:build invariants || race

package keyspace

import (
	"errors"
	"fmt"
	"maps"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Check verifies the invariants of the whole keyspace and returns the first violation. It locks everything and takes
// time in proportion to the data.
func (ks *Keyspace) Check() error {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	names := make(map[uint32]string)
	memory, tables := int64(0), 0
	aside := 0
	for c := range ks.catalogue.Asides.All() {
		memory += c.memory()
		for i, t := range c.tables {
			if t == nil {
				continue
			}
			aside++
			if t.C != c || c.aside == nil || ks.partitions[i].Shard.Table(c.number) != &t.Table {
				return fmt.Errorf("a table of container %q, which is set aside, belongs elsewhere", c.name)
			}
		}
	}
	for number, h := range ks.catalogue.Hidden {
		memory += h.memory()
		if h.owner == nil || h.number != number || h.isLog() && (h.owner.deaths == nil || h.owner.deaths.c != h || h.owner.log.Number != number) {
			return fmt.Errorf("hidden container %d has no owner", number)
		}
		entries := int64(0)
		for i, t := range h.tables {
			if t == nil {
				continue
			}
			if h.owner.aside != nil {
				aside++
			} else {
				tables++
			}
			if h.isLog() {
				entries += int64(t.Len()) - 1
			}
			if err := ks.checkTable(t, h, ks.partitions[i]); err != nil {
				return fmt.Errorf("hidden container %d, partition %d: %w", number, i, err)
			}
		}
		if h.group != nil {
			if err := h.checkGroup(); err != nil {
				return fmt.Errorf("hidden container %d: %w", number, err)
			}
		}
		if h.isLog() && entries != h.owner.deaths.length.Load() {
			return fmt.Errorf("log %d has %d entries, counted are %d", number, entries, h.owner.deaths.length.Load())
		}
	}
	for name, c := range ks.catalogue.ByName {
		if other, taken := names[c.number]; taken {
			return fmt.Errorf("containers %q and %q share number %d", name, other, c.number)
		}
		names[c.number] = name
		if name != c.name || c.number >= ks.catalogue.Next() {
			return fmt.Errorf("container %q is listed as %q with number %d, the next is %d", c.name, name, c.number, ks.catalogue.Next())
		}
		if ks.catalogue.ByDB[c.db] != c {
			return fmt.Errorf("container %q is not listed under its number %d for SELECT", c.name, c.db)
		}
		memory += c.memory()
		if err := c.indexes.Load().Check(c.indexedLocked()); err != nil {
			return fmt.Errorf("container %q: %w", name, err)
		}
		for i, t := range c.tables {
			if t == nil {
				continue
			}
			tables++
			if err := errors.Join(ks.checkTable(t, c, ks.partitions[i]), t.Indexed.Check(&t.Table)); err != nil {
				return fmt.Errorf("container %q, partition %d: %w", name, i, err)
			}
		}
	}
	if a, b := len(ks.catalogue.ByName), len(ks.catalogue.ByDB); a != b {
		return fmt.Errorf("%d containers are listed by name, %d by number", a, b)
	}
	if used := ks.catalogue.Memory(); memory != used {
		return fmt.Errorf("containers take %d bytes, counted are %d", memory, used)
	}
	attached := 0
	for _, p := range ks.partitions {
		attached += len(p.Shard.Tables())
		if err := p.Shard.Check(); err != nil {
			return fmt.Errorf("partition %d: %w", p.Number, err)
		}
	}
	if listed := ks.tables.Len(); tables != listed || tables+aside != attached {
		return fmt.Errorf("containers have %d tables, and %d set aside; %d are listed and %d attached", tables, aside, listed, attached)
	}
	return nil
}

// checkTable verifies what the keyspace knows of a table. The locks of all partitions must be held.
func (ks *Keyspace) checkTable(t *table, c *Container, p *partition) (err error) {
	switch {
	case t.C != c || t.P != p || !t.Gone() && ks.tables.Some(nil, *t.Place(), 1)[0] != t:
		return fmt.Errorf("the table belongs elsewhere")
	case t.Container() != c.number:
		return fmt.Errorf("the table has number %d, the container %d", t.Container(), c.number)
	case p.Shard.Table(c.number) != &t.Table:
		return fmt.Errorf("the partition does not have the table")
	case c.deaths != nil && !t.Gone() && t.Timer() == nil:
		return fmt.Errorf("deaths are logged, and the table has no timer")
	case t.Timer() != nil && (t.Gone() || c.hidden != nil):
		return fmt.Errorf("the table has a timer that nobody needs")
	}
	t.Descend(0, func(_ uint64, e *memtable.Entry) (more bool) {
		k, split := record.SplitKey(t.Key(e))
		switch {
		case split != nil || k.Partition(len(ks.partitions)) != p.Number:
			err = fmt.Errorf("%q belongs to another partition", t.ID(e))
		case e.Version() > p.Version:
			err = fmt.Errorf("%q has a version from the future", t.ID(e))
		case t.Timer() != nil && t.Timer().At() > max(t.Due(e.Moments()), ks.Now()):
			err = fmt.Errorf("%q may be removed from %d on, the timer of its table is set to %d",
				t.ID(e), t.Due(e.Moments()), t.Timer().At())
		}
		return err == nil
	})
	return err
}

// checkGroup verifies that the state of a group is that of its items.
func (h *Container) checkGroup() error {
	if h.owner.deaths.groups[h.hidden.Group] != h {
		return fmt.Errorf("the log does not have the group %q", h.hidden.Group)
	}
	if is, stored := maps.Collect(h.group.Items()), maps.Collect(h.groupItems()); !maps.Equal(is, stored) {
		return fmt.Errorf("the group %q has %q, stored are %q", h.hidden.Group, is, stored)
	}
	return nil
}
