package query

import (
	"strings"

	"mayfly/json/jsontext"
	"mayfly/query/geo"
)

// Extractor reads the values at paths in one document after the other, as queries read them. It is not safe
// for concurrent use.
type Extractor struct {
	e    *Evaluator
	refs []pathRef
	doc  Document
}

// NewExtractor returns an extractor of paths of members; each is a list of names.
func NewExtractor(paths [][]string) *Extractor {
	q := &Query{}
	x := &Extractor{}
	for i, names := range paths {
		p := make(path, len(names))
		for k, name := range names {
			p[k] = step{name, -1}
		}
		q.paths = append(q.paths, p)
		x.refs = append(x.refs, pathRef{path: p, slot: i, group: -1})
	}
	x.e = q.Evaluator()
	return x
}

// Load makes a document the current one. It stays unchanged until the next Load.
func (x *Extractor) Load(text string) {
	x.doc.Text = text
	x.e.Load(&x.doc)
}

// Value returns the value at a path of the current document.
func (x *Extractor) Value(path int) Value { return x.refs[path].eval(x.e) }

// Text returns the JSON at a path of the current document; "" is undefined.
func (x *Extractor) Text(path int) string { return x.e.text(path) }

// Elements calls visit with each element of an array until it returns false. Other values have none.
func (v Value) Elements(visit func(Value) (more bool)) {
	if v.kind != Array {
		return
	}
	for w := jsontext.WalkAt(v.text, 0); w.Next(); {
		if !visit(ValueOf(w.Value())) {
			return
		}
	}
}

// Position returns the longitude and latitude of a GeoJSON point in degrees.
func (v Value) Position() (lon, lat float64, ok bool) {
	if v.kind != Object {
		return 0, 0, false
	}
	p, ok := geo.Point(v.text)
	return p.Lon, p.Lat, ok
}

// Clone returns the value with memory of its own.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Short returns a value as JSON for EXPLAIN, cut if it is long.
func Short(v Value) string {
	const most = 40
	text := string(v.AppendJSON(nil))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
