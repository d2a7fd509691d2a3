package query

import (
	"slices"

	"mayfly/json/jsontext"
)

// Roots finds which members at the root that a query names are in no document. A name without quotes where a
// string is meant is such a member, and c.status without FROM c.
type Roots struct {
	from    bool   // the query has FROM
	missing []path // one for each name
}

// Roots returns what a query names at the root, before any document.
func (q *Query) Roots() *Roots {
	r := &Roots{from: q.from}
	for _, p := range q.paths {
		if p[0].index < 0 && !slices.ContainsFunc(r.missing, func(there path) bool { return there[0].name == p[0].name }) {
			r.missing = append(r.missing, p)
		}
	}
	return r
}

// Look looks at a document, valid JSON.
func (r *Roots) Look(text string) {
	root := jsontext.Skip(text, 0, ' ')
	if len(r.missing) == 0 || text[root] != '{' {
		return
	}
	for w := jsontext.WalkAt(text, root); w.Next(); {
		name := w.Name()
		r.missing = slices.DeleteFunc(r.missing, func(p path) bool { return p[0].name == name })
	}
}

// Hint returns what a name means that no document has as a member, "" if all are there.
func (r *Roots) Hint() string {
	if len(r.missing) == 0 {
		return ""
	}
	name := clip(r.missing[0][0].name)
	hint := "no document that was read has a member " + name
	switch {
	case r.from:
	case len(r.missing[0]) == 1:
		hint += ": as a string it is written '" + name + "'"
	default:
		hint += ": paths begin with " + name + " after FROM " + name + " only"
	}
	return hint
}
