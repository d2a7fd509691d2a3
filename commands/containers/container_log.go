package containers

import (
	"fmt"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// The limits of a log.
const (
	defaultLogLength = 1_000_000
	maxLogLength     = 1_000_000_000
)

// logChange is what the options LOG, MAXLEN, BODIES and DELETES ask for.
type logChange struct {
	seconds int64 // 0: OFF; -1: not given
	maxLen  int64 // 0: not given
	bodies  *bool // nil: not given
	deletes *bool // likewise
}

func (l *logChange) given() bool { return l.seconds >= 0 || l.detailed() }

// detailed reports whether an option is given that needs a log.
func (l *logChange) detailed() bool { return l.maxLen > 0 || l.bodies != nil || l.deletes != nil }

// of returns the settings of the log of a container after the change. c is nil for a container to be.
func (l *logChange) of(name string, c *keyspace.Container) (s keyspace.LogSettings, err error) {
	on := false
	if c != nil {
		s, on = c.Log()
	}
	if !on {
		s = keyspace.LogSettings{MaxLen: defaultLogLength, Bodies: true}
	}
	if l.seconds >= 0 {
		s.Seconds = l.seconds
	}
	if s.Seconds == 0 {
		if l.detailed() {
			return s, engine.Errorf(engine.ErrNoLog, name)
		}
		return keyspace.LogSettings{}, nil
	}
	if l.maxLen > 0 {
		s.MaxLen = l.maxLen
	}
	if l.bodies != nil {
		s.Bodies = *l.bodies
	}
	if l.deletes != nil {
		s.Deletes = *l.deletes
	}
	return s, nil
}

// parseLog reads the value of LOG, 0 for OFF.
func parseLog(s string) (seconds int64, err error) {
	if redisfmt.EqualFold(s, "OFF") {
		return 0, nil
	}
	n, ok := redisfmt.ParseInt(s)
	if !ok || n < 1 || n > int64(expiry.MaxTTL) {
		return -1, fmt.Errorf("invalid LOG %s: legal are off and 1 to %d seconds%s", expiry.Quote(s), int64(expiry.MaxTTL), expiry.InSeconds(s))
	}
	return n, nil
}

// parseYesNo reads the value of an option.
func parseYesNo(option, s string) (*bool, error) {
	yes := redisfmt.EqualFold(s, "YES")
	if !yes && !redisfmt.EqualFold(s, "NO") {
		return nil, fmt.Errorf("invalid %s %s: legal are yes and no", option, expiry.Quote(s))
	}
	return &yes, nil
}

// yesNo is the value of an option as text for CONTAINER.SET.
func yesNo(on bool) engine.Reply {
	if on {
		return engine.Bulk("yes")
	}
	return engine.Bulk("no")
}

// describeLog is the field log of CONTAINER.GET: null without a log.
//
//	seconds  for which an entry is kept
//	maxlen   the most entries
//	bodies   whether entries have the bodies of the dead: yes or no
//	deletes  whether what clients delete has entries, too: yes or no
//	length   the number of entries
//	bytes    of their ids and bodies
//	oldest   when the oldest entry was logged, ms since 1970; null if there is none
//	memory   of the entries and the groups, estimated; it counts in used_memory besides that of the container
//	groups   the consumer groups by name: maps of name, pending and lag, which mean what they mean in XINFO GROUPS
func describeLog(x *engine.Context, c *keyspace.Container) engine.Reply {
	s, on := items.LogStatsOf(x, c.Name())
	if !on {
		return engine.Null
	}
	settings := s.Settings
	groups := make([]engine.Reply, len(s.Groups))
	for i, g := range s.Groups {
		groups[i] = engine.Map(engine.Bulk("name"), engine.Bulk(g.Name), engine.Bulk("pending"), engine.Count(g.Pending), engine.Bulk("lag"), engine.OrNull(g.Lag, g.KnownLag))
	}
	oldest := engine.Null
	if s.Length > 0 {
		oldest = engine.Integer(s.Oldest)
	}
	return engine.Map(
		engine.Bulk("seconds"), engine.Integer(settings.Seconds),
		engine.Bulk("maxlen"), engine.Integer(settings.MaxLen),
		engine.Bulk("bodies"), yesNo(settings.Bodies),
		engine.Bulk("deletes"), yesNo(settings.Deletes),
		engine.Bulk("length"), engine.Integer(s.Length),
		engine.Bulk("bytes"), engine.Integer(s.Bytes),
		engine.Bulk("oldest"), oldest,
		engine.Bulk("memory"), engine.Integer(s.Memory),
		engine.Bulk("groups"), engine.Array(groups...),
	)
}
