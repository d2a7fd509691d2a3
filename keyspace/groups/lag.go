package groups

import "mayfly/keyspace/streamid"

// Stream is what a group has to know of its stream.
type Stream struct {
	Added       int64 // entries ever
	Length      int64 // entries
	First, Last streamid.ID
	MaxDeleted  streamid.ID // the greatest id that XDEL has removed
}

// tombstoneFrom reports whether entries from an id on may have been deleted (streamRangeHasTombstones of
// Redis).
func (s *Stream) tombstoneFrom(id streamid.ID) bool {
	return s.Length > 0 && !s.MaxDeleted.IsZero() && !s.MaxDeleted.Less(s.First) && !s.MaxDeleted.Less(id)
}

// distance estimates how many entries were ever added up to an id, or returns [Unknown]
// (streamEstimateDistanceFromFirstEverEntry of Redis).
func (s *Stream) distance(id streamid.ID) int64 {
	switch c := id.Compare(s.Last); {
	case s.Added == 0:
		return 0
	case c == 0, s.Length == 0 && c < 0:
		return s.Added
	case c > 0:
		return Unknown
	}
	if s.MaxDeleted.IsZero() || s.MaxDeleted.Less(s.First) {
		switch id.Compare(s.First) {
		case -1:
			return s.Added - s.Length
		case 0:
			return s.Added - s.Length + 1
		}
	}
	return Unknown
}

// Lag estimates how many entries the group has not read yet, or returns false.
func (g *Group) Lag(s *Stream) (lag int64, ok bool) {
	if s.Added == 0 {
		return 0, true
	}
	read := g.read
	if read == Unknown || s.tombstoneFrom(g.last) {
		read = s.distance(g.last)
	}
	return s.Added - read, read != Unknown
}
