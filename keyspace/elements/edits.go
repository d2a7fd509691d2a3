package elements

// Edits are changes of elements that are not stored yet. They keep views of what they are given.
type Edits struct {
	places map[string]int // in list, by field
	list   []edited       // in the order in which they came
}

type edited struct {
	Element
	gone bool
}

// NewEdits returns no changes, with room for some.
func NewEdits(room int) *Edits { return &Edits{places: make(map[string]int, room)} }

// Get returns the element of a field as it is to be, if it was changed.
func (m *Edits) Get(field string) (e Element, there, changed bool) {
	at, changed := m.places[field]
	if !changed {
		return Element{}, false, false
	}
	return m.list[at].Element, !m.list[at].gone, true
}

// Set gives a field a value and an end.
func (m *Edits) Set(e Element) { m.note(edited{Element: e}) }

// Delete removes a field.
func (m *Edits) Delete(field string) { m.note(edited{Element{Field: field}, true}) }

func (m *Edits) note(e edited) {
	at, again := m.places[e.Field]
	if again {
		m.list[at] = e
		return
	}
	m.places[e.Field] = len(m.list)
	m.list = append(m.list, e)
}

// Apply yields the elements of a collection with the changes, once: the others and what has replaced some in
// their order, then what is new.
func (m *Edits) Apply(all func(yield func(Element) bool)) func(yield func(Element) bool) {
	return func(yield func(Element) bool) {
		for e := range all {
			if at, changed := m.places[e.Field]; changed {
				delete(m.places, e.Field)
				if m.list[at].gone {
					continue
				}
				e = m.list[at].Element
			}
			if !yield(e) {
				return
			}
		}
		for _, e := range m.list {
			if _, left := m.places[e.Field]; left && !e.gone && !yield(e.Element) {
				return
			}
		}
	}
}
