package keyspace

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/tables"
)

// A clock that is moved step by step
//
// With [Options.Stepped] nothing is purged in the background. Who moves the clock calls [Keyspace.DoDue] at
// each moment that [Keyspace.NextDue] names, and [Keyspace.PurgeAll] at the end. So the moments at which the
// dead are found, and their order, follow from the commands alone:
//
//  1. Tables of logs have timers too, for the ends of their retention. Other containers without a timer have
//     no one who could tell when a death is found.
//  2. The deaths of one moment come in the order of their containers, then of their ids, across partitions;
//     those of elements in the order of fields.

// NextDue returns the next moment in ms at which something is due: a death that is to be found when it
// happens, or the end of an entry's retention or of an undo window. It is [expiry.NeverDue] if nothing is. It
// may be a little early.
func (ks *Keyspace) NextDue() int64 {
	next := min(ks.purge.NextDue(), ks.teller.timers.NextDue())
	if ks.undo.Any() {
		p := ks.partitions[0]
		p.Mu.Lock()
		defer p.Mu.Unlock()
		next = min(next, ks.catalogue.Asides.First())
	}
	return next
}

// DoDue does what is due now. It calls pause from time to time without locks of partitions, so that the
// deaths do not outrun those who hear of them. What cannot be removed now is due again at the moment later
// (ms). One DoDue runs at a time.
func (ks *Keyspace) DoDue(later int64, pause func()) {
	if ks.ListenersChanged(); ks.purge.TakeRescan() {
		var tx Tx
		ks.lockAll(&tx)
		tx.beginTimers()
		tx.Close()
	}
	ks.tellDue(later)
	ks.purge.Due(later, func(pools []expiry.Pool) { ks.buryInOrder(pools, pause) })
	ks.EndWindows()
}

// PurgeAll removes all the dead, and commits what it has journalled.
func (ks *Keyspace) PurgeAll() {
	ks.purge.All()
	ks.commitBurials()
}

// corpse is a dead item that is to be buried, or a key with elements that are dead.
type corpse struct {
	table *table
	id    string
	what  int // theItem or itsElements
}

const (
	theItem = iota
	itsElements
)

// buryPiece is the number of items that buryInOrder buries at a time.
const buryPiece = 256

// buryInOrder buries the dead of tables whose deaths are logged or heard. What it leaves, for a disk that
// fails, the samples find.
func (ks *Keyspace) buryInOrder(pools []expiry.Pool, pause func()) {
	var dead []corpse
	for _, pool := range pools {
		dead = ks.appendDead(dead, pool.(*table))
	}
	slices.SortFunc(dead, func(a, b corpse) int {
		return cmp.Or(strings.Compare(a.table.C.name, b.table.C.name), strings.Compare(a.id, b.id), cmp.Compare(a.what, b.what))
	})
	dead = slices.CompactFunc(dead, func(a, b corpse) bool { return a.table == b.table && a.id == b.id })
	for len(dead) > 0 && ks.Writable() == nil {
		n := 1 // a group tells of items and of elements apart
		for n < min(len(dead), buryPiece) && dead[n].table.C == dead[0].table.C && dead[n].what == dead[0].what {
			n++
		}
		ks.buryAll(dead[:n])
		dead = dead[n:]
		pause()
	}
}

// tellInOrder tells clients that cache the deaths of one moment in their order.
func (ks *Keyspace) tellInOrder(pools []expiry.Pool) {
	var t Told
	for _, pool := range pools {
		n := pool.(noted)
		n.p.Mu.Lock()
		t.Changes, _ = n.takeDead(t.Changes, math.MaxInt)
		t.LSN = max(t.LSN, locked{ks, n.p}.toldFrom())
		n.p.Mu.Unlock()
	}
	slices.SortFunc(t.Changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Container.name, b.Container.name), strings.Compare(a.ID, b.ID))
	})
	if len(t.Changes) > 0 {
		ks.tell(&t)
	}
}

// appendDead appends the dead of a table that is not hidden. Those of a table of pages are elements of keys.
func (ks *Keyspace) appendDead(dead []corpse, t *table) []corpse {
	t.P.Mu.Lock()
	defer t.P.Mu.Unlock()
	if t.Gone() || t.C.hidden != nil {
		return dead
	}
	due := ks.due(t.C, ks.Now())
	if t.Collections == nil {
		t.EachDead(due, func(e *memtable.Entry) { dead = append(dead, corpse{t, strings.Clone(t.ID(e)), theItem}) })
		return dead
	}
	keys := t.C.tables[t.P.Number]
	keys.EachDuePage(due, ks.Now(), math.MaxInt, func(c *tables.Collection, _ *memtable.Entry) {
		dead = append(dead, corpse{keys, strings.Clone(keys.ID(keys.At(c.Key))), itsElements})
	})
	return dead
}

// buryAll buries those that are still there and dead, as one atomic group.
func (ks *Keyspace) buryAll(dead []corpse) {
	ids := make([]string, len(dead))
	for i, d := range dead {
		ids[i] = d.id
	}
	var tx Tx
	ks.BeginKeys(&tx, ids)
	for _, d := range dead {
		if !d.table.Gone() {
			tx.bury(d.table, d.id, ks.due(d.table.C, tx.now))
		}
	}
	if tx.Close() == ks.journal.Last() {
		ks.uncommitted.Store(true)
	}
	_ = ks.Throttle(0) // a failure is noted, and tried again
}
