package jsondoc

import (
	"fmt"
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsontext"
)

// MergePatch is a JSON Merge Patch (RFC 7396): an object whose members replace those of a document. A
// null removes a member, and objects are merged recursively. What the patch does not name stays
// unchanged, byte for byte. Merging is one pass over the document.
//
// Objects within a patch are of the same type.
type MergePatch struct {
	text    string // as given
	nulls   bool   // a member of it, or of an object in it, is null
	members []mergeMember
	byName  map[string]int // indexes of members; nil for at most fewMembers
}

// mergeMember is a member of an object of a merge patch.
type mergeMember struct {
	name   string
	quoted string      // the name as given
	value  string      // the value as given
	object *MergePatch // the value, if it is an object
}

func (m *mergeMember) null() bool { return m.value == "null" }

// fewMembers is the number of members up to which a search is faster than a map. It saves a fifth of
// BenchmarkMerge.
const fewMembers = 8

// ParseMergePatch reads a merge patch from a valid object, no deeper than a document. A repeated name is
// ambiguous and an error. The patch shares memory with the object.
func ParseMergePatch(object string) (*MergePatch, error) {
	p, _, err := parseMergeObject(object, strings.IndexByte(object, '{'))
	return p, err
}

// parseMergeObject reads the object at i. end is the position after it.
func parseMergeObject(text string, i int) (p *MergePatch, end int, err error) {
	p = &MergePatch{}
	w := jsontext.WalkAt(text, i)
	for w.Step() {
		m := mergeMember{name: w.Name(), quoted: text[w.Start:w.NameEnd]}
		if p.index(m.name) >= 0 {
			return nil, 0, fmt.Errorf("invalid merge patch: the member %s is repeated", expiry.Quote(m.name))
		}
		if text[w.ValueFrom] == '{' {
			if m.object, w.Pos, err = parseMergeObject(text, w.ValueFrom); err != nil {
				return nil, 0, err
			}
			p.nulls = p.nulls || m.object.nulls
		} else {
			w.Pos = jsontext.ValueEnd(text, w.ValueFrom)
		}
		m.value = w.Value()
		p.nulls = p.nulls || m.null()
		p.add(m)
	}
	p.text = text[i : w.Start+1]
	return p, w.Start + 1, nil
}

func (p *MergePatch) add(m mergeMember) {
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

// index returns the index of the member with a name, or -1.
func (p *MergePatch) index(name string) int {
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

// Touches reports whether the patch may change a root member.
func (p *MergePatch) Touches(member string) bool { return p.index(member) >= 0 }

// Apply merges the patch into a valid object, or into none if object is "". Errors are one line. Either the
// document is not an object, or it repeats a name and so is ambiguous, or the result is larger than maxSize
// bytes or nested too deep.
func (p *MergePatch) Apply(object string, maxSize int) (Document, error) {
	if object != "" && !IsObject(object) {
		return Document{}, errNotObject
	}
	text, err := p.Merge(object)
	if err != nil {
		return Document{}, err
	}
	return Edited(text, maxSize)
}

// Merge returns the text of a valid object merged with the patch, or of the patch without nulls if object is
// "". The error is that the object repeats a name.
func (p *MergePatch) Merge(object string) (string, error) {
	var m merger
	if object == "" {
		m.writeNew(p)
		return m.out.String(), nil
	}
	size := len(object)
	if !p.nulls { // nulls are not written: room for them would be kept with the result
		size += len(p.text)
	}
	m.out.Grow(size)
	start := strings.IndexByte(object, '{')
	m.out.WriteString(object[:start])
	end, err := m.mergeObject(object, start, p)
	if err != nil {
		return "", err
	}
	m.out.WriteString(object[end:])
	return m.out.String(), nil
}

// merger writes the result of a merge.
type merger struct{ out strings.Builder }

// writeNew writes an object of the patch that has no object to merge into: itself without nulls.
func (m *merger) writeNew(p *MergePatch) {
	if !p.nulls {
		m.out.WriteString(p.text)
		return
	}
	m.out.WriteByte('{')
	m.writeUnmet(p, nil, false)
	m.out.WriteByte('}')
}

// writeValue writes the value of a member of the patch that replaces another or is new.
func (m *merger) writeValue(member *mergeMember) {
	if member.object != nil {
		m.writeNew(member.object)
	} else {
		m.out.WriteString(member.value)
	}
}

// writeUnmet writes the members of the patch that the object does not have: all but those in met. comma
// says that other members precede them.
func (m *merger) writeUnmet(p *MergePatch, met []bool, comma bool) {
	for i := range p.members {
		member := &p.members[i]
		if member.null() || met != nil && met[i] {
			continue
		}
		if comma {
			m.out.WriteByte(',')
		}
		m.out.WriteString(member.quoted + ":")
		m.writeValue(member)
		comma = true
	}
}

// mergeObject writes the object at i, merged with the patch. end is the position after the object.
func (m *merger) mergeObject(text string, i int, p *MergePatch) (end int, err error) {
	met := make([]bool, len(p.members))
	kept := false // a member of the object is kept
	w := jsontext.WalkAt(text, i)
	end = jsontext.Skip(text, w.Pos, ' ')
	m.out.WriteString(text[i:end])
	for w.Step() {
		at := p.index(w.Name())
		if at >= 0 && met[at] {
			return 0, fmt.Errorf("the member %s of the document is repeated", expiry.Quote(w.Name()))
		}
		var member *mergeMember
		if at >= 0 {
			met[at] = true
			member = &p.members[at]
		}
		removed := member != nil && member.null()
		if !removed {
			if kept {
				m.out.WriteString(text[end:w.Start])
			}
			m.out.WriteString(text[w.Start:w.ValueFrom])
			kept = true
		}
		if member != nil && member.object != nil && text[w.ValueFrom] == '{' {
			if w.Pos, err = m.mergeObject(text, w.ValueFrom, member.object); err != nil {
				return 0, err
			}
		} else {
			w.Pos = jsontext.ValueEnd(text, w.ValueFrom)
			switch {
			case member == nil:
				m.out.WriteString(w.Value())
			case !removed:
				m.writeValue(member)
			}
		}
		end = w.Pos
	}
	m.writeUnmet(p, met, kept)
	m.out.WriteString(text[end : w.Start+1])
	return w.Start + 1, nil
}
