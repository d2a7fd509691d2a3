package memtable

import "mayfly/expiry"

// Earliest returns lower bounds in ms: of the last writes of items that inherit the container's default, and
// of the ends of items with one of their own. They are [expiry.NeverDue] if there are none. A sample that
// removes nothing more leaves bounds beyond its limits. It takes constant time.
func (t *Table) Earliest() (byDefault, byOwnTTL int64) {
	return t.byDefault.earliest(), t.byOwnTTL.earliest()
}

// Moments returns what decides when the item of the entry dies: its last write in ms, and its expireAt.
func (e *Entry) Moments() (ts, expireAt int64) { return e.ts, e.expireAt }

// earliest returns a lower bound of the moments in the queue; expiry.NeverDue if it is empty.
func (q *expiryQueue) earliest() int64 {
	if len(q.order) == 0 {
		return expiry.NeverDue
	}
	return q.buckets[q.order[0].bucket].earliest
}
