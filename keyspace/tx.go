package keyspace

import (
	"math/rand/v2"
	"slices"

	"mayfly/expiry"
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

	group   []byte       // what was written, as entries of the journal; Close adds the changes of items
	changes []itemChange // of items, in order
	removed []*partition
	changed bool   // the catalogue was
	undos   []undo // how to take all that back, in order; see Rollback
	was     []entry
	leaving []departure // entries that were removed and are to be forgotten when it is certain
	alerted []*Watcher  // who watches what was changed
	reveal  Ticket      // covers all that was read
	buf     []byte
}

// itemChange is what a transaction does to an item: the entry that it has written, once however often,
// or else the key that it has deleted.
type itemChange struct {
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
func (tx *Tx) Close() Ticket {
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
	for _, d := range tx.leaving {
		if !d.e.has(present) { // else it has been put back
			d.p.forget(d.t, d.e)
		}
	}
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

// encode adds the changes of items to the group. Of an item written several times only the last state
// is there: the group counts as a whole, and takes no more memory than what it leaves behind.
func (tx *Tx) encode() {
	for _, c := range tx.changes {
		switch {
		case c.e == nil:
			tx.group = appendDel(tx.group, c.del)
		case c.e.has(present): // else its delete follows
			tx.group = appendSet(tx.group, c.e.key(), c.e.rec())
		}
		if c.e != nil {
			c.e.unmark(changing)
		}
	}
}

// reset makes the transaction ready for the next Begin, keeping small buffers.
func (tx *Tx) reset() {
	const most = 64 << 10
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
	}
	return f(p)
}

func (tx *Tx) saw(t Ticket) { tx.reveal = max(tx.reveal, t) }

// Now is the frozen moment in ms.
func (tx *Tx) Now() int64 { return tx.now }

// Micros reads the clock anew, in µs: for those who ask for the time itself. What lives and dies is judged
// by Now, which is not later.
func (tx *Tx) Micros() int64 {
	now := max(tx.ks.Micros(), tx.now*1000)
	tx.saw(tx.ks.promised(now/1000 + 1)) // no start may be before it
	return now
}

// find returns the living entry of an id, nil if there is none. A dead one is removed on the way:
//  1. it leaves the table, so that it is absent for everybody from here on;
//  2. the removal is not journalled, unless this transaction has written it: whoever loads the entry
//     again finds it dead again, since what killed it is kept (expiry.Policy);
//  3. it counts as removed lazily.
func (tx *Tx) find(p *partition, c *Container, id string) *entry {
	t := c.tables[p.number]
	if t == nil {
		tx.saw(p.lastRemoval)
		return nil
	}
	e := t.find(id)
	if e == nil {
		tx.saw(p.lastRemoval)
		return nil
	}
	tx.saw(e.ticket)
	if e.dead(c.Policy(), tx.now) {
		tx.noteDeath(t, e)
		t.remove(e)
		tx.bury(p, c, t, e)
		tx.ks.purge.CountLazy(1)
		return nil
	}
	return e
}

// bury lets go of an entry that has been taken out of its table because it is dead. What may have killed it
// is not certain yet if the transaction has changed the rules or has written it.
func (tx *Tx) bury(p *partition, c *Container, t *table, e *entry) {
	if !tx.changed && !e.has(changing) {
		tx.ks.bury(p, c, e, tx.now)
	} else if tx.OnDeath != nil {
		tx.OnDeath(c, t.id(e))
	}
	tx.forget(p, t, e)
}

// departure is an entry that the transaction has removed.
type departure struct {
	p *partition
	t *table
	e *entry
}

// forget has an entry forgotten that has been removed from its table: at once if it was found dead, and at
// the end if what the transaction remembers of it is still needed, to be written or to be taken back.
// Then its partition is locked until the end.
//
// If the transaction itself has written it, that is not journalled (see encode), but that it is gone is:
// what was overwritten may have an end that has not come.
func (tx *Tx) forget(p *partition, t *table, e *entry) {
	if e.has(changing) {
		tx.changes = append(tx.changes, itemChange{del: e.key()})
	}
	if tx.changed || e.has(changing) {
		tx.leaving = append(tx.leaving, departure{p, t, e})
	} else {
		p.forget(t, e)
	}
}

// Get returns the item under an id if it lives. One that is dead is removed from memory.
func (tx *Tx) Get(c *Container, id string) (Item, bool) {
	if e := tx.find(tx.partition(id), c, id); e != nil {
		return e.item(), true
	}
	return Item{}, false
}

// Memory estimates how much memory the item under an id takes, in bytes; false if there is none.
func (tx *Tx) Memory(c *Container, id string) (int64, bool) {
	if e := tx.find(tx.partition(id), c, id); e != nil {
		return e.memory(), true
	}
	return 0, false
}

// Put stores an item under an id, whether there is one or not; its clock starts now. It returns the
// item as stored. own is expiry.Inherit, expiry.Never or a moment in ms; one that has passed makes
// sense only in a container that is off.
func (tx *Tx) Put(c *Container, id string, kind Kind, body string, own int64) Item {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	t := c.tables[p.number]
	if t == nil {
		t = tx.ks.openTable(c, p)
		tx.noteTable(t)
	}
	it := Item{Kind: kind, Body: body, TS: tx.now, Own: own, Version: p.nextVersion()}

	// One allocation holds the key and the record for as long as the item lives, in memory and in
	// the store alike.
	tx.buf = appendKey(tx.buf[:0], c.number, id)
	length := len(tx.buf)
	key := view(tx.buf)
	tx.buf = appendRecord(tx.buf, key, it)
	blob := string(tx.buf)
	key, rec := blob[:length], blob[length:]

	if e == nil {
		e = t.insert(key, rec, it)
		tx.noteArrival(t, e)
	} else {
		if !e.has(changing) {
			tx.noteChange(t, e)
		}
		t.replace(e, key, rec, it)
	}
	p.touch(t, e)
	tx.alert(p, c, id)
	if !e.has(changing) {
		e.mark(changing)
		tx.changes = append(tx.changes, itemChange{e: e})
	}
	return e.item()
}

// Delete removes the item under an id and tells whether it lived.
func (tx *Tx) Delete(c *Container, id string) bool {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	if e == nil {
		return false
	}
	t := c.tables[p.number]
	if !e.has(changing) {
		tx.noteChange(t, e)
	}
	tx.changes = append(tx.changes, itemChange{del: e.key()})
	tx.alert(p, c, id)
	t.remove(e)
	tx.leaving = append(tx.leaving, departure{p, t, e})
	tx.removed = append(tx.removed, p)
	return true
}

// sweep removes what is dead in a container's part of a partition and returns that part, nil if
// it is empty.
func (tx *Tx) sweep(p *partition, c *Container) *table {
	tx.saw(p.lastWrite)
	t := c.tables[p.number]
	if t == nil {
		return nil
	}
	removed := 0
	tx.noteDeaths(t, c.Policy())
	t.sweep(c.Policy(), tx.now, func(e *entry) {
		tx.bury(p, c, t, e)
		removed++
	})
	if removed > 0 {
		tx.ks.purge.CountLazy(removed)
	}
	return t
}

// wholly calls f with all partitions locked, after what is dead in a container has been removed. The
// removal, which may take long, is done with one partition locked at a time; what f then sees, and
// what it adds up, is the state of one moment.
func (tx *Tx) wholly(c *Container, f func()) {
	tx.eachPartition(func(p *partition) bool {
		tx.sweep(p, c)
		return true
	})
	for _, p := range tx.ks.partitions {
		if !tx.holds(p) {
			p.mu.Lock()
			defer p.mu.Unlock()
		}
	}
	for _, p := range tx.ks.partitions {
		tx.sweep(p, c) // again: the policy may have changed meanwhile
	}
	f()
}

// Count gives the exact number of living items. It takes constant time a partition unless items
// have died since the last count: then it takes as long as removing those.
func (tx *Tx) Count(c *Container) (n int) {
	tx.wholly(c, func() { n = c.count() })
	return n
}

// count is the number of items in memory. All partitions must be locked.
func (c *Container) count() (n int) {
	for _, t := range c.tables {
		if t != nil {
			n += t.count()
		}
	}
	return n
}

// ContainerStats are figures of one container.
type ContainerStats struct {
	Policy    expiry.Policy
	Created   int64 // ms; when the container was made or last emptied
	Documents int   // living items, exact
	Plain     int   // those of them that are plain keys
	InMemory  int   // items in memory when asked, those dead and not yet purged among them
	Bytes     int64 // of the ids and bodies of the living
	Memory    int64 // bytes that the living take in memory, an estimate; see [Keyspace.Used]
	Mortal    int   // living items with an end of their own
	Heirs     int   // living items that inherit the container's default
}

// Stats gives a container's figures as of one moment.
func (tx *Tx) Stats(c *Container) ContainerStats {
	var s ContainerStats
	tx.eachPartition(func(p *partition) bool { // before the dead are removed
		if t := c.tables[p.number]; t != nil {
			s.InMemory += t.count()
		}
		return true
	})
	tx.wholly(c, func() {
		s.Policy, s.Created = *c.Policy(), c.created
		for _, t := range c.tables {
			if t != nil {
				s.add(t)
			}
		}
	})
	return s
}

// Scan visits about count living items from a cursor on (0 starts) and returns the cursor to go on
// from, 0 at the end. Every item that lives throughout a whole scan is visited exactly once; one
// that comes after the scan has reached its partition is not visited, so that a scan always ends.
// id and item are safe to keep.
//
// A cursor is a sequence number of the roster times the number of partitions plus the partition:
// the scan goes through the partitions in order and through each roster from its newest to its
// oldest berth, next below that sequence number.
func (tx *Tx) Scan(c *Container, cursor uint64, count int, visit func(id string, it Item)) uint64 {
	partitions := uint64(len(tx.ks.partitions))
	number, below := int(cursor%partitions), cursor/partitions
	for ; number < len(tx.ks.partitions); number++ {
		next := uint64(0)
		tx.within(tx.ks.partitions[number], func(p *partition) bool {
			tx.saw(p.lastWrite)
			t := c.tables[p.number]
			if t == nil {
				return true
			}
			if below == 0 { // a partition is entered at its top
				below = t.roster.next
			}
			policy := c.Policy()
			for i := t.roster.before(below); i >= 0; i-- {
				h, seq := t.roster.at(i)
				if h == 0 {
					continue
				}
				e := t.slab.at(h)
				if e.dead(policy, tx.now) {
					continue
				}
				if count <= 0 {
					next = (seq+1)*partitions + uint64(number)
					return true
				}
				visit(t.id(e), e.item())
				count--
			}
			return true
		})
		if next != 0 {
			return next
		}
		below = 0
	}
	return 0
}

// Random gives a random living item; false if there is none.
func (tx *Tx) Random(c *Container) (id string, it Item, ok bool) {
	tx.wholly(c, func() {
		total := c.count()
		if total == 0 {
			return
		}
		rank := rand.IntN(total)
		for _, t := range c.tables {
			if t == nil {
				continue
			}
			if rank < t.count() {
				e := t.random()
				id, it, ok = t.id(e), e.item(), true
				return
			}
			rank -= t.count()
		}
	})
	return id, it, ok
}

// random gives a random entry of a table that is not empty.
func (t *table) random() *entry {
	// Holes are never the majority for long: a few draws do. Otherwise the first entry after a random
	// berth is taken.
	n, start := t.roster.berths.n, 0
	for range 16 {
		start = rand.IntN(n)
		if h, _ := t.roster.at(start); h != 0 {
			return t.slab.at(h)
		}
	}
	for i := range n {
		if h, _ := t.roster.at((start + i) % n); h != 0 {
			return t.slab.at(h)
		}
	}
	panic("keyspace: a table that is not empty has no entries")
}
