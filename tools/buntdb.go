package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/keyspace"
)

// A database of an export is an ordinary buntdb file. An item is under the key "container/id": the
// JSON of a document, the bytes of a plain key. No name of a container holds a slash, so that the id is
// all that follows the first one. Keys that begin with a slash describe the items:
//
//	/mayfly/container/<name>     a container's line of an export (line.go)
//	/mayfly/items/<name>/<part>  an array of notes, one for each of at most notesPerPart items
//	/mayfly/format               {"version":1,"complete":true}; complete is false until the export ends
//
// An end that is a moment is buntdb's TTL, too, rounded up to its whole seconds. An item whose end
// depends on its container's default has none, and neither has one in a container that is off.

const (
	ownPrefix       = "/mayfly/"
	formatKey       = ownPrefix + "format"
	containerPrefix = ownPrefix + "container/"
	itemsPrefix     = ownPrefix + "items/"

	formatVersion = 1
	notesPerPart  = 1000
)

// formatNote is the value of formatKey.
type formatNote struct {
	Version  int  `json:"version"`
	Complete bool `json:"complete"`
}

// The types of an item, as TYPE names them.
const (
	typeDocument = "document"
	typeString   = "string"
)

// itemNote holds what the key and the value of an item do not tell.
type itemNote struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	ID64 *[]byte `json:"id64"`
	TS   int64   `json:"ts"`  // ms; 0 means unknown
	End  *int64  `json:"end"` // ms, -1 for never; absent if it follows from a document's ttl or the container
}

// itemKey is the key of an item.
func itemKey(container, id string) string { return container + "/" + id }

// splitItemKey is the reverse of itemKey.
func splitItemKey(key string) (container, id string, err error) {
	container, id, ok := strings.Cut(key, "/")
	if !ok {
		return "", "", errors.New("no container: legal keys are container/id")
	}
	return container, id, validName(container)
}

// note makes the note of an item. It is valid until the next call.
func (w *lineWriter) note(id string, it keyspace.Item) []byte {
	w.buf.Reset()
	if it.Kind == keyspace.Plain {
		w.buf.WriteString(`{"type":"` + typeString + `"`)
	} else {
		w.buf.WriteString(`{"type":"` + typeDocument + `"`)
	}
	w.text("id", id)
	if it.TS != 0 {
		w.number("ts", it.TS)
	}
	follows := expiry.Inherit
	if it.Kind == keyspace.Document {
		doc, _ := jsondoc.Parse(it.Body, jsondoc.MaxSize)
		follows = expiry.ExpireAt(it.TS, doc.TTL)
	}
	if it.ExpireAt != follows {
		w.number("end", it.ExpireAt)
	}
	w.buf.WriteByte('}')
	return w.buf.Bytes()
}

// readNotes reads the array of notes that is the value of a key.
func readNotes(text string, visit func(id string, n itemNote)) error {
	var notes []itemNote
	if err := readJSON(text, &notes); err != nil {
		return err
	}
	for _, n := range notes {
		id, err := either("id", n.ID, n.ID64)
		if err != nil {
			return err
		}
		if n.Type != typeDocument && n.Type != typeString {
			return fmt.Errorf("invalid type %s: legal are %s and %s", expiry.Quote(n.Type), typeDocument, typeString)
		}
		if n.TS < 0 || n.End != nil && *n.End < expiry.Never {
			return errors.New("a time is negative: legal are milliseconds since 1970")
		}
		visit(id, n)
	}
	return nil
}

// readJSON reads one value of JSON with no unknown members.
func readJSON(text string, into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more than one value")
	}
	return nil
}
