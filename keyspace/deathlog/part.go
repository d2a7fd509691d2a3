package deathlog

import (
	"slices"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// Part is the entries of a log in one partition. Its owner's lock protects it. It observes the table, so it
// follows rollbacks too.
type Part struct {
	table   *memtable.Table
	length  *atomic.Int64 // of the log
	stateID string
	stored  State       // what the state's item tells
	after   int64       // entries with ids greater than stored.Last
	last    streamid.ID // the greatest id that the part ever had
	first   uint64      // no entry has a lesser sequence number
}

// NewPart returns the part of a log in a partition over a table, whose items it brings into order. If there
// are entries, but no state, it makes one. From then on length counts the entries of all parts.
func NewPart(t *memtable.Table, partition, partitions int, length *atomic.Int64) *Part {
	p := &Part{table: t, length: length, stateID: StateID(partition, partitions)}
	state := t.Find(p.stateID)
	if state == nil && t.Len() > 0 {
		_, state = t.Insert(p.stateID, new(State).Item(0, 0), nil)
	}
	if state != nil {
		length.Add(int64(t.Len() - 1))
		p.sort()
		p.readState(t.Item(state))
	}
	t.Observe(p)
	return p
}

// sort brings the table's items into the order of their ids.
func (p *Part) sort() {
	type placed struct {
		id streamid.ID
		h  memtable.Handle
	}
	list := make([]placed, 0, p.table.Len())
	p.table.Descend(0, func(_ uint64, e *memtable.Entry) bool {
		list = append(list, placed{p.id(e), p.table.Handle(e)})
		return true
	})
	slices.Reverse(list)
	if byID := func(a, b placed) int { return a.id.Compare(b.id) }; !slices.IsSortedFunc(list, byID) {
		slices.SortFunc(list, byID)
		handles := make([]memtable.Handle, len(list))
		for i := range list {
			handles[i] = list[i].h
		}
		p.table.Reorder(handles)
	}
	if len(list) > 0 {
		p.last = list[len(list)-1].id
	}
}

// id returns the id of an entry. That of the state is zero.
func (p *Part) id(e *memtable.Entry) streamid.ID {
	id, _, _ := SplitID(p.table.ID(e)) // the loader has checked the key
	return id
}

// readState takes over the item of the state, and counts the entries after it.
func (p *Part) readState(it record.Item) {
	s, err := ReadState(p.stateID, it)
	if err != nil { // not of this version: what the entries tell remains
		s = State{}
	}
	p.stored, p.after = s, 0
	p.last = maxID(p.last, s.Last)
	p.table.DescendFrom(above(streamid.Max), p.first, func(_ memtable.Handle, e *memtable.Entry) bool {
		id := p.id(e)
		if !s.Last.Less(id) {
			return false
		}
		p.after++
		return true
	})
}

func maxID(a, b streamid.ID) streamid.ID {
	if a.Less(b) {
		return b
	}
	return a
}

// Added implements [memtable.Observer].
func (p *Part) Added(h memtable.Handle, it record.Item) {
	e := p.table.At(h)
	p.first = min(p.first, p.table.Seq(e)) // a rollback may have brought it back
	if it.ExpireAt == expiry.Never {
		p.readState(it)
		return
	}
	id := p.id(e)
	p.last = maxID(p.last, id)
	p.length.Add(1)
	if p.stored.Last.Less(id) {
		p.after++
	}
}

// Replaced implements [memtable.Observer].
func (p *Part) Replaced(_ memtable.Handle, _, it record.Item) { p.readState(it) }

// Removed implements [memtable.Observer].
func (p *Part) Removed(h memtable.Handle, it record.Item) {
	if it.ExpireAt == expiry.Never {
		p.stored, p.after = State{}, 0
		return
	}
	p.length.Add(-1)
	if p.stored.Last.Less(p.id(p.table.At(h))) {
		p.after--
	}
}

// Last returns the greatest id that the part ever had.
func (p *Part) Last() streamid.ID { return p.last }

// StateID returns the id of the state's item.
func (p *Part) StateID() string { return p.stateID }

// Stored returns what the item of the state has to tell before entries leave the part. deleted is the
// greatest id that XDEL is about to remove, zero for none.
func (p *Part) Stored(deleted streamid.ID) State {
	return State{Added: p.stored.Added + p.after, Last: p.last, MaxDeleted: maxID(p.stored.MaxDeleted, deleted)}
}

// State returns the state of the part without the entries within limits, which have expired.
func (p *Part) State(expired expiry.Limits) State {
	s := p.Stored(streamid.ID{})
	all, dead := p.table.Stats(), p.table.DeadStats(expired)
	s.Length, s.Bytes = int64(all.ByDefault-dead.ByDefault), all.Bytes-dead.Bytes
	if e := p.table.Find(p.stateID); e != nil {
		s.Bytes -= p.table.Size(e)
	}
	p.ascend(below(visible(expired)), func(e *memtable.Entry) bool {
		if e.Within(expired) {
			return true
		}
		s.First, s.Oldest = p.id(e), e.TS()
		return false
	})
	return s
}

// visible returns an id such that all entries with lesser ids are within limits. The time of an entry is that
// of its id, or earlier: ids ascend, also where a clock was corrected.
func visible(expired expiry.Limits) streamid.ID {
	if expired.ByDefault < 0 {
		return streamid.ID{Seq: 1} // the state has 0-0
	}
	return streamid.ID{Ms: uint64(expired.ByDefault) + 1}
}

// below returns a text that precedes those of all ids from one on, and follows those of the others.
func below(id streamid.ID) string {
	if id.Seq > MaxSeq {
		if id.Ms++; id.Ms == 0 {
			return ";"
		}
		id.Seq = 0
	}
	return string(AppendID(nil, id, ""))
}

// above returns a text that follows those of all ids up to one, and precedes those of the others.
func above(id streamid.ID) string {
	id.Seq = min(id.Seq, MaxSeq)
	text := AppendID(nil, id, "")
	text[len(text)-1]++ // the colon
	return string(text)
}

// ascend visits the entries from a text on.
func (p *Part) ascend(from string, visit func(e *memtable.Entry) (more bool)) {
	p.first = p.table.First(p.first)
	p.table.Ascend(from, p.first, func(_ memtable.Handle, e *memtable.Entry) bool {
		return e.ExpireAt() == expiry.Never || visit(e)
	})
}

// Entries returns the entries of ids, which ascend, that are in the table and not within limits, and the
// greatest of their ids.
func (p *Part) Entries(ids []streamid.ID, expired expiry.Limits) (list []*memtable.Entry, greatest streamid.ID) {
	var e *memtable.Entry
	next := func(from streamid.ID) (id streamid.ID, ok bool) {
		p.ascend(below(from), func(first *memtable.Entry) bool {
			e, id, ok = first, p.id(first), true
			return false
		})
		return id, ok
	}
	eachOf(ids, next, func(id streamid.ID) {
		if !e.Within(expired) {
			list, greatest = append(list, e), id
		}
	})
	return list, greatest
}

// eachOf visits those of ids, which ascend, that are in a set. next returns the first of the set from an id
// on. It is called at most once for each id, and once for each member of the set between the ids.
func eachOf(ids []streamid.ID, next func(from streamid.ID) (id streamid.ID, ok bool), visit func(id streamid.ID)) {
	for len(ids) > 0 {
		id, ok := next(ids[0])
		if !ok {
			return
		}
		at, found := slices.BinarySearchFunc(ids, id, streamid.ID.Compare)
		if ids = ids[at:]; found {
			visit(id)
			ids = ids[1:]
		}
	}
}

// Upto returns the entries up to an id, oldest first.
func (p *Part) Upto(id streamid.ID) (list []*memtable.Entry) {
	p.ascend(below(streamid.ID{Seq: 1}), func(e *memtable.Entry) bool {
		if id.Less(p.id(e)) {
			return false
		}
		list = append(list, e)
		return true
	})
	return list
}

// Of visits the entries of an item that are not within limits, newest first, until visit returns false.
func (p *Part) Of(item string, expired expiry.Limits, visit func(e Entry) (more bool)) {
	p.table.Deaths(item, func(e *memtable.Entry) bool {
		if e.Within(expired) {
			return false // the rest is older
		}
		read, err := ReadEntry(p.table.IDAndItem(e))
		return err != nil || visit(read)
	})
}
