package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
)

// Veto returns a [HeldError] if the transaction has tried to change or remove what is on hold, or the disk's
// error if a full disk vetoes a Delete, else nil. The try has changed nothing. Rollback then takes back the
// rest. For a transaction that changes something on a node that does not lead it returns
// [replica.ErrFollower].
func (tx *Tx) Veto() error {
	if tx.veto == nil && tx.ks != nil && tx.ks.role != nil && tx.Writes() && tx.ks.follows() {
		return replica.ErrFollower
	}
	return tx.veto
}

// vetoes reports whether a container on hold forbids a change, which the transaction notes. e is the item
// that would be changed or removed, nil for the container. What the transaction has created itself it may
// still change.
func (tx *Tx) vetoes(c *Container, e *memtable.Entry) bool {
	reason := c.Policy().Hold
	if reason == "" || e != nil && tx.changes.HasInserted(e) {
		return false
	}
	if tx.veto == nil {
		tx.veto = &record.HeldError{Container: c.name, Reason: reason}
	}
	return true
}

// SetHold puts a container on hold for a reason, and its log. A hold keeps its reason. It needs BeginAll.
func (tx *Tx) SetHold(c *Container, reason string) {
	if p := c.Policy(); p.Hold != reason && !tx.vetoes(c, nil) {
		tx.setPolicy(c, p.WithHold(reason, tx.now), expiry.HistoryEntry{What: expiry.Held, Reason: reason, Kills: -1})
		tx.holdLog(c, reason)
	}
}

// Release ends the hold of a container, which may get another default and mode at the same moment: what is
// overdue by the former default then lives. kills is as in SetCounted. It needs BeginAll.
func (tx *Tx) Release(c *Container, def expiry.TTL, mode expiry.Mode, kills int64) {
	p := c.Policy()
	if p.Hold == "" {
		return
	}
	if p.Default != def || p.Mode != mode { // still on hold: the former default does not rule any more
		tx.setPolicy(c, p.Change(def, mode, tx.now), expiry.HistoryEntry{What: expiry.Set, Kills: -1})
	}
	tx.setPolicy(c, c.Policy().WithHold("", tx.now), expiry.HistoryEntry{What: expiry.Released, Reason: p.Hold, Kills: kills})
	tx.holdLog(c, "")
}

// DeadlineFree reports whether the deadline of a container can be another member: it has no items, whose ends
// would be recorded by the former one. It needs BeginAll.
func (tx *Tx) DeadlineFree(c *Container, member string) bool {
	if c.Policy().Deadline == member {
		return true
	}
	for _, p := range tx.ks.partitions {
		tx.sweep(p, c)
	}
	return !c.exceeds(c.retention.Purgeable(c.Policy(), tx.now)) // the dead of a container with a log lie until they are buried
}

// SetDeadline names the root member of documents that holds an absolute end. DeadlineFree must allow it. It
// needs BeginAll.
func (tx *Tx) SetDeadline(c *Container, member string) {
	if c.Policy().Deadline == member || tx.vetoes(c, nil) {
		return
	}
	policy := *c.Policy()
	policy.Deadline = member
	tx.setPolicy(c, policy, expiry.HistoryEntry{What: expiry.Set, Kills: -1})
}
