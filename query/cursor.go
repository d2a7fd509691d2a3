package query

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
)

// Cursor is where a page begins.
type Cursor struct {
	Position string // of the documents, as the caller gave it; "" for the first one
	Offset   int64  // rows to skip
	Limit    int64  // rows to come; -1 for all

	key []Value // of the last row, if rows are sorted
	id  string
}

// Sorted reports whether the page goes on behind a row, not at a position of the documents.
func (c Cursor) Sorted() bool { return c.key != nil }

var (
	errForeignCursor = errors.New("invalid cursor: it belongs to another query")
	errCursor        = errors.New(`invalid cursor: legal are "0" and what the page before returned`)
)

// Scope makes the cursors of the query legal only for one collection of documents, by its name. It is called once, before
// the query is used.
func (q *Query) Scope(name string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", q.hash, name)
	q.hash = h.Sum64()
}

// Cursor reads a cursor. "0" and "" are the first page.
func (q *Query) Cursor(text string) (Cursor, error) {
	if text == "" || text == "0" {
		return Cursor{Offset: q.offset, Limit: q.limit}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < 8 {
		return Cursor{}, errCursor
	}
	if binary.LittleEndian.Uint64(data) != q.hash {
		return Cursor{}, errForeignCursor
	}
	d := cursorReader{data: data[8:]}
	c := Cursor{Offset: int64(d.uint()), Limit: int64(d.uint()) - 1, Position: d.text()}
	if n := d.uint(); n > 0 {
		if n-1 > MaxPaths {
			return Cursor{}, errCursor
		}
		c.key = []Value{}
		for range n - 1 {
			c.key = append(c.key, d.value())
		}
		c.id = d.text()
	}
	if d.bad || len(d.data) > 0 || c.Offset < 0 || c.Offset > q.offset || c.Limit < -1 || (c.Limit < 0) != (q.limit < 0) || c.Limit > q.limit || c.key != nil && len(c.key) != max(len(q.orderBy), len(q.groupBy)) {
		return Cursor{}, errCursor
	}
	return c, nil
}

// encode returns the text of a cursor.
func (q *Query) encode(c Cursor) string {
	out := binary.LittleEndian.AppendUint64(nil, q.hash)
	out = binary.AppendUvarint(out, uint64(c.Offset))
	out = binary.AppendUvarint(out, uint64(c.Limit+1))
	out = appendText(out, c.Position)
	if c.key == nil {
		out = append(out, 0)
	} else {
		out = binary.AppendUvarint(out, uint64(len(c.key))+1)
		for _, v := range c.key {
			out = append(out, byte(v.kind))
			switch v.kind {
			case Bool, Number:
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v.num))
			case String:
				out = appendText(out, v.text)
			}
		}
		out = appendText(out, c.id)
	}
	return base64.RawURLEncoding.EncodeToString(out)
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// cursorReader reads the bytes of a cursor.
type cursorReader struct {
	data []byte
	bad  bool
}

func (d *cursorReader) uint() uint64 {
	n, size := binary.Uvarint(d.data)
	if size <= 0 {
		d.bad, d.data = true, nil
		return 0
	}
	d.data = d.data[size:]
	return n
}

func (d *cursorReader) take(n uint64) []byte {
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, nil
		return nil
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken
}

func (d *cursorReader) text() string { return string(d.take(d.uint())) }

func (d *cursorReader) value() Value {
	kind := d.take(1)
	if d.bad || Kind(kind[0]) > Object {
		d.bad = true
		return Value{}
	}
	v := Value{kind: Kind(kind[0])}
	switch v.kind {
	case Bool, Number:
		if bits := d.take(8); !d.bad {
			v.num = math.Float64frombits(binary.LittleEndian.Uint64(bits))
		}
	case String:
		v.text = d.text()
	}
	return v
}
