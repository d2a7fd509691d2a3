package keyspace

import (
	"slices"
)

// Tx is one command's (or one EXEC's) view of the keyspace at one frozen moment, holding the locks
// of what it may touch. Its zero value is ready for a Begin method of [Keyspace]; it can be used
// again after [Tx.Close]. Not safe for concurrent use.
//
// Ids and bodies are passed as strings that may be views of a connection's buffer: what is stored
// is copied.
type Tx struct {
	// OnDeath, if not nil, is told in place of that of [Options], on the same conditions, of what is found
	// dead after the transaction has changed a rule, or has written the item itself. Such a death is
	// covered by the ticket that Close returns, and has not happened after Rollback: then the item, if it
	// is dead nevertheless, is found so again. OnDeath outlasts Close.
	OnDeath func(c *Container, id string)

	ks     *Keyspace
	now    int64
	all    bool   // all partitions are locked
	locked []int  // else: these, ascending
	one    [1]int // backs locked when that is a single one
	many   []int  // backs it when those are several

	single   *partition // that of BeginKey, nil after any other Begin
	singleID string     // and its id

	group   []byte       // what was written, as entries of the journal; Close adds the changes of items
	changes []itemChange // of items, in order
	removed []*partition
	changed bool   // the catalogue was
	undos   []undo // how to take all that back, in order; see Rollback
	was     []entry
	leaving []departure // entries that were removed and are to be forgotten when it is certain
	alerted []*Watcher  // who watches what was changed
	reveal  LSN         // covers all that was read
	buf     []byte
}

// itemChange is what a transaction does to an item: the entry that it has written, once however often,
// or else the key that it has deleted.
type itemChange struct {
	t   *table
	e   *entry
	del string
}

// BeginNone starts a transaction that touches no items (it may look containers up).
func (ks *Keyspace) BeginNone(tx *Tx) {
	tx.ks = ks
	tx.now = ks.opt.Clock.Now()
	tx.saw(ks.promised(tx.now))
}

// BeginSweep freezes the time and locks nothing: Count, Scan, Random and Stats lock one partition
// after the other. Get, Put and Delete may not be used.
func (ks *Keyspace) BeginSweep(tx *Tx) { ks.BeginNone(tx) }

// BeginKey locks the partition of one id, then freezes the time.
func (ks *Keyspace) BeginKey(tx *Tx, id string) {
	p := ks.partitionOf(id)
	p.mu.Lock()
	tx.one[0] = p.number
	tx.locked = tx.one[:]
	tx.single, tx.singleID = p, id
	ks.BeginNone(tx)
}

// BeginKeys locks the partitions of all ids in ascending order, then freezes the time.
func (ks *Keyspace) BeginKeys(tx *Tx, ids []string) {
	if len(ids) == 1 {
		ks.BeginKey(tx, ids[0])
		return
	}
	for _, id := range ids {
		tx.many = append(tx.many, ks.partitionOf(id).number)
	}
	slices.Sort(tx.many)
	tx.locked = slices.Compact(tx.many)
	for _, n := range tx.locked {
		ks.partitions[n].mu.Lock()
	}
	ks.BeginNone(tx)
}

// BeginAll locks every partition: for what changes containers.
func (ks *Keyspace) BeginAll(tx *Tx) {
	ks.lockAll(tx)
	tx.saw(ks.promised(tx.now))
}

// lockAll is BeginAll for ourselves: nothing of it is revealed to anybody.
func (ks *Keyspace) lockAll(tx *Tx) {
	for _, p := range ks.partitions {
		p.mu.Lock()
	}
	tx.ks = ks
	tx.all = true
	tx.now = ks.opt.Clock.Now()
}

// Close hands what the transaction wrote to the journal as one atomic group, releases the locks
// and returns the ticket that covers all it has written and revealed.
//
// The order matters: the group joins the journal while the locks are still held, so that the
// journal has the writes of an item in the order in which they happened.
func (tx *Tx) Close() LSN {
	ticket := tx.reveal
	tx.encode()
	if len(tx.group) > 0 {
		ticket = tx.ks.journal.append(tx.group)
		for _, c := range tx.changes {
			if c.e != nil {
				c.e.ticket = ticket
			}
		}
		for _, p := range tx.removed {
			p.lastRemoval = ticket
		}
		if tx.changed {
			tx.ks.catalogue.ticket = ticket
		}
		tx.eachLocked(func(p *partition) { p.lastWrite = ticket })
	}
	for _, w := range tx.alerted {
		w.changed.Store(true)
	}
	tx.dropOld()
	for _, d := range tx.leaving {
		if !d.e.has(present) { // else it has been put back
			d.p.forget(d.t, d.e)
		}
	}
	tx.eachLocked((*partition).tidy)
	if !tx.all {
		for _, n := range tx.locked {
			tx.ks.partitions[n].mu.Unlock()
		}
	} else {
		for _, p := range tx.ks.partitions {
			p.mu.Unlock()
		}
	}
	tx.reset()
	return ticket
}

// dropOld lets go of what Rollback would have put back in place of what the transaction has written.
func (tx *Tx) dropOld() {
	for i := range tx.undos {
		u := &tx.undos[i]
		if u.f == nil && u.was != noRecord && tx.was[u.was].text != u.e.text {
			u.t.drop(tx.was[u.was].text)
		}
	}
}

// encode adds the changes of items to the group. Of an item written several times only the last state
// is there: the group counts as a whole, and takes no more memory than what it leaves behind.
func (tx *Tx) encode() {
	for _, c := range tx.changes {
		switch {
		case c.e == nil:
			tx.group = appendDel(tx.group, c.del)
		case c.e.has(present): // else its delete follows
			tx.group = appendSet(tx.group, c.t.key(c.e), c.t.rec(c.e))
		}
		if c.e != nil {
			c.e.unmark(changing)
		}
	}
}

// reset makes the transaction ready for the next Begin, keeping small buffers.
func (tx *Tx) reset() {
	const most = 64 << 10
	if tx.untouched() { // most have only read, and what they leave is quickly wiped
		tx.ks, tx.locked, tx.many, tx.reveal = nil, nil, keep(tx.many, most/8), 0
		tx.single, tx.singleID = nil, ""
		return
	}
	clear(tx.changes)
	clear(tx.removed)
	clear(tx.undos)
	clear(tx.was)
	clear(tx.leaving)
	*tx = Tx{
		OnDeath: tx.OnDeath,
		group:   keep(tx.group, most),
		buf:     keep(tx.buf, most),
		changes: keep(tx.changes, most/8),
		removed: keep(tx.removed, most/8),
		undos:   keep(tx.undos, most/64),
		was:     keep(tx.was, most/128),
		leaving: keep(tx.leaving, most/64),
		many:    keep(tx.many, most/8),
	}
}

// untouched tells whether the transaction has changed nothing, and locked no more than its ids need.
func (tx *Tx) untouched() bool {
	return !tx.all && !tx.changed && len(tx.group)+len(tx.changes)+len(tx.removed)+len(tx.undos)+len(tx.was)+
		len(tx.leaving)+len(tx.alerted) == 0
}

// keep empties a slice for its next use, or lets it go if it has grown beyond most.
func keep[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	return s[:0]
}

func (tx *Tx) eachLocked(f func(p *partition)) {
	if tx.all {
		for _, p := range tx.ks.partitions {
			f(p)
		}
		return
	}
	for _, n := range tx.locked {
		f(tx.ks.partitions[n])
	}
}

func (tx *Tx) holds(p *partition) bool {
	return tx.all || slices.Contains(tx.locked, p.number)
}

// partition gives the partition of an id, which the transaction must have locked.
func (tx *Tx) partition(id string) *partition {
	if tx.single != nil && tx.singleID == id {
		return tx.single
	}
	p := tx.ks.partitionOf(id)
	if !tx.holds(p) {
		panic("keyspace: item of a partition that the transaction has not locked")
	}
	return p
}

// eachPartition calls f with every partition locked, one after the other unless the transaction
// holds them already.
func (tx *Tx) eachPartition(f func(p *partition) (goOn bool)) {
	for _, p := range tx.ks.partitions {
		if !tx.within(p, f) {
			return
		}
	}
}

func (tx *Tx) within(p *partition, f func(p *partition) bool) bool {
	if !tx.holds(p) {
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.tidy()
	}
	return f(p)
}

func (tx *Tx) saw(t LSN) { tx.reveal = max(tx.reveal, t) }

// Now is the frozen moment in ms.
func (tx *Tx) Now() int64 { return tx.now }

// Micros reads the clock anew, in µs: for those who ask for the time itself. What lives and dies is judged
// by Now, which is not later.
func (tx *Tx) Micros() int64 {
	now := max(tx.ks.Micros(), tx.now*1000)
	tx.saw(tx.ks.promised(now/1000 + 1)) // no start may be before it
	return now
}
