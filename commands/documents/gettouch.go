package documents

import (
	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/redisfmt"
)

// parseDocGetTouch parses DOC.GETTOUCH, which is DOC.GET and DOC.TOUCH in one. With MINAGE it writes a
// document that is read often, such as a session, at most once in that time.
func parseDocGetTouch(in *engine.Input) (engine.Run, error) {
	var show shownParts
	minAge := int64(0) // ms
	o := items.NamedOptions{Args: in.Args[3:], Legal: []string{"MINAGE", "WITHMETA", "PATH"}, Meant: meantGetTouchOption}
	for o.Next() {
		if o.Name != "MINAGE" {
			show.parseOption("DOC.GETTOUCH", &o)
			continue
		}
		value := o.Value("seconds")
		seconds, ok := parseMinAge(value)
		if !ok {
			o.Fail(engine.Errorf(errMinAge, expiry.Quote(value), int64(expiry.MaxTTL), expiry.InSeconds(value)))
		}
		minAge = seconds * 1000
	}
	if o.Err != nil {
		return nil, o.Err
	}
	e := touchEdit()
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		if d.Found && x.Now()-d.Item.TS >= minAge {
			if !e.Ready(x, d, 0) {
				return engine.Reply{}
			}
			d.StoreJSON(x, &e.Doc, events.DocTouch)
			d.Item, _ = x.Tx.Get(d.Container, d.ID)
		}
		d.CountRead(x)
		if !d.Found {
			return engine.Null
		}
		return show.reply(x, d.Item)
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
func touchEdit() items.Edit {
	return items.Edit{Apply: func(body, deadline string) (jsondoc.Document, error) {
		return jsondoc.FromValid(body, deadline), nil
	}}
}
