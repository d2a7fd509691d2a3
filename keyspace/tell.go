package keyspace

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/watch"
)

// Clients that cache
//
// A client may keep what it has read, and be told when that is not true any more (CLIENT TRACKING):
//
//  1. A partition has a note for each (container, id) that such a client has read: see [watch.Notes]. It is
//     made in the lock of the read. What alerts those who watch an id takes the note, and its readers are
//     told. An id is told once, until it is read again.
//  2. The notes of a container in a partition have a timer for the first death among them. So a death is told
//     in its millisecond, no matter when and by what the item is removed: it may stay while it is dead
//     (kept.go). A follower looks when its clock moves.
//  3. A change of a whole container takes constant time: its notes are dropped, and their clients are told
//     that nothing holds any more. As for watches, the state of the container says whether that is so.
//  4. Some clients want to know all that changes, and have no notes.
//
// A transaction takes the notes as it goes, so what it reads after a write of its own is noted anew. One that
// is rolled back tells nothing, and makes its notes again.

// Reader is a client that has read an id; see [watch.ReaderOf].
type Reader = watch.Reader

// ReaderOf returns the reader for the number of a client; see [watch.ReaderOf].
func ReaderOf(client int64, document bool) Reader { return watch.ReaderOf(client, document) }

// Change is an id of which what was read does not hold any more.
type Change struct {
	Container *Container
	ID        string
	Readers   []Reader // who has read it
}

// Told is what clients that cache are to be told.
type Told struct {
	LSN     LSN   // must be committed before
	By      int64 // the client whose transaction it was; 0: nobody's
	Changes []Change

	// Of the rest nothing that was read holds any more: of clients by number, of those who want to know all
	// that changes, or of all.
	Clients   []int64
	Broadcast bool
	All       bool
}

// teller is what a keyspace has for clients that cache.
type teller struct {
	counts    watch.Counts
	timers    *expiry.Purge // of the notes
	most      atomic.Int64  // notes; 0: any number
	broadcast atomic.Bool

	start  sync.Once
	runner *expiry.Runner // of the timers; nil: not started
}

// toldChange is a change that is told when its transaction closes. Its id is not a clone.
type toldChange struct {
	Change
	p *partition
}

// notedContainer is a container that a transaction changes, as it was before.
type notedContainer struct {
	c      *Container
	before watch.State
}

// initTeller makes the teller ready.
func (ks *Keyspace) initTeller() {
	ks.teller.timers = expiry.NewPurge(expiry.MaxEffort, ks.opt.Clock, func(int, int) []expiry.Pool { return nil })
}

// endTeller ends the background work of the teller.
func (ks *Keyspace) endTeller() {
	ks.teller.start.Do(func() {})
	if ks.teller.runner != nil {
		ks.teller.runner.Stop()
	}
}

// Track notes that a client reads an id, to tell it the next change. The transaction has locked its
// partition.
func (tx *Tx) Track(c *Container, id string, r Reader) { tx.track(tx.partition(id), c, id, r) }

func (tx *Tx) track(p *partition, c *Container, id string, r Reader) {
	var ts, expireAt int64
	e := tx.find(p, c, id)
	if e != nil {
		ts, expireAt = e.Moments()
		expireAt = tx.firstDeath(p, c, e, expireAt)
	}
	g := p.Watchers.Note(c, id, r, e != nil, ts, expireAt)
	if g.Timer == nil {
		g.Timer = tx.ks.teller.timers.NewTimer(noted{tx.ks, p, c})
	}
	if e == nil {
		return
	}
	due := expiry.Retention(nil).Due(c.Policy(), ts, expireAt)
	if g.Timer.Earlier(due); due != expiry.NeverDue && !tx.ks.opt.NoPurge && !tx.ks.opt.Stepped {
		tx.ks.teller.start.Do(func() {
			tx.ks.teller.runner = expiry.NewRunner(tx.ks.teller.timers)
			tx.ks.teller.runner.Start()
		})
	}
}

// firstDeath returns the expireAt of a key for its next change by a death, of itself or of one of its
// elements.
func (tx *Tx) firstDeath(p *partition, c *Container, e *memtable.Entry, expireAt int64) int64 {
	if !e.Collection() {
		return expireAt
	}
	h := tx.elementsOf(c.tables[p.Number], c.tables[p.Number].Item(e).Body)
	if h.Collection == nil || h.Collection.Ending == 0 {
		return expireAt
	}
	if first := h.Collections.FirstEnd(h.Collection, h.Limit); first != math.MaxInt64 {
		return expiry.AtLatest(expireAt, first)
	}
	return expireAt
}

// noted is the notes of a container in a partition, as a pool whose deaths are found when they happen.
type noted struct {
	ks *Keyspace
	p  *partition
	c  *Container
}

// Sample implements [expiry.Pool]: it tells deaths. It removes no item.
func (n noted) Sample(most int) (s expiry.Sample) {
	if !n.p.Mu.LockUnlessLong() {
		return expiry.Sample{Locked: true}
	}
	defer n.p.Mu.Unlock()
	var list []Change
	list, s.More = n.takeDead(nil, most)
	locked{n.ks, n.p}.tell(list)
	s.Drawn, s.Dead, s.Internal = len(list), len(list), true
	return s
}

// takeDead appends the deaths that are to be told to a list, until that has some, and reports whether there
// are more. The lock of the partition must be held.
func (n noted) takeDead(list []Change, most int) (_ []Change, more bool) {
	dead := n.c.Policy().DeadLimits(n.ks.leasedNow())
	n.p.Watchers.ChangeNotes(func(ns *watch.Notes[*Container]) {
		for len(list) < most {
			id, readers := ns.TakeDead(n.c, dead)
			if readers == nil {
				break
			}
			list = append(list, Change{n.c, id, readers})
		}
		if g := ns.Group(n.c); g != nil {
			more = g.Dead(dead)
			n.c.setNoteTimer(g)
		}
	})
	return list, more
}

// setNoteTimer sets the timer of notes by the policy of the container as it is.
func (c *Container) setNoteTimer(g *watch.Group) {
	byDefault, byOwnTTL := g.Earliest()
	g.Timer.Set(expiry.Retention(nil).EarliestDue(c.Policy(), byDefault, byOwnTTL))
}

// tell tells changes in a partition that are no transaction's: deaths, and notes that go for want of room.
func (p locked) tell(list []Change) {
	if len(list) > 0 {
		p.ks.tell(&Told{Changes: list, LSN: p.toldFrom()})
	}
}

// toldFrom returns what must be committed before a change in a partition is told that is no transaction's.
func (p locked) toldFrom() LSN {
	if p.ks.follows() { // what a follower knows is committed
		return 0
	}
	return max(p.LastWrite, p.ks.catalogue.lsn, p.ks.leased(p.ks.Now()))
}

func (ks *Keyspace) tell(t *Told) {
	if ks.opt.OnTold != nil {
		ks.opt.OnTold(t)
	}
}

// tellDeath tells the death of an item that is about to be removed, unless its timer has told it.
func (p locked) tellDeath(c *Container, id string) {
	if !p.Watchers.Tells(c, id) || c.hidden != nil {
		return
	}
	change := Change{Container: c, ID: strings.Clone(id)}
	p.Watchers.ChangeNotes(func(ns *watch.Notes[*Container]) { change.Readers = ns.Take(c, id) })
	p.tell([]Change{change})
}

// willTell has the end of the transaction tell that an id has changed. The id is valid until then.
func (tx *Tx) willTell(p *partition, c *Container, id string) {
	if !p.Watchers.Tells(c, id) || c.hidden != nil || c.aside != nil {
		return
	}
	change := Change{Container: c, ID: id}
	p.Watchers.ChangeNotes(func(ns *watch.Notes[*Container]) { change.Readers = ns.Take(c, id) })
	tx.told = append(tx.told, toldChange{change, p})
}

// untell takes back what the transaction would tell.
func (tx *Tx) untell() {
	for _, x := range tx.told {
		for _, r := range x.Readers {
			tx.track(x.p, x.Container, x.ID, r)
		}
	}
	tx.told, tx.flushed = nil, false
}

// noteState notes a container that the transaction is about to change.
func (tx *Tx) noteState(c *Container) {
	if tx.ks.opt.OnTold != nil {
		tx.noted = append(tx.noted, notedContainer{c, c.watchState()})
	}
}

// tellAll tells clients what the transaction has changed. Its LSN covers that. The locks are held.
func (tx *Tx) tellAll(lsn LSN) {
	if len(tx.told)+len(tx.noted) == 0 && !tx.flushed {
		return
	}
	t := &Told{LSN: lsn, By: tx.Client, All: tx.flushed}
	for _, x := range tx.told {
		x.ID = strings.Clone(x.ID)
		t.Changes = append(t.Changes, x.Change)
	}
	clients := map[int64]bool{}
	for i := range tx.noted {
		tx.tellContainer(&tx.noted[i], clients, t)
	}
	for client := range clients {
		t.Clients = append(t.Clients, client)
	}
	if t.All {
		for _, p := range tx.ks.partitions {
			p.Watchers.ChangeNotes((*watch.Notes[*Container]).DropAll)
		}
	}
	if len(t.Changes)+len(t.Clients) > 0 || t.Broadcast || t.All {
		tx.ks.tell(t)
	}
}

// tellContainer adds whom a change of a container concerns, if it is one of what was read.
func (tx *Tx) tellContainer(n *notedContainer, clients map[int64]bool, t *Told) {
	after := n.c.watchState()
	if n.before == after {
		return
	}
	other := n.before
	other.Policy = after.Policy
	whole := other != after || n.before.Policy.Hold != after.Policy.Hold
	dead := after.Policy.DeadLimits(tx.now)
	if t.Broadcast = t.Broadcast || tx.ks.teller.broadcast.Load() && n.c.hidden == nil && (whole || tx.whole(n.c).anyWithin(dead)); !whole {
		for _, p := range tx.ks.partitions {
			if g := p.Watchers.Notes().Group(n.c); g != nil && g.Dead(dead) {
				whole = true
			}
		}
	}
	for _, p := range tx.ks.partitions {
		g := p.Watchers.Notes().Group(n.c)
		switch {
		case g == nil:
		case whole:
			p.Watchers.ChangeNotes(func(ns *watch.Notes[*Container]) {
				ns.Drop(n.c, func(client int64) { clients[client] = true })
			})
		default:
			n.c.setNoteTimer(g)
		}
	}
}

// anyWithin reports whether limits select an item of the container.
func (c whole) anyWithin(l expiry.Limits) (found bool) {
	for t := range c.each {
		byDefault, byOwnTTL := t.Earliest()
		found = found || byDefault <= l.ByDefault || byOwnTTL <= l.ByOwnTTL
	}
	return found
}

// tellDue tells the deaths that have happened by now, where no runner does.
func (ks *Keyspace) tellDue(later int64) {
	if ks.teller.timers.NextDue() <= ks.Now() {
		ks.teller.timers.Due(later, ks.tellInOrder)
	}
}

// SetBroadcast says whether any client wants to know all that changes.
func (ks *Keyspace) SetBroadcast(on bool) {
	ks.teller.broadcast.Store(on)
	for _, p := range ks.partitions {
		p.Mu.Lock()
		p.Watchers.SetBroadcast(on)
		p.Mu.Unlock()
	}
	ks.ListenersChanged()
}

// Noted returns figures of the notes of clients that cache.
func (ks *Keyspace) Noted() (keys, items int64) {
	return ks.teller.counts.Keys.Load(), ks.teller.counts.Items.Load()
}

// SetMostNoted limits the ids that are noted; 0: no limit.
func (ks *Keyspace) SetMostNoted(n int64) {
	ks.teller.most.Store(n)
	ks.TrimNotes()
}

// TrimNotes removes notes of random ids until the limit holds, and tells them. It reports whether it has
// removed any. The calling goroutine must have no transaction open.
func (ks *Keyspace) TrimNotes() (removed bool) {
	most, keys := ks.teller.most.Load(), &ks.teller.counts.Keys
	if most == 0 {
		return false
	}
	return ks.forgetWhile(func() int64 { return keys.Load() - most })
}

// FreeNotes removes notes of random ids until limit bytes are used in all, or most by notes, and tells them.
// It reports whether the limit is reached. The calling goroutine must have no transaction open.
func (ks *Keyspace) FreeNotes(limit, most int64) bool {
	counts := &ks.teller.counts
	ks.forgetWhile(func() int64 {
		keys, bytes := counts.Keys.Load(), counts.Bytes.Load()
		if excess := min(ks.Used()-limit, bytes-most); excess > 0 {
			return 1 + int64(float64(excess)/float64(bytes)*float64(keys)) // of notes of average size
		}
		return 0
	})
	return ks.Used() <= limit
}

// forgetWhile removes notes of random ids while there are and more is positive, which is about the number
// that has to go. It reports whether it has removed any.
func (ks *Keyspace) forgetWhile(more func() int64) (removed bool) {
	for barren, at := 0, rand.IntN(len(ks.partitions)); barren < len(ks.partitions); at++ {
		n := more()
		if n <= 0 {
			return removed
		}
		if ks.forgetSome(ks.partitions[at%len(ks.partitions)], min(n, mostForgotten)) {
			barren, removed = 0, true
		} else {
			barren++
		}
	}
	return removed
}

// mostForgotten is the number of notes that are removed under one lock.
const mostForgotten = 64

// forgetSome removes up to n random notes of a partition, and tells them.
func (ks *Keyspace) forgetSome(p *partition, n int64) bool {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	var list []Change
	p.Watchers.ChangeNotes(func(ns *watch.Notes[*Container]) {
		for range n {
			c, id, readers := ns.TakeAny()
			if readers == nil {
				return
			}
			list = append(list, Change{c, id, readers})
		}
	})
	locked{ks, p}.tell(list)
	return len(list) > 0
}
