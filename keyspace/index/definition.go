package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mayfly/query"
)

// Limits of indexes.
const (
	MaxIndexes = 16 // of a container
	MaxPaths   = 4  // of an index
)

// maxElements is the number of elements of an array up to which each has a key. A longer array has one key,
// which every range of the index includes: the document decides. So one write of a document makes a bounded
// number of changes under the lock of its partition.
const maxElements = 1000

// Definition says what an index is over. It is comparable by [Definition.Equal] and immutable.
type Definition struct {
	paths    [][]string // names of members
	elements bool       // of each element of the array at the only path
	geo      bool       // of the GeoJSON point at the only path
}

// elementsToken at the end of a path means each element of the array there.
const elementsToken = "[]"

// Define returns the index over JSON Pointers, over points if geo. A path that ends with /[] is each element
// of an array. The error is one line.
func Define(pointers []string, geo bool) (d Definition, err error) {
	if len(pointers) == 0 || len(pointers) > MaxPaths {
		return d, fmt.Errorf("%d paths: legal are 1 to %d", len(pointers), MaxPaths)
	}
	d.geo = geo
	for _, pointer := range pointers {
		names, err := namesOf(pointer)
		if err != nil {
			return d, err
		}
		if names[len(names)-1] == elementsToken {
			d.elements = true
			names = names[:len(names)-1]
		}
		if len(names) == 0 || slices.Contains(names, elementsToken) {
			return d, fmt.Errorf("invalid path %q: legal is [] at the end, after the path of an array", pointer)
		}
		if slices.ContainsFunc(d.paths, func(there []string) bool { return slices.Equal(there, names) }) {
			return d, fmt.Errorf("path %q is given twice", pointer)
		}
		if names[0] != timeMember && strings.HasPrefix(names[0], "_") && slices.Contains([]string{"_id", "_etag", "_ttl", "_expiresat", "_ttlleft"}, names[0]) ||
			names[0] == timeMember && len(names) > 1 {
			return d, fmt.Errorf("invalid path %q: of the server's members only /_ts is legal", pointer)
		}
		d.paths = append(d.paths, names)
	}
	if len(d.paths) > 1 && (d.elements || d.geo) {
		return d, fmt.Errorf("%d paths of an index over elements of an array or over points: legal is 1", len(d.paths))
	}
	if d.elements && d.geo {
		return d, errors.New("an index over points takes the path of a point, not of elements")
	}
	return d, nil
}

// timeMember is the pseudo member of the last write, in seconds.
const timeMember = "_ts"

// namesOf reads a JSON Pointer.
func namesOf(pointer string) (names []string, err error) {
	if pointer == "" || pointer[0] != '/' {
		return nil, fmt.Errorf("invalid path %q: legal are JSON pointers, /member/member", pointer)
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		switch {
		case strings.IndexByte(token, 0) >= 0:
			return nil, fmt.Errorf("invalid path %q: it has a zero byte", pointer)
		case token == "*" || token == "?" || token == "**":
			return nil, fmt.Errorf("invalid path %q: an index is over members by name, like /status or /address/city", pointer)
		case token != "" && strings.Trim(token, "0123456789") == "":
			return nil, fmt.Errorf("invalid path %q: an index is over members, not over an element; /tags/[] is over all elements of an array", pointer)
		case strings.HasSuffix(token, ",") || strings.HasSuffix(token, " ") || strings.HasSuffix(token, " GEO"):
			return nil, fmt.Errorf("invalid path %q: several paths are several arguments, as in INDEX.CREATE orders /status /total", pointer)
		}
		names = append(names, unescapeToken.Replace(token))
	}
	return names, nil
}

// The tokens of a JSON Pointer write ~ as ~0 and / as ~1.
var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// Pointers returns the paths as JSON Pointers.
func (d *Definition) Pointers() (pointers []string) {
	for _, names := range d.paths {
		var out strings.Builder
		for _, name := range names {
			out.WriteString("/" + escapeToken.Replace(name))
		}
		if d.elements {
			out.WriteString("/" + elementsToken)
		}
		pointers = append(pointers, out.String())
	}
	return pointers
}

// Geo reports whether the index is over points.
func (d *Definition) Geo() bool { return d.geo }

// Timed reports whether the index is over the time of the last write.
func (d *Definition) Timed() bool {
	return slices.ContainsFunc(d.paths, func(names []string) bool { return names[0] == timeMember })
}

// Equal reports whether two definitions are of the same index.
func (d *Definition) Equal(other *Definition) bool {
	return d.geo == other.geo && slices.Equal(d.Pointers(), other.Pointers())
}

// String returns the paths, with " GEO" of an index over points.
func (d *Definition) String() string {
	s := strings.Join(d.Pointers(), " ")
	if d.geo {
		s += " GEO"
	}
	return s
}

// Reader reads the keys of a document for several indexes, in one pass over its text. It is not safe for
// concurrent use.
type Reader struct {
	definitions []Definition
	extractor   *query.Extractor
	at          [][]int // by index and path: the number of the path in extractor; timePath for /_ts
	values      []query.Value
}

// timePath stands for /_ts.
const timePath = -1

// NewReader returns a reader of the keys of definitions.
func NewReader(definitions []Definition) *Reader {
	r := &Reader{definitions: definitions}
	var paths [][]string
	for _, d := range definitions {
		at := make([]int, len(d.paths))
		for i, names := range d.paths {
			if at[i] = timePath; names[0] == timeMember {
				continue
			}
			at[i] = slices.IndexFunc(paths, func(there []string) bool { return slices.Equal(there, names) })
			if at[i] < 0 {
				at[i] = len(paths)
				paths = append(paths, names)
			}
		}
		r.at = append(r.at, at)
	}
	r.extractor = query.NewExtractor(paths)
	return r
}

// Load makes a document the current one: its text, and the time of its last write in ms. It stays unchanged
// until the next Load.
func (r *Reader) Load(text string, ts int64) *Reader {
	r.extractor.Load(text)
	r.values = append(r.values[:0], query.NumberValue(float64(ts/1000)))
	return r
}

// Same reports whether the current documents of two readers of the same definitions have the same text at the
// paths of an index. Then they have the same keys.
func (r *Reader) Same(other *Reader, number int) bool {
	for _, at := range r.at[number] {
		if at == timePath {
			if r.values[0].Float() != other.values[0].Float() {
				return false
			}
		} else if r.extractor.Text(at) != other.extractor.Text(at) {
			return false
		}
	}
	return true
}

// Keys appends the keys of the current document in an index: none, one, or one for each different element of
// an array of up to 1000.
func (r *Reader) Keys(number int, keys []Key) []Key {
	d, at := &r.definitions[number], r.at[number]
	value := func(i int) query.Value {
		if at[i] == timePath {
			return r.values[0]
		}
		return r.extractor.Value(at[i])
	}
	switch {
	case d.geo:
		if lon, lat, ok := value(0).Position(); ok {
			keys = append(keys, cellKey(cellOf(lon, lat)))
		}
	case d.elements:
		from, elements := len(keys), 0
		value(0).Elements(func(v query.Value) bool {
			elements++
			if k, ok := KeyOf(v); ok {
				keys = append(keys, k)
			}
			return elements <= maxElements
		})
		if elements > maxElements {
			return append(keys[:from], manyElements)
		}
		compare := func(a, b Key) int { return a.compare(&b) }
		slices.SortFunc(keys[from:], compare)
		different := slices.CompactFunc(keys[from:], func(a, b Key) bool { return compare(a, b) == 0 })
		keys = keys[:from+len(different)]
	case len(at) == 1:
		if k, ok := KeyOf(value(0)); ok {
			keys = append(keys, k)
		}
	default:
		values := r.values[1:]
		for i := range at {
			values = append(values, value(i))
		}
		if k, ok := KeyOf(values...); ok {
			keys = append(keys, k)
		}
	}
	return keys
}
