package tables

import (
	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/index"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
)

// Table holds the items of one container in one partition. It is a pool of the active purge. The partition's
// lock protects it, and is held by those who call its methods, unless they say otherwise.
type Table[C Container] struct {
	memtable.Table
	P       *Partition[C]
	C       C
	Indexed *index.Table   // nil without indexes
	Part    *deathlog.Part // not nil: the table is of a log
	Pages   *Table[C]      // of the collections of the table; nil: none has had any

	Collections *Collections // not nil: the table is one of pages

	set   *Set[C]
	place int // in the rotation of tables
	kept  keptFigures
	timer *expiry.Timer // nil if the deaths need not be punctual
}

// List is the tables of a container by partition, nil where there were no items. Each is protected by its
// partition's lock.
type List[C Container] []*Table[C]

// Each calls f for the tables that there are, until f returns false.
func (ts List[C]) Each(f func(t *Table[C]) (more bool)) {
	for _, t := range ts {
		if t != nil && !f(t) {
			return
		}
	}
}

// Hide hides all tables. The locks of all partitions must be held.
func (ts List[C]) Hide() {
	for t := range ts.Each {
		t.Hide()
	}
}

// Show ends Hide.
func (ts List[C]) Show() {
	for t := range ts.Each {
		t.Show()
	}
}

// Detach is that of package memtable, of the pages too.
func (t *Table[C]) Detach() {
	t.Table.Detach()
	if t.Pages != nil {
		t.Pages.Table.Detach()
	}
}

// Attach ends Detach.
func (t *Table[C]) Attach() {
	t.Table.Attach()
	if t.Pages != nil {
		t.Pages.Table.Attach()
	}
}

// Return adds a detached table to its container and partition again.
func (t *Table[C]) Return() {
	t.Attach()
	if t.Pages != nil {
		t.set.add(t.Pages)
	}
	t.Indexed.Attach()
	t.set.add(t)
	t.set.host.Tables(t.C)[t.P.Number] = t
	t.SetTimer(0)
}

// Leave takes the table from its container and partition.
func (t *Table[C]) Leave() {
	t.Detach()
	if t.Pages != nil {
		t.Pages.stopTimer()
		t.set.remove(t.Pages)
	}
	t.stopTimer()
	t.Indexed.Detach()
	t.set.remove(t)
	t.set.host.Left()
	t.set.host.Tables(t.C)[t.P.Number] = nil
}

// Gone reports whether the table has left its container since it was listed: it was detached or set aside.
func (t *Table[C]) Gone() bool {
	return t.Detached() || t.set.host.Away(t.C)
}

// Hide keeps the table of a container that is set aside from the purge, eviction and figures. It stays in its
// partition.
func (t *Table[C]) Hide() {
	if t.Pages != nil {
		t.Pages.stopTimer()
		t.set.remove(t.Pages)
	}
	t.stopTimer()
	t.Indexed.Detach()
	t.set.remove(t)
	t.set.host.Left()
}

// Show ends Hide.
func (t *Table[C]) Show() {
	if t.Pages != nil {
		t.set.add(t.Pages)
	}
	t.Indexed.Attach()
	t.set.add(t)
	t.SetTimer(0)
}

// Sample implements [expiry.Pool]. No lock is held.
func (t *Table[C]) Sample(n int) expiry.Sample { return t.set.host.Sample(t, n) }

// IndexBy gives the table trees for a set of indexes. Indexes that stay keep theirs.
func (t *Table[C]) IndexBy(set *index.Set) {
	t.Indexed = index.Observe(&t.Table, t.Indexed, set)
}

// Release releases an entry that was removed from the table.
func (t *Table[C]) Release(e *memtable.Entry) {
	t.P.LastRemoval = max(t.P.LastRemoval, journal.LSN(e.LSN()))
	t.Table.Release(e)
}

// Restore takes back what was done to an entry; see [memtable.Table.Restore].
func (t *Table[C]) Restore(e, was *memtable.Entry) {
	t.Table.Restore(e, was)
	t.NoteDue(e.Moments())
}

// CleanStep does one step of a thorough cleaning; see [memtable.Table.CleanFurther]. No lock is held.
func (t *Table[C]) CleanStep(done int) (now int, more bool) {
	t.P.Mu.Lock()
	defer t.P.Mu.Unlock()
	defer locks.EndProcessOnPanic()
	return t.CleanFurther(done)
}

// keptFigures are figures of the dead that stay in a table, as of a moment.
type keptFigures struct {
	memtable.Stats
	policy *expiry.Policy // nil: not counted yet
	at     int64          // ms
}

// KeptStats returns figures of the dead items that stay in a swept table. They are at most some ms old. To
// count the dead takes 12 ms a million.
func (t *Table[C]) KeptStats(now, old int64) memtable.Stats {
	if !t.set.host.Keeps(t.C, now) {
		return memtable.Stats{}
	}
	k, policy := &t.kept, t.C.Policy()
	if old == 0 || k.policy != policy || now-k.at > old {
		*k = keptFigures{t.DeadStats(policy.DeadLimits(now)), policy, now}
	}
	return k.Stats
}

// Living returns the number of living items of a swept table.
func (t *Table[C]) Living(now int64) int {
	return t.Len() - t.KeptStats(now, 0).Items - len(t.Hollow(t.C.Policy().DeadLimits(now)))
}
