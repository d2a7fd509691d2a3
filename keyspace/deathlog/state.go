package deathlog

import (
	"errors"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// State is the state of a log, or of its part in one partition.
//
// Added, Last and MaxDeleted are those of the entries that are gone, too. So each partition has an item with
// them, which is written in the same atomic group whenever entries leave the partition: see [StateID].
// Entries that come after that are counted when the log is loaded: see [State.Load].
type State struct {
	Length     int64       // entries
	Bytes      int64       // of their ids and bodies
	First      streamid.ID // of the oldest entry; zero if there are none
	Last       streamid.ID // the greatest id that was ever given
	MaxDeleted streamid.ID // the greatest id that XDEL has removed
	Added      int64       // entries ever added
	Oldest     int64       // ms; when the oldest entry was logged; 0 if there are none
}

// StateID returns the id of the state's item in a partition: zeros, and the least number that belongs to the
// partition.
func StateID(partition, partitions int) string {
	for n := 0; ; n++ {
		if id := strconv.Itoa(n); record.Partition(id, partitions) == partition {
			return string(AppendID(nil, streamid.ID{}, id))
		}
	}
}

// IsStateID reports whether an id in a log is that of the state, not that of an entry.
func IsStateID(id string) bool { return strings.HasPrefix(id, zeros) }

const zeros = "000000000000000000000000:"

// Item returns the item of the state, written at now (ms). It never dies.
func (s *State) Item(now int64, version uint64) record.Item {
	body := strconv.AppendInt(nil, s.Added, 10)
	body = s.Last.Append(append(body, ' '))
	body = s.MaxDeleted.Append(append(body, ' '))
	return record.Item{Kind: record.Entry, Body: string(body), TS: now, ExpireAt: expiry.Never, Version: version}
}

var errState = errors.New("not the state of a log: it must have a count and two ids of entries")

// ReadState decodes the state under an id: what its item tells.
func ReadState(id string, it record.Item) (s State, err error) {
	added, rest, ok1 := strings.Cut(it.Body, " ")
	last, deleted, ok2 := strings.Cut(rest, " ")
	if !IsStateID(id) || it.Kind != record.Entry || it.ExpireAt != expiry.Never || !ok1 || !ok2 {
		return State{}, errState
	}
	s.Added, err = strconv.ParseInt(added, 10, 64)
	s.Last, ok1 = streamid.Parse(last, 0)
	s.MaxDeleted, ok2 = streamid.Parse(deleted, 0)
	if err != nil || !ok1 || !ok2 || s.Added < 0 || s.Item(0, 0).Body != it.Body {
		return State{}, errState
	}
	return s, nil
}

// Load restores the state of a log in one partition from what its item tells, and counts an entry after the
// other, in any order. Bytes are not counted.
func (s *State) Load(stored State, entry streamid.ID, ts int64) {
	if stored.Last.Less(entry) {
		s.Added++
	}
	s.Length++
	if s.Last.Less(entry) {
		s.Last = entry
	}
	if s.Length == 1 || entry.Less(s.First) {
		s.First, s.Oldest = entry, ts
	}
}

// Merge adds the state of another partition.
func (s *State) Merge(o State) {
	if o.Length > 0 && (s.Length == 0 || o.First.Less(s.First)) {
		s.First, s.Oldest = o.First, o.Oldest
	}
	s.Length += o.Length
	s.Bytes += o.Bytes
	s.Added += o.Added
	if s.Last.Less(o.Last) {
		s.Last = o.Last
	}
	if s.MaxDeleted.Less(o.MaxDeleted) {
		s.MaxDeleted = o.MaxDeleted
	}
}
