package commands

import (
	"mayfly/commands/jsondoc"
	"mayfly/commands/redisfmt"
	"mayfly/expiry"
)

// parseDocGetTouch parses DOC.GETTOUCH, which is DOC.GET and DOC.TOUCH in one. With MINAGE it writes a document that is
// read often, such as a session, at most once in that time.
func parseDocGetTouch(in *Input) (Run, error) {
	var show shownParts
	minAge := int64(0) // ms
	o := namedOptions{args: in.Args[3:], legal: []string{"MINAGE", "WITHMETA", "PATH"}, meant: meantGetTouchOption}
	for o.next() {
		if o.name != "MINAGE" {
			show.parseOption("DOC.GETTOUCH", &o)
			continue
		}
		value := o.value("seconds")
		seconds, ok := parseMinAge(value)
		if !ok {
			o.fail(errorf(errMinAge, expiry.Quote(value), int64(expiry.MaxTTL)))
		}
		minAge = seconds * 1000
	}
	if o.err != nil {
		return nil, o.err
	}
	e := touchEdit()
	return onDocument(func(x *Context, d docTarget) Reply {
		if d.found && x.Now()-d.item.TS >= minAge {
			if !e.ready(x, d, 0) {
				return Reply{}
			}
			d.storeJSON(x, &e.doc, eventDocTouch)
			d.item, _ = x.Tx.Get(d.container, d.id)
		}
		d.countRead(x)
		if !d.found {
			return Null
		}
		return show.reply(x, d.item)
	}), nil
}

// parseMinAge reads the value of MINAGE: 0 to 2147483647 seconds.
func parseMinAge(s string) (seconds int64, ok bool) {
	n, ok := redisfmt.ParseInt(s)
	return n, ok && n >= 0 && n <= int64(expiry.MaxTTL)
}

// meantGetTouchOption returns what a word that is no option of DOC.GETTOUCH probably means.
func meantGetTouchOption(word string) string {
	if _, ok := parseMinAge(word); ok {
		return "MINAGE " + word
	}
	return meantPath(word)
}

// touchEdit returns the edit that leaves a document as it is. A ttl that does not count stays ignored.
func touchEdit() edit {
	return edit{apply: func(body, deadline string) (jsondoc.Document, error) {
		return jsondoc.FromValid(body, deadline), nil
	}}
}
