package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
)

// documentReader reads documents of other systems into the container that an option names: an array of JSON
// objects, or an object a line.
type documentReader struct{ *importer }

// read imports all documents of a file.
func (r *documentReader) read(in *bufio.Reader) error {
	first, err := firstByte(in)
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case first != '[':
		return r.readLines(in)
	}
	r.unit = "item"
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return err
	}
	for n := 1; d.More() && r.stopped == nil; n++ {
		at := place{item: n}
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return fmt.Errorf("%v: %w", at, err)
		}
		r.status.Count(n, "items")
		if err := r.check(at, r.document(at, text)); err != nil {
			return err
		}
	}
	if r.stopped != nil {
		return r.stopped
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the array does not end: %w", err)
	}
	return nil
}

// firstByte skips a byte order mark and white space, and returns the byte after them without reading it.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	for {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c, in.UnreadByte()
		}
	}
}

// document imports one document.
func (r *documentReader) document(at place, text []byte) error {
	e, err := readDocument(bytes.TrimSpace(text), r.Clock.Now(), r.keepTimes)
	if err != nil {
		return err
	}
	e.container = r.into
	err = r.item(at, e)
	if missing, ok := errors.AsType[missingContainer](err); ok {
		return missing.withoutTTL()
	}
	return err
}

// dropCosmos removes what Cosmos DB adds to an item, besides _ts and _etag.
var dropCosmos, _ = jsondoc.ParseMergePatch(`{"_rid":null,"_self":null,"_attachments":null}`)

// readDocument reads a document of Cosmos DB, of MongoDB or of any other origin. An item of Cosmos DB, which
// has a _rid, was last written at its _ts, and so was any if the import is timed: a query of Cosmos DB may
// leave _rid out. Others count as written now (ms).
func readDocument(text []byte, now int64, timed bool) (e entry, err error) {
	if bytes.Contains(text, []byte(`"$`)) {
		if text, err = plainJSON(text); err != nil {
			return e, err
		}
	}
	doc, err := jsondoc.Parse(string(text), jsondoc.MaxSize)
	if err != nil {
		return e, err
	}
	e.item = keyspace.Item{Kind: keyspace.Document, TS: now}
	e.fresh = true
	values := jsondoc.Values(string(text), []jsondoc.Pointer{"/id", "/_id", "/_rid", "/_ts"})
	id := values[1]
	cosmos := values[2] != ""
	if id == "" || cosmos {
		id = values[0]
	}
	if ts, err := strconv.ParseInt(values[3], 10, 64); err == nil && (cosmos || timed) && ts > 0 && ts <= math.MaxInt64/1000 {
		e.item.TS, e.fresh, e.keepsLeft = ts*1000, false, true
		if doc, err = dropCosmos.Apply(doc.JSON, jsondoc.MaxSize); err != nil {
			return e, err
		}
	}
	if e.id, err = idText(id); err != nil {
		return e, err
	}
	e.item.Body, e.item.ExpireAt, e.ignored = doc.JSON, expiry.ExpireAt(e.item.TS, doc.TTL), doc.TTLErr
	return e, nil
}

// idText returns the id that a JSON value gives.
func idText(value string) (id string, err error) {
	switch {
	case value == "":
		return "", errors.New("there is no id: legal is a member id or _id, once")
	case value[0] == '"':
		err = json.Unmarshal([]byte(value), &id)
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
		id = value
	default:
		err = fmt.Errorf("invalid id %s: legal are strings and numbers", expiry.Quote(value))
	}
	switch {
	case err != nil:
	case id == "":
		err = errors.New("the id is empty")
	case len(id) > keyspace.MaxIDLength:
		err = fmt.Errorf("an id of %d bytes: legal are at most %d", len(id), keyspace.MaxIDLength)
	}
	return id, err
}

// plainJSON converts MongoDB's extended JSON, relaxed or canonical, to plain JSON. Numbers become numbers,
// ids of objects and UUIDs strings, binary data base64, and dates text as in ISO 8601. What JSON cannot
// say stays as it is.
func plainJSON(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	c := extendedJSON{d: d}
	if err := c.value(0); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one object in the line")
	}
	return c.out.buf.Bytes(), nil
}

// extendedJSON copies a JSON text from d to out and converts it.
type extendedJSON struct {
	d   *json.Decoder
	out lineWriter
}

// value converts one value at a level of nesting.
func (c *extendedJSON) value(level int) error {
	token, err := c.d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		if level > jsondoc.MaxNesting {
			return fmt.Errorf("nested deeper than %d levels", jsondoc.MaxNesting)
		}
		if token == '[' {
			return c.array(level)
		}
		return c.object(level)
	case string:
		c.out.quote(token)
	case json.Number:
		c.out.buf.WriteString(token.String())
	case bool:
		c.out.buf.WriteString(strconv.FormatBool(token))
	default:
		c.out.buf.WriteString("null")
	}
	return nil
}

func (c *extendedJSON) array(level int) error {
	c.out.buf.WriteByte('[')
	for n := 0; c.d.More(); n++ {
		if n > 0 {
			c.out.buf.WriteByte(',')
		}
		if err := c.value(level + 1); err != nil {
			return err
		}
	}
	c.out.buf.WriteByte(']')
	_, err := c.d.Token()
	return err
}

// object converts an object. One that stands for a value of MongoDB is replaced by the value.
func (c *extendedJSON) object(level int) error {
	start, from, members := c.out.buf.Len(), 0, 0
	var name string
	c.out.buf.WriteByte('{')
	for ; c.d.More(); members++ {
		token, err := c.d.Token()
		if err != nil {
			return err
		}
		if members > 0 {
			c.out.buf.WriteByte(',')
		}
		name, _ = token.(string)
		c.out.quote(name)
		c.out.buf.WriteByte(':')
		from = c.out.buf.Len()
		if err := c.value(level + 1); err != nil {
			return err
		}
	}
	if members == 1 && strings.HasPrefix(name, "$") {
		if value, ok := fromExtended(name, string(c.out.buf.Bytes()[from:])); ok {
			c.out.buf.Truncate(start)
			c.out.buf.WriteString(value)
			_, err := c.d.Token()
			return err
		}
	}
	c.out.buf.WriteByte('}')
	_, err := c.d.Token()
	return err
}

// fromExtended returns the plain value of the object {name: value}. ok is false if there is none.
func fromExtended(name, value string) (plain string, ok bool) {
	text, isText := "", json.Unmarshal([]byte(value), &plain) == nil && value != "null"
	if isText {
		text = plain
	}
	switch name {
	case "$oid", "$uuid", "$symbol":
		return value, isText
	case "$numberInt", "$numberLong":
		_, err := strconv.ParseInt(text, 10, 64)
		return text, err == nil && json.Valid([]byte(text))
	case "$numberDouble", "$numberDecimal":
		if !json.Valid([]byte(text)) || !strings.ContainsAny(text[len(text)-1:], "0123456789") {
			return value, isText // NaN, Infinity
		}
		return text, true
	case "$date":
		ms, err := strconv.ParseInt(value, 10, 64)
		if year := time.UnixMilli(ms).UTC().Year(); err == nil && year >= 0 && year <= 9999 {
			return time.UnixMilli(ms).UTC().Format(`"2006-01-02T15:04:05.000Z"`), true
		}
		return value, isText
	case "$binary":
		values := jsondoc.Values(`{"b":`+value+`}`, []jsondoc.Pointer{"/b/base64", "/b/subType"})
		return values[0], !slices.Contains(values, "")
	case "$undefined":
		return "null", true
	}
	return "", false
}
