package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/keyspace/storage"
	"mayfly/test/drill"
)

// editList changes a list of database 0 in a transaction of its own.
func editList(ks *Keyspace, id string, change func(x *ListEdit)) LSN {
	var tx Tx
	ks.BeginAll(&tx)
	x, _ := tx.EditList(tx.Container("0"), id)
	change(&x)
	x.Close()
	return tx.Close()
}

// pushMany adds entries that take several pages.
func pushMany(x *ListEdit) {
	for n := range 100 {
		x.Push(false, fmt.Sprintf("canary-%d-", n))
	}
}

// popBoth removes the first entry and the last two.
func popBoth(x *ListEdit) {
	x.Pop(true)
	x.Pop(false)
	x.Pop(false)
}

// poppedOf returns how many entries there are in pages of a list of database 0 that were popped.
func poppedOf(ks *Keyspace, id string) int {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	list, _, _ := tx.Elements(tx.Container("0"), id)
	return list.Collection.Count - list.Len()
}

// What was popped off a list leaves the folder, though nobody comes for the list again. That is no write of
// it.
func TestPoppedTextLeavesTheFolder(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	drill.Check(t, o.AllowCollections())
	var c storage.Cadence
	o.SetEraseWithin(eraseWithin)
	drill.Check(t, o.Wait(editList(o.Keyspace, "tasks", pushMany)))
	drill.Check(t, o.Wait(editList(o.Keyspace, "tasks", popBoth)))
	o.pass(&c, 20*time.Second)
	if n := len(canaries(t, o.opt.FS, o.opt.Dir)); n != 100 {
		t.Errorf("%d texts are in the files: a pop writes a page", n)
	}
	now := o.clock.Now()
	o.pass(&c, eraseWithin)
	left := canaries(t, o.opt.FS, o.opt.Dir)
	if len(left) != 97 || left["canary-0-"] != nil || left["canary-98-"] != nil || left["canary-99-"] != nil {
		t.Errorf("the files hold %v", left)
	}
	var tx Tx
	o.BeginAll(&tx)
	defer tx.Close()
	list, _, _ := tx.Elements(tx.Container("0"), "tasks")
	if it, _ := tx.Get(tx.Container("0"), "tasks"); list.Len() != 97 || it.TS >= now {
		t.Errorf("the list has %d entries, and was written %d ms after it was left alone", list.Len(), it.TS-now)
	}
}

// A follower leaves that to the leader, and does it when it leads itself.
func TestPoppedOnAFollower(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	a, b := newNode(t, log), newNode(t, log)
	a.lead()
	drill.Check(t, a.AllowCollections())
	a.mustWait(editList(a.Keyspace, "tasks", pushMany))
	a.mustWait(editList(a.Keyspace, "tasks", popBoth))
	b.follow()
	rest := func(n, leader *node) {
		for range 3 {
			n.PurgeOnce()
			leader.clock.Advance(poppedStay * time.Millisecond)
			leader.sweep()
			leader.mustWait(leader.put("other", "the followers learn the time"))
			n.follow()
		}
		n.PurgeOnce()
	}
	if rest(b, a); poppedOf(b.Keyspace, "tasks") != 3 {
		t.Errorf("a follower has %d entries that were popped", poppedOf(b.Keyspace, "tasks"))
	}
	a.abandon()
	b.lead()
	if rest(b, b); poppedOf(b.Keyspace, "tasks") != 0 {
		t.Errorf("a leader has %d entries that were popped", poppedOf(b.Keyspace, "tasks"))
	}
	drill.Check(t, b.Check())
	b.abandon()
}

// Pauses of clients hold it up, as they do deaths: nothing is written meanwhile.
func TestPoppedDuringAPause(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.AllowCollections())
	editList(o.Keyspace, "tasks", pushMany)
	editList(o.Keyspace, "tasks", popBoth)
	o.PurgeOnce()
	o.KeepDeadUntil(o.clock.Now() + 10*poppedStay)
	o.clock.Advance(2 * poppedStay * time.Millisecond)
	last := o.journal.Last()
	if o.PurgeOnce(); o.journal.Last() != last || poppedOf(o.Keyspace, "tasks") != 3 {
		t.Errorf("%d groups were written", o.journal.Last()-last)
	}
	o.clock.Advance(9 * poppedStay * time.Millisecond)
	if o.PurgeOnce(); poppedOf(o.Keyspace, "tasks") != 0 {
		t.Errorf("%d entries are left after the pause", poppedOf(o.Keyspace, "tasks"))
	}
}

// Lists that are gone cost no memory for longer than they would have waited, and nobody's turn.
func TestPoppedListsThatAreGone(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	drill.Check(t, o.AllowCollections())
	editList(o.Keyspace, "stays", pushMany)
	o.PurgeOnce()
	before := o.Used()
	for n := range 3000 {
		id := fmt.Sprint("gone-", n)
		editList(o.Keyspace, id, pushMany)
		editList(o.Keyspace, id, popBoth)
		var tx Tx
		o.BeginAll(&tx)
		tx.Delete(tx.Container("0"), id)
		tx.Close()
	}
	editList(o.Keyspace, "stays", popBoth)
	o.PurgeOnce()
	if used := o.Used() - before; used < 3000*16 {
		t.Errorf("%d bytes are told for 3,000 lists that wait", used)
	}
	o.clock.Advance(poppedStay * time.Millisecond)
	for range 3 {
		o.PurgeOnce()
	}
	if used := o.Used() - before; used > 1000 || poppedOf(o.Keyspace, "stays") != 0 {
		t.Errorf("%d bytes are left, and %d entries that were popped", used, poppedOf(o.Keyspace, "stays"))
	}
}

// A list that waits does not end the removal of dead fields before they are all removed.
func TestPoppedBesideDeadFields(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	drill.Check(t, o.AllowCollections())
	editList(o.Keyspace, "tasks", pushMany)
	editList(o.Keyspace, "tasks", popBoth)
	for n := range 300 {
		var tx Tx
		o.BeginAll(&tx)
		x, _ := tx.EditElements(tx.Container("0"), fmt.Sprint("hash-", n), HashKind)
		x.Set(Element{Field: "lives", Value: "1"})
		x.Set(Element{Field: "dies", Value: "1", End: o.clock.Now() + poppedStay})
		x.Close()
		tx.Close()
	}
	o.PurgeOnce()
	o.clock.Advance(poppedStay * time.Millisecond)
	o.PurgeAll()
	if n := o.Stats().ExpiredElements; n != 300 || poppedOf(o.Keyspace, "tasks") != 0 {
		t.Errorf("%d fields were removed, and %d entries that were popped are left", n, poppedOf(o.Keyspace, "tasks"))
	}
}

// A command that panics amid an edit of a list takes nothing off it.
func TestRollbackOfAPop(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.AllowCollections())
	editList(o.Keyspace, "tasks", pushMany)
	for _, left := range []bool{true, false} {
		var tx Tx
		o.BeginAll(&tx)
		x, _ := tx.EditList(tx.Container("0"), "tasks")
		x.Pop(left)
		x.Push(left, "new")
		x.Pop(!left)
		tx.Rollback()
		drill.Check(t, o.Check())
	}
	editList(o.Keyspace, "tasks", func(x *ListEdit) {
		if first, _ := x.Pop(true); first != "canary-0-" || x.Len() != 99 {
			t.Errorf("%q was the first, %d are left", first, x.Len())
		}
	})
}
