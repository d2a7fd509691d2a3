//go:build invariants || race

package keyspace

import (
	"errors"
	"fmt"
	"maps"
)

// Check verifies the invariants of the whole keyspace and returns the first violation. It locks everything
// and takes time in proportion to the data.
func (ks *Keyspace) Check() error {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	if err := ks.catalogue.Check(); err != nil {
		return err
	}
	shown, hidden, attached := 0, 0, 0
	for c := range ks.catalogue.All() {
		for t := range c.each {
			if shown++; t.Detached() || c.unlisted() {
				shown, hidden = shown-1, hidden+1
			}
			if t.Pages != nil {
				shown++
				if t.Detached() || c.unlisted() {
					shown, hidden = shown-1, hidden+1
				}
			}
			if err := errors.Join(t.Check(ks.Now()), ks.checkTimer(t)); err != nil {
				return fmt.Errorf("container %d, %q, partition %d: %w", c.number, c.name, t.P.Number, err)
			}
		}
		if err := errors.Join(tx.whole(c).checkIndexes(), c.checkHidden()); err != nil {
			return fmt.Errorf("container %d, %q: %w", c.number, c.name, err)
		}
	}
	for _, p := range ks.partitions {
		attached += len(p.Shard.Tables())
		if err := p.Shard.Check(); err != nil {
			return fmt.Errorf("partition %d: %w", p.Number, err)
		}
	}
	if listed := ks.tables.Len(); shown != listed || shown+hidden != attached {
		return fmt.Errorf("containers have %d tables, and %d set aside; %d are listed and %d attached", shown, hidden, listed, attached)
	}
	return nil
}

// checkTimer verifies that a table has a timer if the deaths of its items are logged, and none if they are
// hidden, but for logs with a stepped clock.
func (ks *Keyspace) checkTimer(t *table) error {
	switch {
	case t.C.deaths != nil && !t.Gone() && t.Timer() == nil:
		return errors.New("deaths are logged, and the table has no timer")
	case t.Timer() != nil && t.C.hidden != nil && !ks.punctual(t.C):
		return errors.New("the table has a timer that is not needed")
	}
	return nil
}

// checkIndexes verifies the indexes of a container that is listed.
func (c whole) checkIndexes() error {
	if c.aside != nil || c.hidden != nil {
		return nil
	}
	err := c.indexes.Load().Check(c.indexed())
	for t := range c.each {
		err = errors.Join(err, t.Indexed.Check(&t.Table))
	}
	return err
}

// checkHidden verifies that a hidden container belongs to another. The log counts its entries, and the state
// of a group is that of its items.
func (c *Container) checkHidden() error {
	if c.hidden == nil {
		return nil
	}
	if c.owner() == nil || c.owner().deaths == nil {
		return errors.New("a hidden container has no owner")
	}
	owner, entries := c.owner(), int64(0)
	log := owner.deaths
	switch {
	case c.group != nil:
		if is, stored := maps.Collect(c.group.Items()), maps.Collect(c.groupItems()); log.groups[c.hidden.Group] != c || !maps.Equal(is, stored) {
			return fmt.Errorf("the group %q has %q, stored are %q", c.hidden.Group, is, stored)
		}
	case c.isLog():
		for t := range c.each {
			entries += int64(t.Len()) - 1
		}
		if log.c != c || owner.log.Number != c.number || entries != log.length.Load() {
			return fmt.Errorf("the log of %q has %d entries, counted are %d", owner.name, entries, log.length.Load())
		}
	}
	return nil
}
