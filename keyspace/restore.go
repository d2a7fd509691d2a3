package keyspace

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
