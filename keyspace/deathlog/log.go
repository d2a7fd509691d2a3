package deathlog

import (
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/streamid"
)

// Source is the log of a container within a transaction, as a [Log] reads and changes it. It has the locks.
type Source interface {
	Partitions() int
	PartitionOf(item string) int

	// Any calls f with some partition locked, All with all of them. One calls f with a partition locked and
	// the part of the log that is open; nil if there is none. A partition that the transaction has locked
	// stays locked afterwards.
	Any(f func())
	All(f func())
	One(partition int, f func(p *Part))

	// The rest is called by such an f only, for partitions that are locked.

	// Open has the calls that follow use the log that the container has now. It reports whether there is one.
	Open() bool
	IDs() *Generator        // needs no lock
	Expired() expiry.Limits // of the entries

	// Part returns what One passes to f.
	Part(partition int) *Part

	// Held reports whether the container keeps its entries, and has the transaction fail for that.
	Held() bool

	// Remove writes the state of a part, see [Part.Stored], and removes some entries. deleted is the greatest
	// id that XDEL is about to remove, zero for none.
	Remove(partition int, list []*memtable.Entry, deleted streamid.ID)
}

// Log is the log of a container within a transaction. Without a log there are no entries. It is as safe for
// concurrent use as the transaction.
type Log struct{ source Source }

// New returns the log of a container.
func New(s Source) Log { return Log{s} }

// open opens the log with some partition locked. It returns the limits of the entries that have expired.
func (l Log) open() (expired expiry.Limits, ok bool) {
	l.source.Any(func() {
		if ok = l.source.Open(); ok {
			expired = l.source.Expired()
		}
	})
	return expired, ok
}

// State returns the state of the log as of one moment. ok is false if there is none.
func (l Log) State() (s State, ok bool) {
	l.source.All(func() {
		if ok = l.source.Open(); !ok {
			return
		}
		expired := l.source.Expired()
		for number := range l.source.Partitions() {
			if p := l.source.Part(number); p != nil {
				s.Merge(p.State(expired))
			}
		}
	})
	return s, ok
}

// Last returns the greatest id that the log has given, in constant time; zero if there is no log.
func (l Log) Last() (last streamid.ID) {
	l.source.Any(func() {
		if l.source.Open() {
			last = l.source.IDs().Last()
		}
	})
	return last
}

// Range visits the entries with ids between two, both included, until visit returns false: the oldest first,
// or the newest first if reverse is true. It leaves out those that are added after it has begun. Texts are
// safe to keep. It locks one partition after the other, for pieces of some entries, unless the transaction
// has locked them.
func (l Log) Range(from, to streamid.ID, reverse bool, visit func(e Entry) (more bool)) {
	expired, ok := l.open()
	if !ok {
		return
	}
	if last := l.source.IDs().Last(); last.Less(to) {
		to = last
	}
	if !to.Less(from) {
		l.read(from, to, expired, reverse, visit)
	}
}

// read visits entries of the log that is open.
func (l Log) read(from, to streamid.ID, expired expiry.Limits, reverse bool, visit func(e Entry) (more bool)) {
	NewReader(l.source.Partitions(), from, to, expired, reverse).Run(l.source.One, visit)
}

// Entry returns the entry of an id; false if there is none.
func (l Log) Entry(id streamid.ID) (found Entry, ok bool) {
	l.Range(id, id, false, func(e Entry) bool {
		found, ok = e, true
		return false
	})
	return found, ok
}

// Of visits the entries of an item, the newest first, until visit returns false. The partition of the item
// must be locked, or none.
func (l Log) Of(item string, visit func(e Entry) (more bool)) {
	expired, ok := l.open()
	if !ok {
		return
	}
	l.source.One(l.source.PartitionOf(item), func(p *Part) {
		if p != nil {
			p.Of(item, expired, visit)
		}
	})
}

// Newest returns the newest entry of an item; false if there is none. It needs what Of needs.
func (l Log) Newest(item string) (newest Entry, ok bool) {
	l.Of(item, func(e Entry) bool {
		newest, ok = e, true
		return false
	})
	return newest, ok
}

// Delete removes entries, and returns how many of the ids there were. A container on hold keeps them. All
// partitions must be locked.
func (l Log) Delete(ids []streamid.ID) (n int) {
	expired, ok := l.open()
	if !ok {
		return 0
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, streamid.ID.Compare)
	ids = slices.Compact(ids)
	for number := range l.source.Partitions() {
		p := l.source.Part(number)
		if p == nil {
			continue
		}
		list, greatest := p.Entries(ids, expired)
		if len(list) == 0 {
			continue
		}
		if l.source.Held() {
			return 0
		}
		l.source.Remove(number, list, greatest)
		n += len(list)
	}
	return n
}

// Trim removes the oldest entries: those below an id, and as many as there are more than maxLen; -1: as many
// as there are. It removes at most limit, 0: any number, and returns how many it has removed. A container on
// hold keeps them. All partitions must be locked.
func (l Log) Trim(maxLen int64, below streamid.ID, limit int64) (n int64) {
	s, ok := l.State()
	if !ok {
		return 0
	}
	most := s.Length // by their number
	if maxLen >= 0 {
		most = max(s.Length-maxLen, 0)
	}
	cut := streamid.ID{}
	if most > 0 {
		l.Range(streamid.ID{}, streamid.Max, false, func(e Entry) bool {
			if maxLen < 0 && !e.ID.Less(below) || limit > 0 && n == limit || n == most {
				return false
			}
			cut = e.ID
			n++
			return true
		})
	}
	if n == 0 || l.source.Held() {
		return 0
	}
	for number := range l.source.Partitions() {
		if p := l.source.Part(number); p != nil {
			if list := p.Upto(cut); len(list) > 0 {
				l.source.Remove(number, list, streamid.ID{})
			}
		}
	}
	return n
}

// Oldest returns the greatest id of the oldest entries, with the expired ones, and how many they are: at most
// a number.
func (l Log) Oldest(most int64) (cut streamid.ID, n int64) {
	if _, ok := l.open(); ok {
		l.read(streamid.ID{}, streamid.Max, expiry.NoLimits, false, func(e Entry) bool {
			cut = e.ID
			n++
			return n < most
		})
	}
	return cut, n
}
