package keyspace

import (
	"slices"

	"mayfly/expiry"
	"mayfly/expiry/members"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
)

// RestoreContainer restores a container from another data folder. A missing or empty one gets exactly that
// state, with the marks of its past policies. One with items gets the default and the mode, as by SetPolicy:
// the marks are not of its items' history. A missing one gets its number if that is free, or else another.
// Indexes that the container lacks are added, up to the limit. A container with items keeps its deadline, by
// which the ends of documents are recorded. A container on hold keeps its settings. No earlier change of
// another can be taken back any more. It needs BeginAll. The error says why there is no number for it, or is
// a [record.HeldError].
func (tx *Tx) RestoreContainer(s ContainerRecord) (*Container, error) {
	c := tx.Container(s.Name)
	made := c == nil
	if made {
		var err error
		if c, err = tx.CreateNumbered(s.Name, s.DB, s.Policy.Default, s.Policy.Mode); err != nil {
			c, err = tx.CreateNumbered(s.Name, 0, s.Policy.Default, s.Policy.Mode)
		}
		if err != nil {
			return nil, err
		}
	}
	if p := c.Policy(); !made && p.Hold != "" {
		if p.Default != s.Policy.Default || p.Mode != s.Policy.Mode || s.Policy.Hold != "" && p.Hold != s.Policy.Hold {
			tx.vetoes(c, nil)
		}
		return c, tx.Veto()
	}
	tx.endWindows(c)
	if !tx.whole(c).empty() {
		if p := c.Policy(); p.Default != s.Policy.Default || p.Mode != s.Policy.Mode {
			tx.SetPolicy(c, s.Policy.Default, s.Policy.Mode)
		}
		tx.SetHold(c, s.Policy.Hold) // "" changes nothing: the container is not on hold
		tx.RestoreIndexes(c, s.Indexes)
		return c, nil
	}
	cat := tx.writeCatalogue()
	tx.noteContainer(c)
	if !made { // files and followers may have dead items, which the marks of the past could revive
		c.replaced++
		tx.discard(c)
		c.number = cat.Number()
	}
	c.created = min(s.Created, tx.now)
	policy := s.Policy
	policy.InheritDeadTo = min(policy.InheritDeadTo, tx.now)
	policy.OwnDeadTo = min(policy.OwnDeadTo, tx.now)
	c.policy.Store(&policy)
	if made {
		cat.setHistory(c, &record.History{})
	}
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Restored, Kills: -1})
	tx.recordContainer(c)
	if policy.Hold != "" {
		tx.holdLog(c, policy.Hold)
	}
	tx.RestoreIndexes(c, s.Indexes)
	return c, nil
}

// Untouched reports whether a container is one of the databases as they exist from the start, and empty. It
// needs BeginAll.
func (tx *Tx) Untouched(c *Container) bool {
	return c.IsDatabase() && tx.whole(c).empty() && *c.Policy() == expiry.Policy{Default: expiry.Forever}
}

// RestoreIndexes adds the indexes of a record that the container lacks, up to the limit. It needs BeginAll.
func (tx *Tx) RestoreIndexes(c *Container, recorded [][]string) {
	for _, x := range index.FromRecord(recorded).List() {
		if len(c.Indexes()) < index.MaxIndexes {
			tx.CreateIndex(c, x.Definition)
		}
	}
}

// Restored says what [Tx.Restore] has done with an item.
type Restored int

// The results of restoring an item.
const (
	Stored Restored = iota
	Dead            // the item is dead by the container's policy and was not stored
	Newer           // the item under its id was written later and stays
)

// Restore stores an item from elsewhere with the time of its last write. So it has the same time left. An
// item from the future, of a machine whose clock is ahead, counts as written now: files must not move the
// clock. The item gets a new version. The partition of the id must be locked.
func (tx *Tx) Restore(c *Container, id string, it Item) Restored {
	ts := min(max(it.TS, 1), tx.now)
	if deadline := c.Policy().Deadline; deadline != "" && it.Kind == Document && members.Has(it.Body) {
		ends := members.Read(it.Body, deadline) // the other folder may have had another rule
		if c.Policy().Passed(ends.Deadline, tx.now) {
			return Dead
		}
		it.ExpireAt = ends.ExpireAt(ts)
	}
	if c.Policy().Dead(ts, it.ExpireAt, tx.now) {
		return Dead
	}
	there, ok := tx.Get(c, id)
	if ok && (there.TS > ts || there.TS == ts && c.Policy().Hold != "") {
		return Newer
	}
	it.TS = ts
	if it.Kind.IsCollection() {
		return tx.restoreElements(c, id, it)
	}
	tx.put(c, id, it, record.Chosen)
	return Stored
}

// restoreElements restores a collection from a body with all its elements.
func (tx *Tx) restoreElements(c *Container, id string, it Item) Restored {
	limit := c.Policy().DeadLimits(tx.now).ByOwnTTL
	var living []Element
	for e := range elements.Each(it.Body) {
		if !e.Dead(limit) {
			living = append(living, e)
		}
	}
	if len(living) == 0 {
		tx.Remove(c, id)
		return Dead
	}
	x, _ := tx.EditElements(c, id, it.Kind)
	x.ts, x.End = it.TS, it.ExpireAt
	if it.Kind == ListKind {
		l := ListEdit{x}
		l.Replace(slices.Values(living))
		l.Close()
		return Stored
	}
	x.Replace(slices.Values(living))
	x.Close()
	return Stored
}
