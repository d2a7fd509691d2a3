package page

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"mayfly/query"
)

// Cursor is where a page begins.
type Cursor struct {
	Position string // of the documents, as the caller gave it; "" for the first one
	Offset   int64  // rows to skip
	Limit    int64  // rows to come; -1 for all
	Moment   int64  // at which the time left counts, ms since 1970; 0 for the present

	key []query.Value // of the last row, if rows are sorted
	id  string
}

// Sorted reports whether the page goes on behind a row, not at a position of the documents.
func (c Cursor) Sorted() bool { return c.key != nil }

// ErrCursor is the error of a text that is no cursor.
var ErrCursor = errors.New("invalid cursor")

var errForeignCursor = errors.New("invalid cursor: it belongs to another query")

// ParseCursor reads a cursor of a query. "0" is the first page.
func ParseCursor(q *query.Query, text string) (Cursor, error) {
	if text == "0" {
		return Cursor{Offset: q.Offset(), Limit: q.Limit()}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < 8 {
		return Cursor{}, ErrCursor
	}
	if binary.LittleEndian.Uint64(data) != q.Hash() {
		return Cursor{}, errForeignCursor
	}
	d := cursorReader{data: data[8:]}
	c := Cursor{Offset: int64(d.uint()), Limit: int64(d.uint()) - 1, Position: d.text()}
	if n := d.uint(); n > 0 {
		if n-1 > query.MaxPaths {
			return Cursor{}, ErrCursor
		}
		c.key = []query.Value{}
		for range n - 1 {
			c.key = append(c.key, d.value())
		}
		c.id = d.text()
	}
	if q.Needs().Ends && len(d.data) > 0 { // cursors of older versions have none
		c.Moment = int64(d.uint())
	}
	if d.bad || len(d.data) > 0 || c.Offset < 0 || c.Moment < 0 || c.Offset > q.Offset() || c.Limit < -1 || (c.Limit < 0) != (q.Limit() < 0) || c.Limit > q.Limit() || c.key != nil && len(c.key) != max(len(q.Directions()), q.GroupPaths()) {
		return Cursor{}, ErrCursor
	}
	return c, nil
}

// encode returns the text of a cursor of a query.
func (c *Cursor) encode(q *query.Query) string {
	out := binary.LittleEndian.AppendUint64(nil, q.Hash())
	out = binary.AppendUvarint(out, uint64(c.Offset))
	out = binary.AppendUvarint(out, uint64(c.Limit+1))
	out = appendText(out, c.Position)
	if c.key == nil {
		out = append(out, 0)
	} else {
		out = binary.AppendUvarint(out, uint64(len(c.key))+1)
		for _, v := range c.key {
			out = v.AppendBinary(out)
		}
		out = appendText(out, c.id)
	}
	if q.Needs().Ends {
		out = binary.AppendUvarint(out, uint64(c.Moment))
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

func (d *cursorReader) value() query.Value {
	v, rest, ok := query.ParseBinary(d.data)
	d.data, d.bad = rest, d.bad || !ok
	return v
}
