package keyspace

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/watch"
)

// Tx is one command's (or one EXEC's) view of the keyspace at one frozen moment. It holds the locks of what
// it may touch. The zero value is ready for a Begin method of [Keyspace], and again after [Tx.Close]. Not
// safe for concurrent use.
//
// Ids and bodies may be views of a connection's buffer: a transaction copies what it stores.
type Tx struct {
	// OnDeath, if not nil, replaces that of [Options] for deaths that the transaction may have caused: after
	// it has changed a rule, and of items that it has written. The LSN that Close returns covers such a
	// death. After Rollback it has not happened; an item that is dead nevertheless is found dead again.
	// OnDeath outlasts Close.
	OnDeath func(c *Container, id string)

	// KeepAccesses makes reads and writes leave the accesses of items as they are (CLIENT NO-TOUCH). It
	// outlasts Close.
	KeepAccesses bool

	// By names the client in the history of containers: its address and name. It outlasts Close.
	By string

	// Client is the number of the client, for what it is not to be told of its own changes; 0: none. It
	// outlasts Close.
	Client int64

	held    locks.Held
	group   aof.Commands // changes of the catalogue, as commands; Close adds those of items
	changes changeList   // of items
	removed []*partition // those of removed items
	buried  []tableEntry // removed items whose deaths are logged, and not reported yet
	logged  []*Container // with logs that have more entries, or have come or gone
	buf     []byte
	page    []byte // of the page that is written

	txState
}

// txState is what a transaction has from Begin to Close. The rest outlasts that, or keeps memory for the next
// one.
type txState struct {
	ks  *Keyspace
	now int64

	single   *partition // that of BeginKey, nil after any other Begin
	singleID string     // and its id

	changed  bool          // the catalogue was changed
	made     *Container    // the container that was made last
	veto     error         // see Veto
	replaced bool          // all items of a container were replaced or removed
	alerted  []*watch.Mark // of those who watch a changed item
	told     []toldChange  // that clients have read
	noted    []notedContainer
	flushed  bool            // clients are to be told that nothing holds any more
	reveal   LSN             // covers everything that was read
	follows  bool            // it began on a node of a cluster that follows
	kept     bool            // lookup has left a dead item where it is
	touched  *memtable.Entry // the last entry of which an access was recorded
	recorded []*Container    // see recordContainer
	sheds    []shedKey       // whose elements have died
	bodies   memtable.Bodies // see Prepare
}

// BeginNone begins a transaction that touches no items. It may look containers up.
func (ks *Keyspace) BeginNone(tx *Tx) {
	tx.ks = ks
	tx.now = ks.opt.Clock.Now()
	tx.saw(ks.leased(tx.now))
	if ks.role != nil {
		tx.beginRole()
	}
}

// BeginSweep locks nothing: Count, Scan, Random and Stats lock one partition after the other. Get, Put and
// Delete are illegal.
func (ks *Keyspace) BeginSweep(tx *Tx) { ks.BeginNone(tx) }

// BeginKey locks the partition of one id, then freezes the time.
func (ks *Keyspace) BeginKey(tx *Tx, id string) {
	p := ks.partitionOf(id)
	p.Mu.Lock()
	tx.beginLocked(ks, p, id)
}

// beginLocked is BeginKey with the partition locked already.
func (tx *Tx) beginLocked(ks *Keyspace, p *partition, id string) {
	tx.held.One(&ks.locks, p.Number)
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
		tx.held.Choose(ks.partitionOf(id).Number)
	}
	tx.held.Lock(&ks.locks)
	ks.BeginNone(tx)
}

// BeginAll locks every partition. Changes of containers need it.
func (ks *Keyspace) BeginAll(tx *Tx) {
	tx.held.LockAll(&ks.locks)
	ks.BeginNone(tx)
}

// lockAll is BeginAll for internal work that reveals nothing to clients.
func (ks *Keyspace) lockAll(tx *Tx) {
	tx.held.LockAll(&ks.locks)
	tx.ks, tx.now = ks, ks.opt.Clock.Now()
}

// Open reports whether the transaction has begun and is not closed.
func (tx *Tx) Open() bool { return tx.ks != nil }

// Close hands the transaction's changes to the journal as one atomic group and releases the locks. The
// returned LSN covers everything that it has written and revealed.
//
// The group joins the journal while the locks are held. So the journal has the writes of an item in the order
// in which they happened.
func (tx *Tx) Close() LSN {
	lsn := tx.reveal
	if tx.Writes() {
		if tx.ks.follows() {
			return tx.refuse()
		}
		lsn = tx.ks.journal.Append((*txChanges)(tx))
		tx.changes.SetLSN(uint64(lsn))
		for _, p := range tx.removed {
			p.LastRemoval = lsn
		}
		if tx.replaced {
			tx.eachLocked(func(p *partition) { p.LastRemoval = lsn })
		}
		if tx.changed {
			tx.ks.catalogue.lsn = lsn
		}
		tx.eachLocked(func(p *partition) { p.LastWrite = lsn })
	}
	if tx.follows && tx.ks.Committed(lsn) {
		lsn = 0 // what a follower knows is committed
	}
	if len(tx.logged)+len(tx.sheds) > 0 {
		tx.reportBurials(lsn)
	}
	for _, m := range tx.alerted {
		m.Set()
	}
	tx.tellAll(lsn)
	for _, c := range tx.recorded {
		tx.whole(c).setTimers(tx.now)
	}
	tx.changes.FreeReplaced()
	tx.changes.ReleaseRemoved()
	besides := len(tx.changes.journaled) // who makes pages removes as many, which they may replace
	tx.eachLocked(func(p *partition) {
		p.Clean()
		removed, _ := p.Collect(besides)
		besides = max(besides-removed, 0)
	})
	tx.held.Release()
	tx.reset()
	return lsn
}

// txChanges is what a transaction hands to the journal. The journal copies the records from the tables, whose
// partitions are locked.
type txChanges Tx

// AppendTo appends the changes as set and del commands.
func (tx *txChanges) AppendTo(dst aof.Commands) aof.Commands {
	dst.Add(&tx.group)
	return tx.changes.AppendTo(dst)
}

// reset makes the transaction ready for the next Begin. It keeps small buffers.
func (tx *Tx) reset() {
	const most = 64 << 10
	if tx.untouched() { // most transactions only read, and little is to be reset
		tx.ks, tx.reveal = nil, 0
		tx.single, tx.singleID, tx.bodies, tx.touched, tx.kept, tx.follows = nil, "", memtable.Bodies{}, nil, false, false
		return
	}
	tx.changes.Reset()
	clear(tx.removed)
	clear(tx.buried)
	clear(tx.logged)
	tx.group.Reset()
	tx.buf = keep(tx.buf, most)
	tx.removed, tx.buried, tx.logged = keep(tx.removed, most/8), keep(tx.buried, most/64), keep(tx.logged, most/64)
	tx.txState = txState{}
}

// untouched reports whether the transaction has changed nothing.
func (tx *Tx) untouched() bool {
	return !tx.changed && tx.veto == nil && tx.group.Size() == 0 && len(tx.removed)+len(tx.alerted)+len(tx.told)+len(tx.noted) == 0 && !tx.flushed && tx.changes.Untouched()
}

// keep empties a slice for reuse, or drops it if it has grown beyond most.
func keep[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	return s[:0]
}

func (tx *Tx) eachLocked(f func(p *partition)) {
	for _, n := range tx.held.Numbers() {
		f(tx.ks.partitions[n])
	}
}

// partition returns the partition of an id, which the transaction must have locked.
func (tx *Tx) partition(id string) *partition {
	if tx.single != nil && tx.singleID == id {
		return tx.single
	}
	p := tx.ks.partitionOf(id)
	if !tx.held.Has(p.Number) {
		panic("keyspace: item of a partition that the transaction has not locked")
	}
	return p
}

// eachPartition calls f with every partition, until f returns false. It locks one after the other unless the
// transaction holds it already.
func (tx *Tx) eachPartition(f func(p *partition) (more bool)) {
	for _, p := range tx.ks.partitions {
		if !tx.within(p, f) {
			return
		}
	}
}

// within calls f with one partition locked.
func (tx *Tx) within(p *partition, f func(p *partition) (more bool)) bool {
	if !tx.held.Has(p.Number) {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		defer p.Clean()
	}
	return f(p)
}

// withinAll calls f with all partitions locked.
func (tx *Tx) withinAll(f func()) {
	tx.held.LockRest(&tx.ks.locks)
	defer tx.held.UnlockRest(&tx.ks.locks, func(n int) { tx.ks.partitions[n].Clean() })
	f()
}

func (tx *Tx) saw(lsn LSN) { tx.reveal = max(tx.reveal, lsn) }

// Follows reports whether the transaction has begun on a node of a cluster that follows. It may change
// nothing, and what it reads is of the leader's past.
func (tx *Tx) Follows() bool { return tx.follows }

// Writes reports whether the transaction has changed something.
func (tx *Tx) Writes() bool { return tx.group.Size() > 0 || tx.changes.Any() }

// Now returns the frozen moment in ms.
func (tx *Tx) Now() int64 { return tx.now }

// Micros reads the clock anew, in µs, for commands that return the time itself. Now, which is not later,
// decides which items live.
func (tx *Tx) Micros() int64 {
	now := max(tx.ks.Micros(), tx.now*1000)
	tx.saw(tx.ks.leased(now/1000 + 1)) // no start may be before it
	return now
}
