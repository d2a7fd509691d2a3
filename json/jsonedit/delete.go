package jsonedit

import (
	"strings"

	"mayfly/json/jsonpath"
	"mayfly/json/jsontext"
	"mayfly/longtext"
)

// Delete removes the members and elements whose values are at spans, with a comma. Spans within others go
// with them and do not count. It returns "" if the root is among them. The order of what is left does not
// change.
func Delete(doc string, spans []jsonpath.Span) (text string, deleted int) {
	parts := make([]string, 0, len(spans)+1) // of what is left
	done := 0                                // the position up to which the document is copied or left out
	for _, k := range inOrder(spans) {
		s := spans[k]
		if deleted > 0 && s.From < done {
			continue // within one that is deleted
		}
		from := memberStart(doc, s.From)
		before := lastNonSpace(doc, from)
		if before < 0 {
			return "", 1
		}
		deleted++
		if doc[before] == ',' && before >= done {
			parts = append(parts, doc[done:before])
			done = s.To
			continue
		}
		parts = append(parts, doc[done:max(done, from)])
		if done = s.To; doc[jsontext.Skip(doc, done, ' ')] == ',' {
			done = jsontext.Skip(doc, done, ',')
		}
	}
	return longtext.Join(append(parts, doc[done:])...), deleted
}

// memberStart returns the start of the member whose value begins at a position, or of the element: its
// position.
func memberStart(doc string, at int) int {
	colon := lastNonSpace(doc, at)
	if colon < 0 || doc[colon] != ':' {
		return at
	}
	quote := lastNonSpace(doc, colon)
	for i := quote - 1; ; i-- { // the name holds quotes only after an odd number of backslashes
		if doc[i] != '"' {
			continue
		}
		slashes := 0
		for i-slashes > 0 && doc[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// lastNonSpace returns the position of the last byte before a position that is no white space; -1 if there is
// none.
func lastNonSpace(doc string, before int) int {
	for before--; before >= 0 && strings.IndexByte(jsontext.Space, doc[before]) >= 0; before-- {
	}
	return before
}

// AddMember adds a member at the end of an object. name is the name without quotes and escapes.
func AddMember(object, name, value string) string {
	end := strings.LastIndexByte(object, '}')
	last := lastNonSpace(object, end)
	member := make([]byte, 0, len(name)+len(`,"":`))
	if object[last] != '{' {
		member = append(member, ',')
	}
	member = append(jsontext.AppendString(member, name), ':')
	return longtext.Join(object[:last+1], string(member), value, object[last+1:])
}
