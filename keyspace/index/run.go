package index

import (
	"encoding/binary"

	"mayfly/query"
)

// Run returns the keys that tie with a key up to the first string that it cuts: only the documents tell the
// order of their items. ok is false if the key has no string that is cut.
func (d *Definition) Run(k *Key) (run Span, ok bool) {
	switch {
	case len(k.text) < MaxText:
		return run, false
	case len(d.paths) == 1:
		return Span{Low: Bound{Key: *k}, High: Bound{Key: *k, After: true}}, k.kind == query.String
	}
	for i := 0; i < len(k.text); {
		kind := query.Kind(k.text[i] - 1)
		i++
		switch kind {
		case query.Bool, query.Number:
			i += 8
		case query.String:
			size := 0
			for ; i+1 < len(k.text) && (k.text[i] != 0 || k.text[i+1] != 0); i++ {
				if size++; k.text[i] == 0 {
					i++ // a zero byte of the string
				}
			}
			if i += 2; i <= len(k.text) && size >= MaxText {
				begin := k.text[:i]
				return Span{Low: Bound{Key: k.with([]byte(begin))}, High: Bound{Key: k.with([]byte(begin + highest))}}, true
			}
		}
	}
	return run, false
}

// Holds reports whether a key is in the span.
func (s *Span) Holds(k *Key) bool {
	at := Bound{Key: *k}
	return at.Compare(&s.Low) >= 0 && at.Compare(&s.High) < 0
}

// Values appends the values of the current document at the paths of an index.
func (r *Reader) Values(number int, values []query.Value) []query.Value {
	for _, at := range r.at[number] {
		if at == timePath {
			values = append(values, r.values[0])
		} else {
			values = append(values, r.extractor.Value(at))
		}
	}
	return values
}

// AppendValues appends values for a cursor. [ParseValues] reads them.
func AppendValues(out []byte, values []query.Value) []byte {
	out = binary.AppendUvarint(out, uint64(len(values)))
	for _, v := range values {
		out = v.AppendBinary(out)
	}
	return out
}

// ParseValues reads what [AppendValues] has written, and returns the rest of the data.
func ParseValues(data []byte) (values []query.Value, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > MaxPaths {
		return nil, nil, false
	}
	data = data[size:]
	for range n {
		v, rest, ok := query.ParseBinary(data)
		if !ok {
			return nil, nil, false
		}
		values, data = append(values, v), rest
	}
	return values, data, true
}
