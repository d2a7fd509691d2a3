package commands

import (
	"fmt"
	"iter"

	"mayfly/commands/jsondoc"
	"mayfly/commands/redisfmt"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/deaths"
)

// The log of deaths
//
// CONTAINER.SET gives a container its log, XREAD and its family read it, and DOC.REVIVE gives a death a new life.

// reviveCommand is DOC.REVIVE.
var reviveCommand = Command{
	Name: "doc.revive", Syntax: "container id [id ...]", Example: "carts 7",
	Summary: "Puts what died anew, as the newest entry with a body in the container's log has it, under each id where nothing lives. Returns how many. The clock starts again.",
	Flags:   Write | DenyOOM, Keys: AllIDs, Access: "RW insert", Walks: always, Parse: parseDocRevive,
}

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
			return s, errorf(errNoLog, name)
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
		return -1, fmt.Errorf("invalid LOG %s: legal are off and 1 to %d seconds", expiry.Quote(s), int64(expiry.MaxTTL))
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
func yesNo(on bool) Reply {
	if on {
		return Bulk("yes")
	}
	return Bulk("no")
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
func (x *Context) describeLog(c *keyspace.Container) Reply {
	s, on := x.logStats(c.Name())
	if !on {
		return Null
	}
	settings := s.settings
	groups := make([]Reply, len(s.groups))
	for i, g := range s.groups {
		groups[i] = Map(Bulk("name"), Bulk(g.name), Bulk("pending"), Count(g.pending), Bulk("lag"), orNull(g.lag, g.knownLag))
	}
	oldest := Null
	if s.Length > 0 {
		oldest = Integer(s.Oldest)
	}
	return Map(
		Bulk("seconds"), Integer(settings.Seconds),
		Bulk("maxlen"), Integer(settings.MaxLen),
		Bulk("bodies"), yesNo(settings.Bodies),
		Bulk("deletes"), yesNo(settings.Deletes),
		Bulk("length"), Integer(s.Length),
		Bulk("bytes"), Integer(s.Bytes),
		Bulk("oldest"), oldest,
		Bulk("memory"), Integer(s.memory),
		Bulk("groups"), Array(groups...),
	)
}

// describeDeath is the field last of DOC.EXPLAIN:
//
//	entry   the id of the entry in the log
//	cause   document, container, change or deleted
//	at      the moment of death, ms since 1970
//	ts      the last write, ms since 1970
//	etag    of what died
//	policy  etag of the container's settings that ruled
func describeDeath(d deaths.Entry) Reply {
	return Map(
		Bulk("entry"), Bulk(d.ID.String()),
		Bulk("cause"), Bulk(string(d.Cause)),
		Bulk("at"), Integer(d.At),
		Bulk("ts"), Integer(d.TS),
		Bulk("etag"), Bulk(etag(d.Etag)),
		Bulk("policy"), Bulk(etag(d.Policy)),
	)
}

// revival is an item to be put anew.
type revival struct {
	target docTarget
	entry  deaths.Entry
	doc    jsondoc.Document // of a document
}

func parseDocRevive(in *Input) (Run, error) {
	return onDocuments(in.Args[1], in.Args[2:], func(x *Context, docs iter.Seq[docTarget]) Reply {
		var list []revival
		seen := map[string]bool{}
		for d := range docs {
			if _, on := d.container.Log(); !on {
				return Fail(errorf(errNoLog, d.container.Name()))
			}
			if d.found || seen[d.id] {
				continue
			}
			if _, lives := x.Tx.Get(d.container, d.id); lives { // a plain key
				continue
			}
			seen[d.id] = true
			x.Tx.Delete(d.container, d.id) // what is dead and lies there is logged first
			r := revival{target: d}
			x.Tx.Deaths(d.container).Of(d.id, func(e deaths.Entry) (more bool) {
				r.entry = e
				return !e.HasBody
			})
			if !r.entry.HasBody {
				continue
			}
			if err := r.judge(x); err != nil {
				return Fail(err)
			}
			list = append(list, r)
		}
		for i := range list {
			list[i].put(x)
		}
		return Count(len(list))
	})
}

// judge checks the document as DOC.PUT does.
func (r *revival) judge(x *Context) (err error) {
	if r.entry.Kind != keyspace.Document {
		return nil
	}
	p := r.target.container.Policy()
	if r.doc, err = jsondoc.ParseValue(r.entry.Body, len(r.entry.Body)); err != nil {
		return err
	}
	if err := r.doc.CheckTTL(p); err != nil {
		return err
	}
	r.doc.ReadDeadline(p.Deadline)
	return r.doc.CheckDeadline(p, x.Now())
}

// put stores the item. A plain key has no end of its own.
func (r *revival) put(x *Context) {
	d := r.target
	if r.entry.Kind == keyspace.Document {
		putDocument(x, d.container, d.id, &r.doc, eventDocRevive)
		return
	}
	x.put(d.container, d.id, r.entry.Kind, r.entry.Body, expiry.Inherit, eventDocRevive)
}
