package jsonedit

import (
	"slices"
	"strings"

	"mayfly/json/jsonpath"
	"mayfly/json/jsontext"
)

// Places are the places of a document that edits to come name. The zero value has none.
type Places struct{ next map[jsonpath.Step]*Places }

// Add adds the place to which steps lead.
func (p *Places) Add(steps []jsonpath.Step) {
	for _, s := range steps {
		next := p.next[s]
		if next == nil {
			if p.next == nil {
				p.next = make(map[jsonpath.Step]*Places)
			}
			next = new(Places)
			p.next[s] = next
		}
		p = next
	}
}

// Tree is a document that is edited at many places. It reads each object and array once, when the first edit
// goes through it, and keeps what its places name: so its memory is bounded by them. The text is made once,
// at the end.
type Tree struct {
	// Read is the number of bytes that the edits have read.
	Read int

	root node
}

// NewTree returns a document that is edited at these places.
func NewTree(doc string, places *Places) *Tree {
	return &Tree{root: node{text: doc, size: len(doc), places: []*Places{places}}}
}

// Size returns the size of the document in bytes.
func (t *Tree) Size() int { return t.root.size }

// Text returns the document.
func (t *Tree) Text() string {
	if t.root.children == nil {
		return t.root.text
	}
	return string(t.root.appendTo(make([]byte, 0, t.root.size)))
}

// Outcome is what became of an edit.
type Outcome int

// The outcomes.
const (
	Changed   Outcome = iota // the value is there
	NoParent                 // no object is there that could have the member
	NoElement                // the last step is an element that is not there
)

// Set sets the value at one of the places, or adds the member that the last step names.
func (t *Tree) Set(steps []jsonpath.Step, value string) Outcome {
	last := len(steps) - 1
	n, above := &t.root, make([]*node, 0, len(steps))
	for i, s := range steps {
		t.open(n)
		above = append(above, n)
		child := n.children[s]
		switch {
		case child != nil:
			n = child
			continue
		case steps[last].Element:
			return NoElement
		case i < last || !n.isObject():
			return NoParent
		}
		size := n.size
		n.add(s, value)
		grow(above[:i], n.size-size)
		return Changed
	}
	grow(above, len(value)-n.size)
	*n = node{text: value, size: len(value), places: n.places}
	return Changed
}

// Has reports whether one of the places has a value.
func (t *Tree) Has(steps []jsonpath.Step) bool {
	n := &t.root
	for _, s := range steps {
		t.open(n)
		if n = n.children[s]; n == nil {
			return false
		}
	}
	return true
}

// grow notes that a value below all nodes has become longer.
func grow(nodes []*node, by int) {
	for _, n := range nodes {
		n.size += by
	}
}

// node is a value.
type node struct {
	text   string // without changes
	size   int    // of the text with changes
	places []*Places

	// of one that was opened
	children map[jsonpath.Step]*node
	parts    []part // the children that are in the text, in order
	added    []part // members that follow them; from is not used
	end      int    // position in text before which they belong
}

// part is a child and its place in the text.
type part struct {
	from, to int
	name     string // JSON, of one that was added
	node     *node
}

func (n *node) isObject() bool { return n.text[jsontext.Skip(n.text, 0, ' ')] == '{' }

// open finds the children of a node that places name.
func (t *Tree) open(n *node) {
	if n.children != nil {
		return
	}
	n.children = make(map[jsonpath.Step]*node)
	at := jsontext.Skip(n.text, 0, ' ')
	if c := n.text[at]; c != '{' && c != '[' {
		return
	}
	t.Read += len(n.text)
	wanted := n.wanted(at)
	w := jsontext.WalkAt(n.text, at)
	for i := 0; w.Next(); i++ {
		s := jsonpath.Step{Element: w.Array, Index: i}
		if !w.Array {
			s = jsonpath.Step{Name: w.Name()}
		}
		if same := wanted[s]; same != nil {
			child := &node{text: w.Value(), size: len(w.Value())}
			for _, s := range same {
				child.places = append(child.places, n.placesAt(s)...)
				n.children[s] = child // of a repeated name the last one counts
			}
			n.parts = append(n.parts, part{from: w.ValueFrom, to: w.Pos, node: child})
		}
	}
	n.end = lastNonSpace(n.text, strings.LastIndexAny(n.text, "}]")) + 1
}

// wanted returns the steps that places have in the object or array at a position. Steps from the end are
// among those to the element that they mean.
func (n *node) wanted(at int) map[jsonpath.Step][]jsonpath.Step {
	wanted, length := make(map[jsonpath.Step][]jsonpath.Step), -1
	for _, p := range n.places {
		for s := range p.next {
			means := s
			if s.Index < 0 && n.text[at] == '[' {
				if length < 0 {
					length = Length(n.text[at:])
				}
				means.Index = max(s.Index+length, 0)
			}
			if !slices.Contains(wanted[means], s) {
				wanted[means] = append(wanted[means], s)
			}
		}
	}
	return wanted
}

// placesAt returns the places of a child.
func (n *node) placesAt(s jsonpath.Step) (places []*Places) {
	for _, p := range n.places {
		if next := p.next[s]; next != nil {
			places = append(places, next)
		}
	}
	return places
}

// add adds a member at the end of an object.
func (n *node) add(s jsonpath.Step, value string) {
	child := &node{text: value, size: len(value), places: n.placesAt(s)}
	name := string(append(jsontext.AppendString(nil, s.Name), ':'))
	if n.text[n.end-1] != '{' || len(n.added) > 0 {
		name = "," + name
	}
	n.children[s] = child
	n.added = append(n.added, part{name: name, node: child})
	n.size += len(name) + len(value)
}

// appendTo appends the text with all changes.
func (n *node) appendTo(out []byte) []byte {
	if len(n.parts)+len(n.added) == 0 {
		return append(out, n.text...)
	}
	from := 0
	for _, p := range n.parts {
		out = p.node.appendTo(append(out, n.text[from:p.from]...))
		from = p.to
	}
	out = append(out, n.text[from:n.end]...)
	for _, p := range n.added {
		out = p.node.appendTo(append(out, p.name...))
	}
	return append(out, n.text[n.end:]...)
}
