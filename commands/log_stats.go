package commands

import (
	"cmp"
	"fmt"
	"slices"

	"mayfly/keyspace"
	"mayfly/keyspace/deaths"
)

// logStats are figures of a container's log of deaths.
type logStats struct {
	container string
	db        uint32 // the container's number for SELECT
	settings  keyspace.LogSettings
	deaths.State
	memory int64        // bytes, an estimate: of the entries and the groups
	groups []groupStats // by name
}

// groupStats are figures of a group that reads a log.
type groupStats struct {
	name     string
	pending  int   // entries that were delivered and not acknowledged
	lag      int64 // entries that were not delivered
	knownLag bool
}

// logStats returns the figures of a container's log as of one moment. ok is false if there is none.
func (x *Context) logStats(container string) (s logStats, ok bool) {
	x.inPieces(beginLog, func(tx *keyspace.Tx) (more bool) {
		c := logContainer(tx, container)
		if c == nil {
			return false
		}
		ok = true
		s = logStats{container: container, db: c.DB(), memory: tx.LogMemory(c)}
		s.settings, _ = c.Log()
		s.State, _ = tx.Deaths(c).State()
		stream := streamOf(&s.State)
		for _, name := range tx.Groups(c) {
			g := tx.Group(c, name)
			lag, known := g.Lag(&stream)
			s.groups = append(s.groups, groupStats{name, g.Len(), lag, known})
		}
		return false
	})
	return s, ok
}

// loggedPiece is the number of containers that logged looks at while others wait.
const loggedPiece = 4096

// logged returns the names of the containers that log their deaths.
func (x *Context) logged() (names []string) {
	rest := x.Tx.Containers()
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
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

// deathsSection tells of the logs of deaths: the sums, and a line for each log with the number of its container for
// SELECT.
func (r *infoReport) deathsSection() {
	var logs []logStats
	for _, name := range r.x.logged() {
		if s, ok := r.x.logStats(name); ok {
			logs = append(logs, s)
		}
	}
	slices.SortFunc(logs, func(a, b logStats) int { return cmp.Compare(a.db, b.db) })
	var sum LogInfo
	memory := int64(0)
	for i := range logs {
		sum.add(logs[i].info())
		memory += logs[i].memory
	}
	r.field("logs", len(logs))
	r.field("log_entries", sum.Entries)
	r.field("log_bytes", sum.Bytes)
	r.field("log_memory", memory) // of entries and groups; part of used_memory
	r.field("log_oldest_time", sum.Oldest)
	r.field("log_groups", sum.Groups)
	r.field("log_pending", sum.Pending)
	r.field("log_max_lag", sum.Lag)
	for i := range logs {
		r.field(fmt.Sprintf("log%d", logs[i].db), logs[i].info())
	}
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

// info returns the figures for INFO.
func (s *logStats) info() LogInfo {
	l := LogInfo{Name: s.container, Entries: s.Length, Bytes: s.Bytes, Oldest: s.Oldest / 1000, Groups: len(s.groups)}
	for _, g := range s.groups {
		l.Pending += g.pending
		if g.knownLag {
			l.Lag = max(l.Lag, g.lag)
		}
	}
	return l
}

// add adds the figures of another log: the oldest entry and the greatest lag are those of all.
func (l *LogInfo) add(o LogInfo) {
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
