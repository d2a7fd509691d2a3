package keyspace

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// Consumer groups
//
// A group of consumers reads the log of a container's deaths: see package groups. Its items lie in a hidden
// container of its own, which belongs to the owner of the log and goes with it. All groups lie in one
// partition, so a command on a group needs one lock.

// GroupTag is the id to lock for reading and changing groups.
const GroupTag = groups.Tag

// Groups returns the names of the groups that read a container's log, in ascending order. GroupTag must be
// locked.
func (tx *Tx) Groups(c *Container) []string {
	tx.saw(tx.ks.catalogue.lsn)
	if c.deaths == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.deaths.groups))
}

// Group returns a group that reads a container's log, nil if there is none. GroupTag must be locked as long
// as the group is in use. It changes by [Tx.ChangeGroup] only.
func (tx *Tx) Group(c *Container, name string) *groups.Group {
	if h := tx.findGroup(c, name); h != nil {
		return h.group
	}
	return nil
}

// findGroup returns the hidden container of a group, nil if there is none.
func (tx *Tx) findGroup(c *Container, name string) *Container {
	p := tx.partition(GroupTag)
	tx.saw(tx.ks.catalogue.lsn)
	tx.saw(p.LastWrite)
	if c.deaths == nil {
		return nil
	}
	return c.deaths.groups[name]
}

// CreateGroup makes a group, of which there is none of the name. last is the last delivered id and read the
// number of entries read, or groups.Unknown. It needs BeginAll and a log.
func (tx *Tx) CreateGroup(c *Container, name string, last streamid.ID, read int64) {
	cat := tx.writeCatalogue()
	name = strings.Clone(name)
	h := newContainer(record.Container{
		Number: cat.Number(), Created: tx.now, Policy: expiry.Policy{Default: expiry.Forever},
		Hidden: &record.Hidden{GroupOf: c.log.Number, Group: name},
	}, len(tx.ks.partitions))
	h.group = groups.New(last, read)
	log := c.deaths
	log.addGroup(h)
	tx.onRollback(func() { delete(log.groups, name) })
	tx.addHidden(h, c)
	for item, body := range h.group.Items() {
		tx.setGroupItem(h, item, body)
	}
}

// addGroup adds the hidden container of a group to its log.
func (log *deathLog) addGroup(h *Container) {
	if log.groups == nil {
		log.groups = make(map[string]*Container)
	}
	log.groups[h.hidden.Group] = h
}

// DestroyGroup removes a group in constant time, and reports whether there was one. It needs BeginAll.
func (tx *Tx) DestroyGroup(c *Container, name string) bool {
	h := tx.findGroup(c, name)
	if h == nil {
		return false
	}
	log := c.deaths
	delete(log.groups, name)
	tx.onRollback(func() { log.addGroup(h) })
	tx.discardHidden(h)
	tx.logged = append(tx.logged, c)
	return true
}

// ChangeGroup calls f, which may change a group that exists, and journals the changes. GroupTag must be
// locked.
func (tx *Tx) ChangeGroup(c *Container, name string, f func(b *groups.Changes)) {
	h := tx.findGroup(c, name)
	cat := &tx.ks.catalogue
	b, before := groups.Begin(h.group), h.group.Memory()
	noted := before
	tx.onRollback(func() {
		b.Rollback(0)
		cat.AddMemory(before - noted)
	})
	f(b)
	noted = h.group.Memory()
	cat.AddMemory(noted - before)
	for _, change := range b.List {
		if change.Deleted {
			t := h.tables[tx.partition(GroupTag).Number]
			tx.removeItem(t, t.Find(change.Item))
		} else {
			tx.setGroupItem(h, change.Item, change.Body)
		}
	}
}

// setGroupItem stores an item of a group.
func (tx *Tx) setGroupItem(h *Container, item, body string) {
	t := h.tables[tx.partition(GroupTag).Number]
	if t == nil {
		t = tx.ks.groupTableLocked(h)
		tx.noteTable(t)
	}
	tx.setItem(t, item, Item{Kind: Plain, Body: body, TS: tx.now, ExpireAt: expiry.Never, Version: t.P.NextVersion()})
}

// groupTableLocked returns the table of the hidden container of a group, and makes it if need be. GroupTag
// must be locked.
func (ks *Keyspace) groupTableLocked(h *Container) *table {
	p := ks.partitionOf(GroupTag)
	if t := h.tables[p.Number]; t != nil {
		return t
	}
	return ks.tables.Open(h, p)
}

// groupItems yields the items of the hidden container of a group.
func (h *Container) groupItems() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for t := range h.each {
			t.Descend(0, func(_ uint64, e *memtable.Entry) bool {
				id, it := t.IDAndItem(e)
				return yield(id, it.Body)
			})
		}
	}
}

// loadGroups gives the logs that were read their groups.
func (ks *Keyspace) loadGroups() (err error) {
	cat := &ks.catalogue
	for _, h := range cat.Hidden {
		if h.hidden.IsGroup() {
			err = errors.Join(err, ks.loadGroup(h, cat.Hidden[h.hidden.GroupOf].owner()))
		}
	}
	return err
}

// loadGroup gives the log of a container a group that reads it.
func (ks *Keyspace) loadGroup(h, owner *Container) error {
	h.partOf = owner.deaths
	if err := ks.readGroup(h); err != nil {
		return err
	}
	owner.deaths.addGroup(h)
	return nil
}

// readGroup makes the state of a group that of its items.
func (ks *Keyspace) readGroup(h *Container) (err error) {
	memory := h.memory()
	if h.group, err = groups.Load(h.groupItems()); err != nil {
		return fmt.Errorf("container %q: group %.100q: %w", h.owner().name, h.hidden.Group, err)
	}
	ks.catalogue.AddMemory(h.memory() - memory)
	for item, body := range h.group.Items() { // a repair may have lost some
		if t := ks.groupTableLocked(h); t.Find(item) == nil {
			t.Insert(item, Item{Kind: Plain, Body: body, ExpireAt: expiry.Never}, nil)
		}
	}
	return nil
}
