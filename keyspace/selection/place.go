package selection

import (
	"encoding/binary"

	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
)

// Place is where a query goes on in an index.
type Place struct {
	Partition int         // that is read; an ordered plan reads all at a time
	Bound     index.Bound // behind the last entry
	Any       bool        // false for the beginning
	at        bool        // at the bound, not behind; cursors have no such place

	// Values are those of the last document, as [index.AppendValues] writes them, if its key ties with
	// others: see [index.Definition.Run].
	Values string
}

// Text returns the place for a cursor. [ParsePlace] reads it.
func (p Place) Text() string {
	out := binary.AppendUvarint(nil, uint64(p.Partition))
	if !p.Any {
		return string(append(out, 0))
	}
	if p.Values != "" {
		out = append(append(out, 2), p.Values...)
	} else {
		out = append(out, 1)
	}
	return string(append(p.Bound.Key.AppendBinary(out), p.Bound.ID...))
}

// ParsePlace reads what [Place.Text] has written.
func ParsePlace(text string) (p Place, ok bool) {
	n, size := binary.Uvarint([]byte(text))
	if size <= 0 || len(text) == size || n >= record.MaxPartitions {
		return p, false
	}
	p.Partition = int(n)
	rest := []byte(text[size+1:])
	switch text[size] {
	case 1:
	case 2:
		values, behind, ok := index.ParseValues(rest)
		if !ok {
			return p, false
		}
		p.Values, rest = string(index.AppendValues(nil, values)), behind
	default:
		return p, len(rest) == 0
	}
	p.Any = true
	k, id, ok := index.ParseKey(rest)
	p.Bound = index.Bound{Key: k, ID: string(id)}
	return p, ok
}

// EndPlace is where a query goes on in the order of ends.
type EndPlace struct {
	End int64  // ms, of the last document
	ID  string // of the last document
	Any bool   // false for the beginning
}

// Text returns the place for a cursor. [ParseEndPlace] reads it.
func (p EndPlace) Text() string { return string(binary.AppendVarint(nil, p.End)) + p.ID }

// ParseEndPlace reads what [EndPlace.Text] has written.
func ParseEndPlace(text string) (p EndPlace, ok bool) {
	end, size := binary.Varint([]byte(text))
	if size <= 0 {
		return p, false
	}
	return EndPlace{End: end, ID: text[size:], Any: true}, true
}
