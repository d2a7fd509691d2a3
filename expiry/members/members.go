package members

import (
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsontext"
)

// TTL is the name of the root member that carries a document's own time to live.
const TTL = "ttl"

// Ends is what a document says of its own end.
type Ends struct {
	TTL    expiry.TTL // of the root member ttl; Absent if there is none that counts
	TTLErr error      // why the root member ttl does not count; nil if it counts or is absent

	Deadline    int64  // ms; 0 if there is none that counts
	DeadlineErr error  // why it does not count; nil if it counts or is absent
	DeadlineRaw string // its JSON
}

// Has reports whether a valid document is an object, so that it can have members. The end of any other is a
// moment, which its item has.
func Has(doc string) bool { return doc[jsontext.Skip(doc, 0, ' ')] == '{' }

// Read reads a valid object. Other valid JSON says nothing of its end. deadline is the name of the member
// that has the deadline; "" reads none.
func Read(object, deadline string) (e Ends) {
	hasTTL, hasDeadline := mayHaveTTL(object), deadline != "" && mayHave(object, deadline)
	if !hasTTL && !hasDeadline || !Has(object) {
		return e
	}
	ttls, deadlines := 0, 0
	for w := jsontext.Walk(object); w.Next(); {
		switch name := w.Name(); {
		case name == TTL:
			if ttls++; ttls == 1 {
				e.TTL, e.TTLErr = expiry.ParseMember(w.Value())
			} else {
				e.TTL, e.TTLErr = expiry.Absent, expiry.RepeatedMember()
			}
		case hasDeadline && name == deadline:
			if deadlines++; deadlines > 1 {
				e.Deadline, e.DeadlineErr = 0, expiry.RepeatedDeadline(deadline)
				continue
			}
			raw := w.Value()
			text := ""
			if raw[0] == '"' {
				text = jsontext.Unquote(raw)
			}
			e.DeadlineRaw = raw
			e.Deadline, e.DeadlineErr = expiry.ParseDeadline(deadline, raw, text)
		}
	}
	return e
}

// ExpireAt returns the own end of a document that was last written at ts (ms).
func (e *Ends) ExpireAt(ts int64) int64 { return expiry.OwnEnd(ts, e.TTL, e.Deadline) }

// mayHaveTTL reports whether a valid object may have a member ttl. It is a byte search that saves most
// objects a walk. An escaped name (\u0074tl) spells a letter as \u00…
func mayHaveTTL(object string) bool {
	return strings.Contains(object, TTL+`"`) || strings.Contains(object, `\u00`)
}

// mayHave reports whether a valid object may have a member of any name. Escapes may spell a name in other
// ways.
func mayHave(object, name string) bool {
	return strings.Contains(object, name) || strings.Contains(object, `\`)
}
