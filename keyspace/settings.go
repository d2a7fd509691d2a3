package keyspace

import "mayfly/expiry"

// SetDeadline names the root member of documents that holds an absolute end. It reports false, and changes nothing, if
// the container has items: their ends are recorded by the former rule. It needs BeginAll.
func (tx *Tx) SetDeadline(c *Container, member string) bool {
	if c.Policy().Deadline == member {
		return true
	}
	for _, p := range tx.ks.partitions {
		tx.sweep(p, c)
	}
	if !c.emptyLocked() {
		return false
	}
	tx.writeCatalogue()
	tx.noteContainer(c)
	policy := *c.Policy()
	policy.Deadline = member
	c.policy.Store(&policy)
	tx.addHistory(c, expiry.HistoryEntry{What: expiry.Set, Kills: -1})
	tx.recordContainer(c)
	return true
}
