package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"mayfly/expiry/clock"
	"mayfly/keyspace/record"
)

// ReadFolder visits what lives in a data folder that no server uses, without changing anything in it:
// first all containers, by number, then their items, by partition and key. A damaged folder is refused.
// What is visited may be kept.
//
// It needs the memory that a server needs for one partition and the journals.
func ReadFolder(dir string, clock clock.Clock, container func(ContainerRecord) error, item func(container, id string, it Item) error) error {
	s, err := openSurvey(dir)
	if err != nil {
		return err
	}
	defer s.close()
	m := &merge{survey: s}
	journals, err := m.readJournals()
	if err != nil {
		return err
	}
	catalogue, report, err := m.gather(-1)
	if err != nil {
		return err
	}
	if err := refuseDamage(dir, append(journals, s.format, report)); err != nil {
		return err
	}
	names := newNames()
	for _, key := range sortedKeys(catalogue.items) {
		if err := names.take(finding{key: key, rec: catalogue.items[key].rec, del: catalogue.items[key].del}); err != nil {
			return err
		}
	}
	now := max(clock.Now(), names.clock, m.latest())
	for _, number := range slices.Sorted(maps.Keys(names.byNumber)) {
		c := names.byNumber[number]
		if err := container(*c); err != nil {
			return err
		}
	}
	for n := range s.partitions {
		items, report, err := m.gather(n)
		if err != nil {
			return err
		}
		if err := refuseDamage(dir, []FileReport{report}); err != nil {
			return err
		}
		if err := items.visitLiving(names, now, item); err != nil {
			return err
		}
	}
	return nil
}

// refuseDamage is the error if any of the files is damaged.
func refuseDamage(dir string, files []FileReport) error {
	for _, f := range files {
		if f.State == Damaged {
			first := f.Problems[0]
			return &DamageError{filepath.Join(dir, f.File), first.From, first.To, first.Reason}
		}
	}
	return nil
}

// latest is the latest moment in the journals, in ms. The stores have none later than both that and
// the clock in the catalogue.
func (m *merge) latest() (ms int64) {
	for _, events := range m.later {
		for _, e := range events {
			if it, _, err := record.Decode(e.key, e.rec); err == nil {
				ms = max(ms, it.TS)
			}
		}
	}
	return ms
}

// visitLiving visits the items that live now (ms), in ascending order of their keys.
func (g *gathering) visitLiving(names *names, now int64, visit func(container, id string, it Item) error) error {
	for _, key := range sortedKeys(g.items) {
		rec := g.items[key].rec
		if rec == "" {
			continue
		}
		number, id, err := record.SplitKey(key)
		if err != nil {
			return err
		}
		c := names.byNumber[number]
		if c == nil {
			continue // it has been dropped
		}
		it, _, err := record.Decode(key, rec)
		if err != nil {
			return err
		}
		if c.Policy.Dead(it.TS, it.ExpireAt, now) {
			continue
		}
		if err := visit(c.Name, id, it); err != nil {
			return err
		}
	}
	return nil
}

// FolderPartitions is the number of partitions of a data folder; 0 if there is none at this place.
func FolderPartitions(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, formatName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := readFormat(string(text))
	if err != nil {
		return 0, fmt.Errorf("data folder %s: %w", dir, err)
	}
	return n, nil
}

// RestoreContainer brings a container to a state that was read elsewhere. One that is not there, or
// holds nothing, gets exactly that state, the marks of its past policies included. One that holds
// items gets the default and the mode, as by SetPolicy: the marks are of another history than its
// items'. Needs BeginAll.
func (tx *Tx) RestoreContainer(s ContainerRecord) {
	c := tx.Container(s.Name)
	if c == nil {
		c = tx.CreateContainer(s.Name, s.Policy.Default, s.Policy.Mode)
	}
	if !c.empty() {
		if p := c.Policy(); p.Default != s.Policy.Default || p.Mode != s.Policy.Mode {
			tx.SetPolicy(c, s.Policy.Default, s.Policy.Mode)
		}
		return
	}
	tx.writeCatalogue()
	tx.noteContainer(c)
	c.created = min(s.Created, tx.now)
	policy := s.Policy
	policy.InheritDeadTo = min(policy.InheritDeadTo, tx.now)
	policy.OwnDeadTo = min(policy.OwnDeadTo, tx.now)
	c.policy.Store(&policy)
	tx.recordContainer(c)
}

// empty: all partitions must be locked.
func (c *Container) empty() bool {
	for _, t := range c.tables {
		if t != nil && t.Len() > 0 {
			return false
		}
	}
	return true
}

// Restored says what [Tx.Restore] has done with an item.
type Restored int

// What may become of an item that is restored.
const (
	Stored Restored = iota
	Dead            // it is dead by the container's policy, and was not stored
	Newer           // there is one under its id that was written later, which stays
)

// Restore stores an item that was read elsewhere, under the time of its last write, so that it has as
// long to live as it had there. One from the future, of a machine whose clock is ahead, counts as
// written now: time must not be moved by what a file says. It is given a new version. The partition of
// the id must be locked; no other command may follow in the transaction.
func (tx *Tx) Restore(c *Container, id string, it Item) Restored {
	ts := min(max(it.TS, 1), tx.now)
	if c.Policy().Dead(ts, it.ExpireAt, tx.now) {
		return Dead
	}
	if there, ok := tx.Get(c, id); ok && there.TS > ts {
		return Newer
	}
	tx.now = ts // the moment at which it was written
	tx.Put(c, id, it.Kind, it.Body, it.ExpireAt)
	return Stored
}
