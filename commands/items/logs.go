package items

import (
	"fmt"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
)

// LogContainer returns the container of that name if it has a log, else nil.
func LogContainer(tx *keyspace.Tx, name string) *keyspace.Container {
	c := tx.Container(name)
	if c == nil {
		return nil
	}
	if _, ok := tx.Log(c); !ok {
		return nil
	}
	return c
}

// BeginGroups begins a transaction on groups alone.
func BeginGroups(ks *keyspace.Keyspace, tx *keyspace.Tx) { ks.BeginKey(tx, keyspace.GroupTag) }

// BeginLog begins a transaction on groups and entries.
func BeginLog(ks *keyspace.Keyspace, tx *keyspace.Tx) { ks.BeginAll(tx) }

// StreamOf returns what groups must know of a log's state.
func StreamOf(s *deathlog.State) groups.Stream {
	return groups.Stream{Added: s.Added, Length: s.Length, First: s.First, Last: s.Last, MaxDeleted: s.MaxDeleted}
}

// logStats are figures of a container's log of deaths.
type LogStats struct {
	container string
	DB        uint32 // the container's number for SELECT
	Settings  keyspace.LogSettings
	deathlog.State
	Memory int64        // bytes, an estimate: of the entries and the groups
	Groups []groupStats // by name
}

// groupStats are figures of a group that reads a log.
type groupStats struct {
	Name     string
	Pending  int   // entries that were delivered and not acknowledged
	Lag      int64 // entries that were not delivered
	KnownLag bool
}

// logStats returns the figures of a container's log as of one moment. ok is false if there is none.
func LogStatsOf(x *engine.Context, container string) (s LogStats, ok bool) {
	x.InPieces(BeginLog, func(tx *keyspace.Tx) (more bool) {
		c := LogContainer(tx, container)
		if c == nil {
			return false
		}
		ok = true
		s = LogStats{container: container, DB: c.DB(), Memory: tx.LogMemory(c)}
		s.Settings, _ = c.Log()
		s.State, _ = tx.Deaths(c).State()
		stream := StreamOf(&s.State)
		for _, name := range tx.Groups(c) {
			g := tx.Group(c, name)
			lag, known := g.Lag(&stream)
			s.Groups = append(s.Groups, groupStats{name, g.Len(), lag, known})
		}
		return false
	})
	return s, ok
}

// loggedPiece is the number of containers that logged looks at while others wait.
const loggedPiece = 4096

// Logged returns the names of the containers that log their deaths.
func Logged(x *engine.Context) (names []string) {
	rest := x.Tx.Containers()
	x.InPieces(BeginGroups, func(tx *keyspace.Tx) (more bool) {
		n := min(len(rest), loggedPiece)
		for _, c := range rest[:n] {
			if _, on := c.Log(); on {
				names = append(names, c.Name())
			}
		}
		rest = rest[n:]
		return len(rest) > 0
	})
	return names
}

// LogInfo is the value of a log's line in INFO.
type LogInfo struct {
	Name    string // of the container
	Entries int64
	Bytes   int64 // of their ids and bodies
	Oldest  int64 // when the oldest entry was logged, s since 1970; 0 without entries
	Groups  int
	Pending int   // entries that were delivered to a group and not acknowledged
	Lag     int64 // of the group with most entries that were not delivered to it; groups whose lag is unknown are left out
}

// Info returns the figures for INFO.
func (s *LogStats) Info() LogInfo {
	l := LogInfo{Name: s.container, Entries: s.Length, Bytes: s.Bytes, Oldest: s.Oldest / 1000, Groups: len(s.Groups)}
	for _, g := range s.Groups {
		l.Pending += g.Pending
		if g.KnownLag {
			l.Lag = max(l.Lag, g.Lag)
		}
	}
	return l
}

// Add adds the figures of another log: the oldest entry and the greatest lag are those of all.
func (l *LogInfo) Add(o LogInfo) {
	l.Entries += o.Entries
	l.Bytes += o.Bytes
	l.Groups += o.Groups
	l.Pending += o.Pending
	l.Lag = max(l.Lag, o.Lag)
	if o.Oldest > 0 && (l.Oldest == 0 || o.Oldest < l.Oldest) {
		l.Oldest = o.Oldest
	}
}

func (l LogInfo) String() string {
	return fmt.Sprintf("entries=%d,bytes=%d,oldest=%d,groups=%d,pending=%d,lag=%d", l.Entries, l.Bytes, l.Oldest, l.Groups, l.Pending, l.Lag)
}
