package items

import (
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
)

// ReadDeadline reads the deadline of a document, in a long one without locks. It returns false if the Run
// must return: it runs again afterwards.
func ReadDeadline(x *engine.Context, doc *jsondoc.Document, member string) bool {
	if doc.Deadline != nil && doc.Deadline.Member == member {
		return true
	}
	if len(doc.JSON) < engine.SlowBytes || x.Queued {
		doc.ReadDeadline(member)
		return true
	}
	x.Outside = func() (_ engine.Reply, again bool) {
		doc.ReadDeadline(member)
		return engine.Reply{}, true
	}
	return false
}

// Edit computes what a command makes of a document or a plain value, outside of locks if that takes long.
// Another command may change the document meanwhile. Then the edit is computed again, at last under the lock,
// so that a busy document cannot keep it from ever happening.
type Edit struct {
	Apply func(body, deadline string) (jsondoc.Document, error) // depends on these only
	plain bool                                                  // it edits plain values

	Doc jsondoc.Document // the result
	Err error            // or why there is none

	Tries    int    // computations without locks
	version  uint64 // of the document that the last one has read; 0: there was none
	deadline string // the member that it has read as the deadline
}

// MaxTries is how often an edit is computed without locks.
const MaxTries = 3

// Ready reports whether the edit has been computed from the document as it is. If not, the Run returns: it
// runs again afterwards. size is what the edit reads besides the document, in bytes.
func (e *Edit) Ready(x *engine.Context, d DocTarget, size int) bool {
	deadline := ""
	if !e.plain {
		deadline = d.Container.Policy().Deadline
	}
	if e.Tries > 0 && e.version == d.Item.Version && e.deadline == deadline {
		return true
	}
	body := d.Item.Body
	if len(body)+size < engine.SlowBytes || x.Queued || e.Tries == MaxTries {
		e.compute(body, deadline)
		return true
	}
	e.Tries++
	x.Outside = func() (_ engine.Reply, again bool) {
		e.compute(body, deadline)
		e.version, e.deadline = d.Item.Version, deadline
		if unsafe.StringData(e.Doc.JSON) != unsafe.StringData(body) { // else only the header is written
			x.Tx.Prepare(e.Doc.JSON)
		}
		return engine.Reply{}, true
	}
	return false
}

// compute applies the edit.
func (e *Edit) compute(body, deadline string) {
	if e.Doc, e.Err = e.Apply(body, deadline); e.Err == nil {
		e.Doc.ReadDeadline(deadline)
	}
}

// EditOf returns the edit of a plain value.
func EditOf(apply func(value string) string) Edit {
	return Edit{plain: true, Apply: func(value, _ string) (jsondoc.Document, error) {
		return jsondoc.Document{JSON: apply(value)}, nil
	}}
}

// CeilSeconds converts ms, more than 0, to a time to live, rounded up so that no item dies early.
func CeilSeconds(ms int64) expiry.TTL { return expiry.TTL((ms-1)/1000 + 1) }

// ttlEdit sets the member ttl of a document.
type ttlEdit struct {
	Edit
	ttl     expiry.TTL // of the last computation
	maxSize int        // of a document, bytes

	// Until is the end in ms that the document keeps, 0 for none. The member is in whole seconds: if its end
	// were kept instead, each of many writes would put it off.
	Until int64
}

func EditTTL(maxSize int) *ttlEdit {
	e := &ttlEdit{maxSize: maxSize}
	e.Apply = func(body, _ string) (jsondoc.Document, error) {
		return jsondoc.Document{JSON: body}.WithTTL(e.ttl, e.maxSize)
	}
	return e
}

// Set sets the member, or removes it for Absent, and restarts the clock. It returns 1 or an error.
func (e *ttlEdit) Set(x *engine.Context, d DocTarget, ttl expiry.TTL, kind events.Kind) engine.Reply {
	if e.ttl != ttl && e.Tries > 0 { // a time that was given as a moment is nearer now
		e.Tries = MaxTries
		e.version = d.Item.Version + 1
	}
	e.ttl = ttl
	if !e.Ready(x, d, 0) {
		return engine.Reply{}
	}
	if e.Err != nil {
		return engine.Fail(e.Err)
	}
	if e.Until > 0 && !e.Doc.Passed(d.Container.Policy(), x.Now()) {
		storeDocument(x, d.Container, d.ID, &e.Doc, min(e.Until, e.Doc.ExpireAt(x.Now())), kind)
	} else {
		PutDocument(x, d.Container, d.ID, &e.Doc, kind)
	}
	return engine.Flag(true)
}
