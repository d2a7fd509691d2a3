package keyspace

import (
	"math"
	"strings"

	"mayfly/keyspace/eviction"
	"mayfly/keyspace/memtable"
)

// Used estimates the memory of the items and containers in bytes: ids, values and their overhead. It is not
// the size of the process, which has garbage and buffers besides.
func (ks *Keyspace) Used() int64 {
	used := ks.catalogue.Memory() + ks.teller.counts.Bytes.Load()
	for _, p := range ks.partitions {
		used += p.Shard.Memory()
	}
	return used
}

// evictable names an item in a state: after a write or an access it is another.
type evictable struct {
	t       *table
	id      string // a clone
	version uint64
	access  uint32
}

// drawn is a table as an [eviction.Source].
type drawn struct {
	ks *Keyspace
	*table
}

// Eviction returns the options of eviction.
func (ks *Keyspace) Eviction() eviction.Options { return ks.evictor.Options() }

// SetEviction changes the options of eviction while running.
func (ks *Keyspace) SetEviction(o eviction.Options) {
	if !ks.evictor.SetOptions(o, ks.Now()) {
		return
	}
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		t.P.Mu.Lock()
		t.DropAccess()
		t.P.Mu.Unlock()
	}
}

// TrackAccesses keeps accesses from now on, whatever the policy.
func (ks *Keyspace) TrackAccesses() { ks.evictor.Track(ks.Now()) }

// Evict deletes items, in the order of the policy, until at most limit bytes are used. It calls evicted for
// each under the lock of a partition. evicted must return soon, not use the keyspace, and clone the id to
// keep it. ok reports whether the limit is reached. It is not if no item may go, or none wherever Evict
// looked. The deletes are journalled; lsn covers them. The calling goroutine must have no transaction open.
func (ks *Keyspace) Evict(limit int64, evicted func(c *Container, id string)) (lsn LSN, ok bool) {
	for ks.Used() > limit && !ks.follows() {
		n := ks.evictor.Draw(ks.sources)
		if n == 0 {
			return lsn, false
		}
		for ; n > 0 && ks.Used() > limit; n-- {
			if v, ok := ks.evictor.Take(); ok {
				lsn = max(lsn, ks.evict(v, evicted))
			}
		}
	}
	return lsn, true
}

// sources returns up to n of the attached tables from a position on that wraps around.
func (ks *Keyspace) sources(from, n int) []drawn {
	some := ks.tables.Some(nil, from, n)
	list := make([]drawn, len(some))
	for i, t := range some {
		list[i] = drawn{ks, t}
	}
	return list
}

// Evictable implements [eviction.Source].
func (t drawn) Evictable(p eviction.Policy) int {
	t.P.Mu.Lock()
	defer t.P.Mu.Unlock()
	if t.Gone() || t.C.Policy().Hold != "" || t.Part != nil || t.C.hidden != nil || t.Collections != nil {
		return 0 // keys are drawn, not their pages; the entries of logs go by volatile-ttl only
	}
	now := t.ks.Now()
	n := t.EvictableBut(p, t.C.Policy(), t.KeptStats(now, mostAge))
	if n == 0 {
		n = t.EvictableBut(p, t.C.Policy(), t.KeptStats(now, 0)) // some of the dead may be gone
	}
	return n
}

// Draw implements [eviction.Source].
func (t drawn) Draw(p eviction.Policy, n int, intN func(n int) int, list []eviction.Candidate[evictable]) []eviction.Candidate[evictable] {
	t.P.Mu.Lock()
	defer t.P.Mu.Unlock()
	if t.Gone() || t.C.Policy().Hold != "" || t.Collections != nil || t.C.hidden != nil && (t.Part == nil || p != eviction.VolatileTTL) {
		return list
	}
	tracker, now := t.ks.evictor.Tracker(), t.ks.Now()
	t.Table.Draw(p, t.C.Policy(), t.ks.kept(t.C, now), n, intN, func(h memtable.Handle, e *memtable.Entry, end int64) {
		access := t.Access(h)
		c := eviction.Candidate[evictable]{Rank: tracker.Rank(p, access, e.TS(), end, now), Key: evictable{t.table, strings.Clone(t.ID(e)), e.Version(), access}}
		list = append(list, c)
	})
	return list
}

// evict deletes an item if it was neither written nor used since it was drawn.
func (ks *Keyspace) evict(v evictable, evicted func(c *Container, id string)) LSN {
	if v.t.Part != nil {
		return ks.evictEntry(v)
	}
	var tx Tx
	ks.BeginKey(&tx, v.id)
	if t := v.t; !t.Gone() {
		switch h, e := tx.lookup(t.P, t.C, v.id); {
		case e == nil: // only its elements may be dead; else it would be drawn for ever
			tx.bury(t, v.id, ks.due(t.C, tx.now))
		case e.Version() == v.version && t.Access(h) == v.access && tx.Remove(t.C, v.id):
			evicted(t.C, v.id)
		}
	}
	lsn := tx.Close()
	for more := true; more; { // its pages go before the next draw
		v.t.P.Mu.Lock()
		_, more = v.t.P.Collect(0)
		v.t.P.Mu.Unlock()
	}
	return lsn
}

// touch records an access to an entry, unless it follows one of the same transaction.
func (tx *Tx) touch(k *eviction.Tracker, t *table, h memtable.Handle, e *memtable.Entry) {
	if !tx.KeepAccesses && tx.touched != e {
		tx.touched = e
		t.SetAccess(h, k.Touch(t.Access(h), e.TS(), tx.now))
	}
}

// Accesses returns what is known of the accesses to an item, false if there is no item. It is no access,
// other than Get and Put of an existing item.
func (tx *Tx) Accesses(c *Container, id string) (a eviction.Accesses, ok bool) {
	p := tx.partition(id)
	h, e := tx.lookup(p, c, id)
	if e == nil {
		return a, false
	}
	return tx.ks.evictor.Tracker().Accesses(c.tables[p.Number].Access(h), e.TS(), tx.now), true
}
