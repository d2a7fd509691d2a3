package index

import (
	"encoding/binary"
	"math"
	"strings"

	"mayfly/query"
)

// Key is what a tree orders an item by, under its id. Keys of one value and of several are in the order of
// values: see [query.Value].
type Key struct {
	kind   query.Kind // of the first value
	prefix uint64     // the first eight bytes of its order
	text   string     // the whole key, if it does not fit into the prefix
	Cut    bool       // the key does not tell the value: the document decides
}

// MaxText is the size in bytes of a string from which on a key holds no more. Such a key is cut.
const MaxText = 256

// manyElements is the key of an array of more than maxElements. It is below all others: no value of a key is
// undefined.
var manyElements = Key{kind: query.Undefined, Cut: true}

// KeyOf returns the key of values, one for each path of the index. ok is false if the first is undefined:
// such items are in no index.
func KeyOf(values ...query.Value) (k Key, ok bool) {
	first := values[0]
	if first.Kind() == query.Undefined {
		return k, false
	}
	k.kind = first.Kind()
	fits := true
	switch k.kind {
	case query.Bool, query.Number:
		k.prefix = orderOf(first.Float())
	case query.String:
		text := first.Text()
		var bytes [8]byte
		copy(bytes[:], text)
		k.prefix = binary.BigEndian.Uint64(bytes[:])
		fits = len(text) <= len(bytes) && strings.IndexByte(text, 0) < 0
	case query.Array, query.Object:
		k.Cut = true
	}
	if len(values) == 1 {
		if !fits {
			k.text, k.Cut = cut(first.Text())
		}
		return k, true
	}
	var out []byte
	for _, v := range values {
		var wasCut bool
		out, wasCut = appendOrdered(out, v)
		k.Cut = k.Cut || wasCut
	}
	k.text = string(out)
	return k, true
}

// orderOf returns the bits of a number in the order of numbers.
func orderOf(n float64) uint64 {
	if n == 0 {
		n = 0 // -0 equals 0
	}
	bits := math.Float64bits(n)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

// cut returns the part of a string that a key holds, and whether longer strings have the same. So keys with
// equal texts are cut alike.
func cut(text string) (string, bool) {
	if len(text) < MaxText {
		return text, false
	}
	return text[:MaxText], true
}

// appendOrdered appends bytes that are in the order of values, whatever follows.
func appendOrdered(out []byte, v query.Value) (_ []byte, wasCut bool) {
	out = append(out, byte(v.Kind())+1)
	switch v.Kind() {
	case query.Bool, query.Number:
		out = binary.BigEndian.AppendUint64(out, orderOf(v.Float()))
	case query.String:
		var text string
		text, wasCut = cut(v.Text())
		for i := range len(text) {
			if out = append(out, text[i]); text[i] == 0 {
				out = append(out, 0xFF)
			}
		}
		out = append(out, 0, 0)
	case query.Array, query.Object:
		wasCut = true
	}
	return out, wasCut
}

// Equal reports whether two keys of the same index are equal.
func (k *Key) Equal(other *Key) bool { return k.compare(other) == 0 }

// compare returns the order of two keys of the same index.
func (k *Key) compare(other *Key) int {
	switch {
	case k.kind != other.kind:
		return int(k.kind) - int(other.kind)
	case k.prefix < other.prefix:
		return -1
	case k.prefix > other.prefix:
		return 1
	}
	return strings.Compare(k.text, other.text)
}

// AppendBinary appends the key for a cursor. [ParseKey] reads it.
func (k *Key) AppendBinary(out []byte) []byte {
	out = binary.BigEndian.AppendUint64(append(out, byte(k.kind)), k.prefix)
	return append(binary.AppendUvarint(out, uint64(len(k.text))), k.text...)
}

// ParseKey reads what [Key.AppendBinary] has written, and returns the rest of the data.
func ParseKey(data []byte) (k Key, rest []byte, ok bool) {
	if len(data) < 9 || query.Kind(data[0]) > query.Object {
		return k, nil, false
	}
	k.kind, k.prefix = query.Kind(data[0]), binary.BigEndian.Uint64(data[1:])
	data = data[9:]
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return k, nil, false
	}
	k.text = string(data[size : size+int(n)])
	return k, data[size+int(n):], true
}
