package keyspace

import (
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/tables"
	"mayfly/vfs"
)

// A node of a cluster
//
// With Options.Replicator the keyspace leads or follows. What changes memory for good goes through the log:
//
//  1. The leader works as a single node, but for two things: the log commits each batch before the journal
//     writes it, and Wait also confirms that the node has led after the transaction.
//  2. A follower changes nothing but by Apply. A transaction that tries is taken back: see Tx.refused. The
//     purge, burials, eviction, ends of windows and records of the clock are the leader's.
//  3. Whether the node leads changes while all partitions are locked. So a transaction that has locked any
//     sees it constant.
//  4. A leader removes nothing at a time that its lease does not cover, and the next one begins at the end of
//     the lease, which an orderly handover sets to the time of its last transaction. A follower's clock
//     stands at a moment for which the log is complete. So what a node removes from memory because it is dead
//     is dead on every node for good, and a follower may remove it by itself.

// beginRole makes the options those of a node of a cluster, if it is one.
func (ks *Keyspace) beginRole() {
	ks.wall = ks.opt.Clock
	if ks.opt.Replicator != nil {
		ks.clock = clock.NewReplicated(ks.wall, 1)
		ks.opt.Clock, ks.opt.Fsync = ks.clock, EverySec // the log makes a commit durable
		ks.role = replica.NewRole(ks.opt.Replicator)
	}
}

// loadedRole notes the place in the log that a folder has, and the latest time in it in ms. A folder that is
// opened without a cluster loses its place.
func (ks *Keyspace) loadedRole(t replica.Tail, latest int64) {
	ks.catalogue.Used(t.Next)
	if ks.role == nil {
		if ks.left = t.Index > 0; ks.left {
			ks.opt.Log.Warn().Msg("the data was of a node of a cluster, and is opened without: back in the cluster it gets everything from the others")
		}
		return
	}
	if t.Index == 0 {
		t.Moment = latest
	}
	ks.role.Begin(t)
	ks.clock.Follow(t.Moment)
	ks.lease.Set(latest)
}

// follows reports whether the keyspace is that of a follower.
func (ks *Keyspace) follows() bool { return ks.role != nil && !ks.role.Leads() }

// leasedNow reads the clock. The lease covers the time in a cluster, so items that are dead then may be
// removed.
func (ks *Keyspace) leasedNow() int64 {
	now := ks.Now()
	if ks.role != nil {
		ks.leased(now)
		now = ks.covered(now)
	}
	return now
}

// covered returns a time in ms, or an earlier one that the lease covers if the node has begun to follow since
// it was read.
func (ks *Keyspace) covered(now int64) int64 {
	if ks.lease.Covers(now) {
		return now
	}
	return min(ks.Now(), ks.lease.End())
}

// beginRole is the part of Begin methods that clusters have.
func (tx *Tx) beginRole() {
	tx.follows = tx.reveal == 0
	tx.now = tx.ks.covered(tx.now)
}

// refuse takes back a transaction of a follower that has changed something.
func (tx *Tx) refuse() LSN {
	tx.Rollback()
	return storage.Refused
}

// Leads reports whether the keyspace is that of the leader.
func (ks *Keyspace) Leads() bool { return !ks.follows() }

// Found gives a follower a place in a log that begins with its content, durably, whatever place it had.
func (ks *Keyspace) Found(t replica.Tail) error {
	t.Moment = max(t.Moment, ks.role.Tail().Moment)
	lsn, err := ks.storage.AppendReplicated("", t)
	if err == nil {
		err = ks.settleApplied(lsn, t)
	}
	if err == nil {
		err = ks.journal.Sync()
	}
	return err
}

// Lead makes the keyspace that of the leader, in a session of the log that has begun. It returns once its
// first batch is committed. After an error it follows. Not to be called together with Follow, Apply or
// Abandon.
func (ks *Keyspace) Lead() error {
	if ks.Leads() {
		return nil
	}
	lsn, err := ks.beginLead()
	if err == nil {
		err = ks.Settle(lsn)
	}
	if err != nil {
		ks.Follow()
	}
	return err
}

// beginLead makes the keyspace that of the leader: its clock begins at the end of the last leader's lease,
// and its versions above the last leader's.
func (ks *Keyspace) beginLead() (LSN, error) {
	var tx Tx
	for ks.lockAll(&tx); !ks.journal.Unsettled() && ks.journal.Waiting() > 0; ks.lockAll(&tx) {
		tx.Close() // what the log has is to be in a batch of its own
		if err := ks.journal.CommitAll(); err != nil {
			return 0, err
		}
	}
	ks.applier = nil // the leader changes what it knows of containers
	ks.clock.Lead(ks.lease.End())
	tx.now = ks.Now()
	epoch := ks.epoch.Load()
	for _, p := range ks.partitions {
		epoch = max(epoch, p.Version/tables.VersionLeap)
	}
	ks.beginVersions(epoch + 1)
	ks.lease.Renew(tx.now, ks.appendClock)
	tx.saw(LSN(ks.lease.LSN()))
	ks.role.Lead(tx.now)
	err := tx.createDatabases()
	ks.holdTimers()
	return tx.Close(), err
}

// beginVersions begins an epoch of versions. The locks of all partitions must be held.
func (ks *Keyspace) beginVersions(epoch uint64) {
	ks.epoch.Store(epoch)
	for _, p := range ks.partitions {
		p.Begin(epoch)
	}
}

// Follow makes the keyspace that of a follower. It returns when no transaction can change anything any more.
func (ks *Keyspace) Follow() {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	switch {
	case ks.role == nil:
	case ks.role.Leads():
		ks.role.Follow()
		until := ks.lease.End() // after an extension under way; there is none later
		ks.clock.Follow(min(tx.now, until))
		ks.role.EndLed(uint64(ks.journal.Last()))
		ks.holdTimers()
	case ks.role.Drains():
		ks.role.Follow()
		ks.role.EndLed(uint64(ks.journal.Last()))
	}
}

// Drain is the first step of an orderly handover. It is Follow for a leader that goes on to commit what it
// has done. The last record of its clock ends the lease, so the next leader's time begins where this one's
// ends. EndDrain is the second step.
func (ks *Keyspace) Drain() {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	if ks.role == nil || ks.follows() {
		return
	}
	ks.role.Drain()
	ks.clock.Follow(ks.lease.Close(ks.Now, ks.appendClock))
	ks.holdTimers()
}

// EndDrain commits what was done before Drain, and makes sure that the node has led until then. After that
// the replies of that time may leave, whichever node leads next. It fails at a time as WaitUntil does: then
// Confirm decides about each reply, until Follow.
func (ks *Keyspace) EndDrain(until time.Duration) error {
	last := ks.journal.Last()
	if err := ks.WaitUntil(last, until, true); err != nil {
		return err
	}
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	if ks.role.Drains() && ks.journal.Last() == last { // else another node leads, or this one has led again
		ks.role.EndDrained(uint64(last))
	}
	return nil
}

// holdTimers holds the timers of the purge as long as nothing may be removed, and while the keyspace follows:
// those of logged deaths would be due all the time.
func (ks *Keyspace) holdTimers() {
	until := ks.keepDead.Load()
	if ks.follows() {
		until = expiry.NeverDue
	}
	ks.purge.HoldTimers(until)
	if ks.follows() { // they are told when the clock moves: see settleApplied
		ks.teller.timers.HoldTimers(expiry.NeverDue)
	} else {
		ks.teller.timers.HoldTimers(0)
	}
}

// sweep notes the moment of the batches to come, and commits what waits, of a leader. The lease of the moment
// makes that a batch each second at least.
func (ks *Keyspace) sweep() {
	if ks.follows() {
		return
	}
	now := ks.leasedNow()
	for _, p := range ks.partitions {
		p.Mu.Lock()
		p.Mu.Unlock() //lint:ignore SA2001 it waits for transactions that have read an earlier time
	}
	ks.role.Swept(now)
	if last := ks.journal.Last(); !ks.Committed(last) {
		_ = ks.journal.Wait(last) // a failure is noted, and tried again
	}
}

// Abandon closes the keyspace and the data folder as they are: it commits nothing that the log has not, and
// makes no checkpoint. Transactions may run meanwhile and afterwards. They do no harm, and Wait fails for
// them.
func (ks *Keyspace) Abandon() error {
	ks.Follow()
	ks.journal.Refuse()
	ks.endBackground()
	return ks.storage.Drop()
}

// ReadReplica returns the position and the state of a data folder that is not in use.
func ReadReplica(fsys vfs.FS, dir string) (replica.Tail, error) { return storage.ReadTail(fsys, dir) }

// settleApplied commits a batch that has joined the journal. The follower's clock then stands at its moment.
func (ks *Keyspace) settleApplied(lsn LSN, t replica.Tail) error {
	if err := ks.journal.WaitUntil(lsn, 0, true); err != nil {
		return err
	}
	ks.clock.Follow(t.Moment)
	if ks.teller.timers.NextDue() <= ks.Now() {
		ks.teller.timers.HoldTimers(0)
		ks.tellDue(ks.Now() + 1)
		ks.teller.timers.HoldTimers(expiry.NeverDue)
	}
	return nil
}

// noteClock notes the record of a leader's clock. The last one in the log counts: that of a handover takes a
// lease back. All partitions are locked.
func (ks *Keyspace) noteClock(it record.Item) {
	ks.lease.Set(it.TS)
	ks.epoch.Store(max(ks.epoch.Load(), it.Version))
}

// tailOps returns the records of the position for the catalogue. Those of a former node are removed.
func (ks *Keyspace) tailOps() []aof.Op {
	switch {
	case ks.role != nil:
		return ks.role.Tail().Ops()
	case ks.left:
		return replica.Removal()
	}
	return nil
}
