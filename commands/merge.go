package commands

import (
	"fmt"
	"strings"

	"mayfly/expiry"
)

// DOC.MERGE applies a JSON Merge Patch (RFC 7396): an object whose members replace those of the document,
// null removing one, objects being merged in turn. Whatever it does not name stays as it is, byte for
// byte. The patch is read before the partition is locked; merging is one pass over the document.

func parseDocMerge(in *Input) (Run, error) {
	var when condition
	o := namedOptions{args: in.Args[4:], legal: []string{"IFMATCH"}}
	for o.next() {
		o.fail(when.parseMatch(o.value("an etag or *")))
	}
	if o.err != nil {
		return nil, o.err
	}
	body, err := parseBody(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	patch, err := parseMergePatch(body.json)
	if err != nil {
		return nil, err
	}
	touchesTTL := patch.find(ttlMember) >= 0
	most := in.MaxValue
	return onDocument(func(x *Context, d oneDocument) Reply {
		if !when.holds(d.found, d.item.Version) {
			return Null
		}
		text, err := patch.merge(d.item.Body, d.found)
		if err != nil {
			return Fail(err)
		}
		return d.rewrite(x, text, most, touchesTTL, eventDocMerge)
	}), nil
}

// mergePatch is an object of a merge patch.
type mergePatch struct {
	text    string // as it was given
	nulls   bool   // a member of it, or of an object in it, is null
	members []mergeMember
	byName  map[string]int // members, if they are many
}

// mergeMember is a member of such an object.
type mergeMember struct {
	name   string
	quoted string      // as it was given
	value  string      // likewise
	object *mergePatch // if the value is one
}

func (m *mergeMember) null() bool { return m.value == "null" }

// fewMembers are as quickly looked through as found in a map.
const fewMembers = 8

// parseMergePatch reads a valid object, no deeper than a document. A name that is there twice is an
// error, since nobody knows which one is meant.
func parseMergePatch(object string) (*mergePatch, error) {
	p, _, err := parseMergeObject(object, strings.IndexByte(object, '{'))
	return p, err
}

// parseMergeObject reads the object that begins at i and gives the position after it.
func parseMergeObject(text string, i int) (p *mergePatch, end int, err error) {
	p = &mergePatch{}
	w := walkAt(text, i)
	for w.enter() {
		m := mergeMember{name: w.name(), quoted: text[w.start:w.nameEnd]}
		if p.find(m.name) >= 0 {
			return nil, 0, fmt.Errorf("invalid merge patch: the member %s is there more than once", expiry.Quote(m.name))
		}
		if text[w.valueFrom] == '{' {
			if m.object, w.pos, err = parseMergeObject(text, w.valueFrom); err != nil {
				return nil, 0, err
			}
			p.nulls = p.nulls || m.object.nulls
		} else {
			w.pos = valueEnd(text, w.valueFrom)
		}
		m.value = w.value()
		p.nulls = p.nulls || m.null()
		p.add(m)
	}
	p.text = text[i : w.start+1]
	return p, w.start + 1, nil
}

func (p *mergePatch) add(m mergeMember) {
	p.members = append(p.members, m)
	switch n := len(p.members); {
	case n == fewMembers+1:
		p.byName = make(map[string]int, 2*n)
		for i := range p.members {
			p.byName[p.members[i].name] = i
		}
	case n > fewMembers:
		p.byName[m.name] = n - 1
	}
}

// find looks a member up by its name; -1 if there is none.
func (p *mergePatch) find(name string) int {
	if p.byName != nil {
		if i, ok := p.byName[name]; ok {
			return i
		}
		return -1
	}
	for i := range p.members {
		if p.members[i].name == name {
			return i
		}
	}
	return -1
}

// merge applies the patch to a valid object, or, if there is none, makes one.
func (p *mergePatch) merge(object string, there bool) (string, error) {
	var m merger
	if !there {
		m.fresh(p)
		return m.out.String(), nil
	}
	m.out.Grow(len(object) + len(p.text))
	start := strings.IndexByte(object, '{')
	m.out.WriteString(object[:start])
	end, err := m.merge(object, start, p)
	if err != nil {
		return "", err
	}
	m.out.WriteString(object[end:])
	return m.out.String(), nil
}

// merger writes the result of a merge.
type merger struct{ out strings.Builder }

// fresh writes what becomes of an object of the patch where there is no object to merge it into: itself
// without nulls.
func (m *merger) fresh(p *mergePatch) {
	if !p.nulls {
		m.out.WriteString(p.text)
		return
	}
	m.out.WriteByte('{')
	m.missing(p, nil, false)
	m.out.WriteByte('}')
}

// value writes the value of a member of the patch for one that is not an object.
func (m *merger) value(member *mergeMember) {
	if member.object != nil {
		m.fresh(member.object)
	} else {
		m.out.WriteString(member.value)
	}
}

// missing writes those members of the patch that the object has not: all but those that were met. members
// tells whether there are any before them.
func (m *merger) missing(p *mergePatch, met []bool, members bool) {
	for i := range p.members {
		member := &p.members[i]
		if member.null() || met != nil && met[i] {
			continue
		}
		if members {
			m.out.WriteByte(',')
		}
		m.out.WriteString(member.quoted + ":")
		m.value(member)
		members = true
	}
}

// merge writes the object that begins at i, merged with the patch, and gives the position after it.
func (m *merger) merge(text string, i int, p *mergePatch) (end int, err error) {
	met := make([]bool, len(p.members))
	left := false // a member is left
	w := walkAt(text, i)
	end = skip(text, w.pos, ' ')
	m.out.WriteString(text[i:end])
	for w.enter() {
		at := p.find(w.name())
		if at >= 0 && met[at] {
			return 0, fmt.Errorf("the member %s of the document is there more than once", expiry.Quote(w.name()))
		}
		var member *mergeMember
		if at >= 0 {
			met[at] = true
			member = &p.members[at]
		}
		removed := member != nil && member.null()
		if !removed {
			if left {
				m.out.WriteString(text[end:w.start])
			}
			m.out.WriteString(text[w.start:w.valueFrom])
			left = true
		}
		if member != nil && member.object != nil && text[w.valueFrom] == '{' {
			if w.pos, err = m.merge(text, w.valueFrom, member.object); err != nil {
				return 0, err
			}
		} else {
			w.pos = valueEnd(text, w.valueFrom)
			switch {
			case member == nil:
				m.out.WriteString(w.value())
			case !removed:
				m.value(member)
			}
		}
		end = w.pos
	}
	m.missing(p, met, left)
	m.out.WriteString(text[end : w.start+1])
	return w.start + 1, nil
}
