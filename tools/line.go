package tools

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"
)

// A line of an export is a JSON object. It describes a container
//
//	{"container":"orders","default":"10","mode":"strict","deadline":"expiresAt","hold":"case 4711","number":16,
//	 "created":…,"inherit_dead_to":…,"own_dead_to":…,"indexes":[["/status","/total"],["/loc","geo"]]}
//
// or an item, which is a document or a plain key:
//
//	{"container":"orders","id":"1001","ts":1700000000000,"ttl":30,"doc":{"item":"tea","ttl":30}}
//	{"container":"0","id":"greeting","ts":1700000000000,"end":1700000060000,"value":"hello"}
//
// doc holds a document byte for byte. A document with line breaks is a string in raw. Ids and values that are
// not UTF-8 are base64 in id64 and value64. ts is the time of the last write in ms. end is the item's own end
// in ms, -1 for never; without it the container's default rules. The end of a document that is an object
// follows from its member ttl, which the line repeats. If it follows from the container's deadline too, the
// line has both, or neither without a ttl. ignored is true if the member ttl is illegal: the container had
// accepted it, and it does not count.

// lineWriter makes lines. A line is valid until the next call.
type lineWriter struct{ buf bytes.Buffer }

func (w *lineWriter) begin(container string) {
	w.buf.Reset()
	w.buf.WriteString(`{"container":`)
	w.quote(container)
}

func (w *lineWriter) end() []byte {
	w.buf.WriteString("}\n")
	return w.buf.Bytes()
}

// quote writes a JSON string; the text must be UTF-8.
func (w *lineWriter) quote(text string) {
	e := json.NewEncoder(&w.buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string and a buffer: cannot fail
	w.buf.Truncate(w.buf.Len() - 1)
}

// text writes a member that is a string, in base64 under another name if it is not UTF-8.
func (w *lineWriter) text(name, text string) {
	if utf8.ValidString(text) {
		w.buf.WriteString(`,"` + name + `":`)
		w.quote(text)
		return
	}
	w.buf.WriteString(`,"` + name + `64":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`)
}

func (w *lineWriter) number(name string, n int64) {
	w.buf.WriteString(`,"` + name + `":`)
	w.buf.WriteString(strconv.FormatInt(n, 10))
}

// container makes the line of a container.
func (w *lineWriter) container(s keyspace.ContainerRecord) []byte {
	w.begin(s.Name)
	w.text("default", s.Policy.Default.String())
	w.text("mode", s.Policy.Mode.String())
	for _, m := range [][2]string{{"deadline", s.Policy.Deadline}, {"hold", s.Policy.Hold}} {
		if m[1] != "" {
			w.text(m[0], m[1])
		}
	}
	if s.DB >= keyspace.Databases { // the number of a database is its name
		w.number("number", int64(s.DB))
	}
	for _, m := range []struct {
		name string
		ms   int64
	}{{"created", s.Created}, {"inherit_dead_to", s.Policy.InheritDeadTo}, {"own_dead_to", s.Policy.OwnDeadTo}} {
		if m.ms != 0 {
			w.number(m.name, m.ms)
		}
	}
	w.indexes(s.Indexes)
	return w.end()
}

// indexes writes the definitions of indexes, each as its paths, with "geo" at the end of one over points.
func (w *lineWriter) indexes(list [][]string) {
	if len(list) == 0 {
		return
	}
	w.buf.WriteString(`,"indexes":[`)
	for i, paths := range list {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.buf.WriteByte('[')
		for j, path := range paths {
			if j > 0 {
				w.buf.WriteByte(',')
			}
			w.quote(path)
		}
		w.buf.WriteByte(']')
	}
	w.buf.WriteByte(']')
}

// collections are the members of lines that have the elements of a collection.
var collections = map[keyspace.Kind]string{
	keyspace.HashKind: "hash", keyspace.SetKind: "set", keyspace.ZSetKind: "zset", keyspace.ListKind: "list",
}

// item makes the line of an item. A ts of 0 means that it is unknown.
func (w *lineWriter) item(container, id string, it keyspace.Item) []byte {
	w.head(container, id, it)
	text := strings.TrimSpace(it.Body)
	switch {
	case it.Kind == keyspace.Plain:
		w.text("value", it.Body)
	case it.Kind.IsCollection():
		w.text(collections[it.Kind], it.Body)
	case len(text) == len(it.Body) && !strings.ContainsAny(text, "\r\n"):
		w.buf.WriteString(`,"doc":`)
		w.buf.WriteString(text)
	default:
		w.text("raw", it.Body)
	}
	return w.end()
}

// note makes the line of an item without its body: a plain key has an empty value.
func (w *lineWriter) note(container, id string, it keyspace.Item) []byte {
	w.head(container, id, it)
	if it.Kind == keyspace.Plain {
		w.text("value", "")
	}
	if it.Kind.IsCollection() {
		w.text(collections[it.Kind], "")
	}
	return w.end()
}

// head writes the members of an item's line before the body.
func (w *lineWriter) head(container, id string, it keyspace.Item) {
	w.begin(container)
	w.text("id", id)
	if it.TS != 0 {
		w.number("ts", it.TS)
	}
	end := expiry.Inherit // without a member end
	if it.Kind == keyspace.Document {
		doc, _ := jsondoc.ParseValue(it.Body, jsondoc.MaxSize)
		if doc.TTL != expiry.Absent {
			w.number("ttl", int64(doc.TTL))
		}
		if doc.TTLErr != nil {
			w.buf.WriteString(`,"ignored":true`)
		}
		end = expiry.ExpireAt(it.TS, doc.TTL)
	}
	if _, capped := expiry.Cap(it.ExpireAt); it.ExpireAt != end && !capped {
		w.number("end", it.ExpireAt)
	}
}

// line is a line of an export, read.
type line struct {
	Container string `json:"container"`

	Default       *string `json:"default"`
	Mode          string  `json:"mode"`
	Deadline      string  `json:"deadline"`
	Hold          string  `json:"hold"`
	Created       int64   `json:"created"`
	Number        *int64  `json:"number"`
	InheritDeadTo int64   `json:"inherit_dead_to"`
	OwnDeadTo     int64   `json:"own_dead_to"`

	Indexes [][]string `json:"indexes"`

	ID      *string         `json:"id"`
	ID64    *[]byte         `json:"id64"`
	TS      int64           `json:"ts"`
	TTL     *int64          `json:"ttl"`
	Ignored bool            `json:"ignored"`
	End     *int64          `json:"end"`
	Doc     json.RawMessage `json:"doc"`
	Raw     *string         `json:"raw"`
	Value   *string         `json:"value"`
	Value64 *[]byte         `json:"value64"`
	Hash    *string         `json:"hash"` // its fields as in the files: see package elements
	Hash64  *[]byte         `json:"hash64"`
	Set     *string         `json:"set"` // its members, likewise
	Set64   *[]byte         `json:"set64"`
	ZSet    *string         `json:"zset"` // its members with their scores, likewise
	ZSet64  *[]byte         `json:"zset64"`
	List    *string         `json:"list"` // its entries, likewise
	List64  *[]byte         `json:"list64"`
}

// readLine reads a line. The error says what is wrong with it.
func readLine(text []byte) (*line, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	l := new(line)
	if err := d.Decode(l); err != nil {
		return nil, fmt.Errorf("not a line of an export: %s; for documents of other systems, name a --container", notALine(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one object in the line")
	}
	if l.Container == "" {
		return nil, errors.New("not a line of an export: it has no member container; for documents of other systems, name a --container")
	}
	if err := validName(l.Container); err != nil {
		return nil, err
	}
	if l.Created < 0 || l.InheritDeadTo < 0 || l.OwnDeadTo < 0 || l.TS < 0 {
		return nil, errors.New("a time is negative: legal are milliseconds since 1970")
	}
	return l, nil
}

// notALine says what is wrong with a line in words of JSON: the decoder's own words name types of Go.
func notALine(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what, _, _ := strings.Cut(wrong.Value, " ") // "number 1.5"
		if wrong.Field == "" {
			return "legal are JSON objects, and this is of type " + what
		}
		return fmt.Sprintf("its member %s is not legal as %s", wrong.Field, what)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "an export has no member " + name
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return err.Error()
	}
	return "invalid JSON: " + strings.TrimPrefix(err.Error(), "json: ")
}

func validName(container string) error {
	if keyspace.ValidName(container) {
		return nil
	}
	return fmt.Errorf("invalid container name %s: legal are 1 to 255 of letters, digits, _ . : -", expiry.Quote(container))
}

// settings is a container to import.
type settings struct {
	keyspace.ContainerRecord
	hasMode bool // else it keeps the mode that it has
}

// differences says how a container that has a policy differs from the one to import; nil if it does not. How
// far past defaults have killed is no setting.
func (s *settings) differences(has expiry.Policy) (list []string) {
	add := func(name, is, wanted string) {
		if is != wanted {
			list = append(list, fmt.Sprintf("%s %s, not %s", name, is, wanted))
		}
	}
	add("TTL", has.Default.String(), s.Policy.Default.String())
	if s.hasMode {
		add("TTLMODE", has.Mode.String(), s.Policy.Mode.String())
	}
	add("DEADLINE", cmp.Or(has.Deadline, "none"), cmp.Or(s.Policy.Deadline, has.Deadline, "none"))
	add("HOLD", cmp.Or(has.Hold, "off"), cmp.Or(s.Policy.Hold, has.Hold, "off"))
	return list
}

// refusedBy returns the error of a container that exists for other settings, or nil. Recorded ends keep the
// deadline as it is.
func (s *settings) refusedBy(has expiry.Policy, recorded bool) error {
	deadline := cmp.Or(s.Policy.Deadline, has.Deadline)
	switch {
	case has.Hold != "":
		return unsettled((&keyspace.HeldError{Container: s.Name, Reason: has.Hold}).Error())
	case recorded && deadline != has.Deadline:
		return unsettled(fmt.Sprintf("container %q has items, whose ends are recorded: its deadline stays %q and does not become %q", s.Name, has.Deadline, deadline))
	}
	return nil
}

// state reads the line of a container. It returns false for the line of an item.
func (l *line) state() (s settings, ok bool, err error) {
	if l.Default == nil || l.ID != nil || l.ID64 != nil {
		return s, false, nil
	}
	s.ContainerRecord, s.hasMode = keyspace.ContainerRecord{Name: l.Container, Created: l.Created}, l.Mode != ""
	s.Policy.InheritDeadTo, s.Policy.OwnDeadTo = l.InheritDeadTo, l.OwnDeadTo
	s.Policy.Deadline, s.Policy.Hold = l.Deadline, l.Hold
	if strings.EqualFold(l.Hold, "OFF") {
		return s, true, errors.New("invalid hold OFF: a container without a hold has no member hold")
	}
	if l.Deadline != "" {
		err = expiry.CheckDeadlineName(l.Deadline)
	}
	if err == nil && l.Hold != "" {
		err = expiry.CheckHold(l.Hold)
	}
	if err != nil {
		return s, true, err
	}
	if l.Number != nil {
		if *l.Number < keyspace.Databases || *l.Number > keyspace.MaxDB {
			return s, true, fmt.Errorf("invalid number %d: legal are %d to %d", *l.Number, keyspace.Databases, keyspace.MaxDB)
		}
		s.DB = uint32(*l.Number)
	}
	switch l.Mode {
	case "", expiry.Strict.String():
	case expiry.Lenient.String():
		s.Policy.Mode = expiry.Lenient
	default:
		return s, true, fmt.Errorf("invalid mode %s: legal are strict and lenient", expiry.Quote(l.Mode))
	}
	if s.Policy.Default, err = expiry.ParseDefault(*l.Default); err != nil {
		return s, true, err
	}
	s.Indexes = l.Indexes
	return s, true, keyspace.CheckIndexes(l.Indexes)
}

// entry is an item to import.
type entry struct {
	container, id string
	item          keyspace.Item
	fresh         bool  // the time of its last write is unknown: it counts as written now
	keepsLeft     bool  // a document keeps what is left of its ttl where its clock starts anew
	accepted      bool  // a container has accepted the member ttl before
	ignored       error // why the member ttl of a document does not count
}

// kept returns what becomes of an item if its container is on hold and has one under its id, written at there
// (ms): that one stays.
func (e *entry) kept(reason string, there int64) (keyspace.Restored, error) {
	if there >= e.item.TS {
		return keyspace.Newer, nil
	}
	return 0, unsettled((&keyspace.HeldError{Container: e.container, Reason: reason}).Error())
}

// bodyOf returns the members that have the body of an item of a kind. Of a document it is what raw has.
func (l *line) bodyOf(kind keyspace.Kind) (text **string, text64 **[]byte) {
	switch kind {
	case keyspace.Plain:
		return &l.Value, &l.Value64
	case keyspace.HashKind:
		return &l.Hash, &l.Hash64
	case keyspace.SetKind:
		return &l.Set, &l.Set64
	case keyspace.ZSetKind:
		return &l.ZSet, &l.ZSet64
	case keyspace.ListKind:
		return &l.List, &l.List64
	}
	return &l.Raw, new(*[]byte)
}

// collection returns the elements of a collection and its kind, 0 if the line has none. Without elements they
// come later.
func (l *line) collection() (body string, kind keyspace.Kind, err error) {
	for has := range collections {
		text, text64 := l.bodyOf(has)
		switch {
		case *text == nil && *text64 == nil:
		case kind != 0:
			return "", 0, errOneValue
		default:
			if kind = has; err == nil {
				body, err = either(collections[kind], *text, *text64)
			}
			if err == nil && body != "" {
				err = elements.CheckAll(body, kind)
			}
		}
	}
	return body, kind, err
}

var errOneValue = errors.New("a line has either a doc, or a raw one, or a value, or a hash, or a set, or a zset, or a list")

// entry reads the line of an item. now (ms) is the time of the last write of a line that has none.
func (l *line) entry(now int64) (e entry, err error) {
	if l.Default != nil {
		return e, errors.New("a line is either a container's, with a default, or an item's, with an id")
	}
	e.container = l.Container
	if e.id, err = either("id", l.ID, l.ID64); err != nil {
		return e, err
	}
	e.item.TS, e.fresh, e.accepted = l.TS, l.TS == 0, l.Ignored
	if e.fresh {
		e.item.TS = now
	}
	plain := l.Value != nil || l.Value64 != nil
	body, kind, wrong := l.collection()
	switch {
	case len(e.id) > keyspace.MaxIDLength:
		err = fmt.Errorf("an id of %d bytes: legal are at most %d", len(e.id), keyspace.MaxIDLength)
	case kind != 0 && (plain || l.Doc != nil || l.Raw != nil || l.TTL != nil):
		err = errOneValue
	case kind != 0 || wrong != nil:
		e.item.Kind, e.item.Body, err = kind, body, wrong
	case plain && (l.Doc != nil || l.Raw != nil || l.TTL != nil):
		err = errors.New("a line has either a doc, or a raw one, or a value; and a value has an end, not a ttl")
	case plain:
		e.item.Kind = keyspace.Plain
		e.item.Body, err = either("value", l.Value, l.Value64)
	case e.id == "":
		err = errors.New("a document's id is empty")
	default:
		err = l.document(&e)
	}
	if err == nil && l.End != nil {
		if e.item.ExpireAt = *l.End; e.item.ExpireAt < expiry.Never {
			err = fmt.Errorf("invalid end %d: legal are -1 for never, 0 for none, and milliseconds since 1970", e.item.ExpireAt)
		}
	}
	return e, err
}

// document reads the document of a line.
func (l *line) document(e *entry) error {
	e.item.Kind = keyspace.Document
	switch {
	case l.Doc != nil && l.Raw != nil:
		return errors.New("doc and raw are both there: leave the one out that is not meant")
	case l.Raw != nil:
		e.item.Body = *l.Raw
	case l.Doc != nil:
		e.item.Body = string(l.Doc)
	default:
		return errors.New("neither a doc nor a value is there")
	}
	doc, err := jsondoc.ParseValue(e.item.Body, jsondoc.MaxSize)
	if err != nil {
		return err
	}
	if l.TTL != nil && *l.TTL != int64(doc.TTL) {
		return fmt.Errorf("the line says ttl %d, its document %d: what counts is the document's", *l.TTL, doc.TTL)
	}
	e.item.Body = doc.JSON // without _ts and _etag, as DOC.PUT would store it
	e.item.ExpireAt, e.ignored = expiry.ExpireAt(e.item.TS, doc.TTL), doc.TTLErr
	return nil
}

// either returns a text that a line holds as such or in base64.
func either(name string, text *string, encoded *[]byte) (string, error) {
	switch {
	case (text == nil) == (encoded == nil):
		return "", fmt.Errorf("exactly one of %[1]s and %[1]s64 must be there", name)
	case text != nil:
		return *text, nil
	}
	return string(*encoded), nil
}
