package jsondoc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/expiry"
	"mayfly/expiry/members"
	"mayfly/json/jsontext"
)

const (
	// MaxNesting is the deepest legal nesting of objects and arrays. The document is the first level.
	MaxNesting = 128
	// MaxSize is the size in bytes of the largest document that a server can be told to accept.
	MaxSize = 512 << 20
)

// TTLMember is the root member that carries a document's own time to live.
const TTLMember = members.TTL

// The server shows what it knows of a document as root members of these names. It stores none of them.
const (
	TSMember   = "_ts"
	ETagMember = "_etag"
)

// Document is the text of a valid document with the time to live that it carries.
type Document struct {
	JSON   string
	TTL    expiry.TTL // of the root member ttl; Absent if there is none that counts
	TTLErr error      // why the root member ttl does not count; nil if it counts or is absent

	// Compact says that JSON is as JSON.GET shows it. The caller of Parse finds that out; false says nothing.
	Compact bool

	// Deadline is what the document says in the member that its container names as the deadline. Nil if the
	// container names none, or the deadline was not read: see [Document.ReadDeadline].
	Deadline *Deadline
}

// Deadline is the deadline of a document.
type Deadline struct {
	Member string // of which name
	At     int64  // ms; 0 if there is none that counts
	Err    error  // why it does not count; nil if it counts or is absent
	Raw    string // its JSON
}

// Parse checks that text is a document and reads its member ttl. A document is an object: valid JSON
// in valid UTF-8, no deeper than [MaxNesting], no larger than maxSize bytes. Errors are one line and say
// what is wrong and where. A member ttl that does not count is no error here: see [Document.CheckTTL].
//
// The root members _ts and _etag are the server's, as in Cosmos DB: the document is the text without
// them. All other bytes but commas stay unchanged. The document shares memory with a text that has
// neither.
func Parse(text string, maxSize int) (Document, error) {
	d, err := ParseValue(text, maxSize)
	if err == nil && !d.IsObject() {
		return Document{}, fmt.Errorf("invalid document %s: legal are JSON objects", expiry.Quote(strings.TrimLeft(text, jsontext.Space)))
	}
	return d, err
}

// ParseValue is Parse for a document with any root, as JSON.SET stores it. Only an object has a member ttl.
func ParseValue(text string, maxSize int) (Document, error) {
	if err := checkSize(text, maxSize); err != nil {
		return Document{}, err
	}
	facts, valid := scan(text)
	if !valid {
		return Document{}, explain(text)
	}
	d := Document{JSON: text}
	if !facts.object {
		return d, nil
	}
	d.TTL, d.TTLErr = facts.readTTL(text)
	if facts.meta || facts.escaped {
		d.JSON = withoutMeta(text)
	}
	return d, nil
}

// IsObject reports whether the root of the document is an object.
func (d *Document) IsObject() bool { return IsObject(d.JSON) }

// IsObject reports whether the root of a valid document is an object.
func IsObject(text string) bool { return members.Has(text) }

// errNotObject is why a document has no members to change.
var errNotObject = errors.New("the document is not an object: JSON.* commands change it")

// FromValid returns the document of a text that [Parse] has accepted before, in a container that names a
// member as the deadline; "" for none.
func FromValid(object, deadline string) Document {
	e := members.Read(object, deadline)
	d := Document{JSON: object, TTL: e.TTL, TTLErr: e.TTLErr}
	d.setDeadline(&e, deadline)
	return d
}

// ReadDeadline reads the deadline from the member that a container names; "" for none.
func (d *Document) ReadDeadline(member string) {
	if member == "" {
		d.Deadline = nil
	} else if d.Deadline == nil || d.Deadline.Member != member {
		e := members.Read(d.JSON, member)
		d.setDeadline(&e, member)
	}
}

func (d *Document) setDeadline(e *members.Ends, member string) {
	if d.Deadline = nil; member != "" {
		d.Deadline = &Deadline{Member: member, At: e.Deadline, Err: e.DeadlineErr, Raw: e.DeadlineRaw}
	}
}

// Edited returns the document that an edit has made of another. The edit may have made it too large or
// too deep, and changed its member ttl; else it is valid. The error is one line.
func Edited(object string, maxSize int) (Document, error) {
	if err := checkSize(object, maxSize); err != nil {
		return Document{}, err
	}
	if err := checkNesting(object); err != nil {
		return Document{}, err
	}
	return FromValid(object, ""), nil
}

// CheckTTL returns the error with which a container under policy p refuses the document, or nil. A
// container in strict mode refuses a member ttl that does not count. Lenient mode ignores it.
func (d *Document) CheckTTL(p *expiry.Policy) error {
	if p.Default != expiry.Off && p.Mode == expiry.Strict {
		return d.TTLErr
	}
	return nil
}

// CheckDeadline returns the error with which a container under policy p refuses the document at a moment in
// ms, or nil. A container in strict mode refuses a deadline that does not count or has passed.
func (d *Document) CheckDeadline(p *expiry.Policy, now int64) error {
	switch {
	case d.Deadline == nil || p.Default == expiry.Off || p.Mode != expiry.Strict:
		return nil
	case d.Deadline.At != 0 && d.Deadline.At <= now:
		return expiry.PassedDeadline(d.Deadline.Member, d.Deadline.Raw)
	}
	return d.Deadline.Err
}

// Check is CheckTTL and CheckDeadline.
func (d *Document) Check(p *expiry.Policy, now int64) error {
	return cmp.Or(d.CheckTTL(p), d.CheckDeadline(p, now))
}

// Passed reports whether the document's deadline has passed at a moment in ms, so that it is gone at once in
// a container under policy p.
func (d *Document) Passed(p *expiry.Policy, now int64) bool {
	return d.Deadline != nil && p.Passed(d.Deadline.At, now)
}

// ExpireAt returns the document's own end if it was last written at ts (ms): see [expiry.OwnEnd].
func (d *Document) ExpireAt(ts int64) int64 {
	if d.Deadline == nil {
		return expiry.ExpireAt(ts, d.TTL)
	}
	return expiry.OwnEnd(ts, d.TTL, d.Deadline.At)
}

// Source names what decides the end of the document, whose expireAt and time of the last write in ms these
// are: deadline, or as [expiry.Policy.Source].
func (d *Document) Source(p *expiry.Policy, ts, expireAt int64) string {
	source := p.Source(ts, expireAt, d.TTLErr != nil || d.Deadline != nil && d.Deadline.Err != nil)
	if source == "document" && d.Deadline != nil && expiry.DeadlineRules(ts, d.TTL, d.Deadline.At) {
		source = "deadline"
	}
	return source
}

// WithTTL returns the document with another member ttl; [expiry.Absent] removes the member. All other bytes
// stay unchanged. The error says that the document is not an object, or the result larger than maxSize bytes.
func (d Document) WithTTL(ttl expiry.TTL, maxSize int) (Document, error) {
	if !d.IsObject() {
		return Document{}, errNotObject
	}
	text := withTTL(d.JSON, ttl)
	return Document{JSON: text, TTL: ttl, Deadline: d.Deadline}, checkSize(text, maxSize)
}

// WithMeta returns a valid object with what the server knows of it. "_ts" is the time of the last write in
// seconds, as in Cosmos DB; ts is in ms. "_etag" is etag. A document that is not an object has no place for
// them.
func WithMeta(object string, ts int64, etag string) string {
	if !IsObject(object) {
		return object
	}
	return setMembers(object, member{TSMember, strconv.FormatInt(ts/1000, 10)}, member{ETagMember, `"` + etag + `"`})
}

// withoutMeta is the inverse of WithMeta: it removes the root members _ts and _etag of a valid object.
func withoutMeta(object string) string {
	if !mayHave(object, TSMember) && !mayHave(object, ETagMember) {
		return object
	}
	for w := jsontext.Walk(object); w.Next(); {
		if isMeta(w.Name()) {
			return setMembers(object, member{TSMember, ""}, member{ETagMember, ""})
		}
	}
	return object
}

// isMeta reports whether a root member of this name is the server's.
func isMeta(name string) bool { return name == TSMember || name == ETagMember }

func checkSize(text string, maxSize int) error {
	if len(text) > maxSize {
		return fmt.Errorf("document of %d bytes: legal are at most %d (max-value-size)", len(text), maxSize)
	}
	return nil
}

// explain returns the error that says why scan has refused a text.
func explain(text string) error {
	if err := checkNesting(text); err != nil {
		return err
	}
	if !json.Valid([]byte(text)) {
		return syntaxError(text)
	}
	return fmt.Errorf("invalid JSON: not UTF-8 at byte %d", invalidUTF8(text)+1)
}

// NestingError is the error of a text that is nested deeper than MaxNesting.
type NestingError struct {
	At int // the byte that begins the level too many, from 1
}

func (e *NestingError) Error() string {
	return fmt.Sprintf("document nested deeper than %d levels at byte %d", MaxNesting, e.At)
}

// checkNesting checks the depth without recursion: megabytes of brackets would overflow the stack of a
// recursive validator. The text need not be valid JSON. As far as the validator reads it, both see the
// same strings and brackets.
func checkNesting(text string) error {
	// Most texts have fewer brackets than levels, and counting runs at the speed of a byte search.
	if strings.Count(text, "{")+strings.Count(text, "[") <= MaxNesting {
		return nil
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsontext.StringEnd(text, i) - 1
		case '{', '[':
			if depth++; depth > MaxNesting {
				return &NestingError{At: i + 1}
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// syntaxError returns the error of a text that is not JSON: what is wrong, and at which byte, from 1. It
// wraps a json.SyntaxError. It asks the standard library, since the validator does not say.
func syntaxError(text string) error {
	err := json.Unmarshal([]byte(text), new(json.RawMessage))
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("invalid JSON at byte %d: %w", syntax.Offset, syntax)
	}
	return fmt.Errorf("invalid JSON %s", expiry.Quote(text))
}

// invalidUTF8 returns the position of the first byte that is not UTF-8.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return len(text)
}

// readTTL reads the root member ttl of a valid object: Absent if there is none that counts. The error
// says why a member does not count.
func readTTL(object string) (ttl expiry.TTL, err error) {
	e := members.Read(object, "")
	return e.TTL, e.TTLErr
}

// readTTL is readTTL for an object whose facts are known from its scan. It saves a second pass: see
// BenchmarkReadTTL.
func (f *rootFacts) readTTL(object string) (ttl expiry.TTL, err error) {
	switch {
	case f.escaped:
		return readTTL(object)
	case f.ttls == 0:
		return expiry.Absent, nil
	case f.ttls > 1:
		return expiry.Absent, expiry.RepeatedMember()
	}
	from := jsontext.Skip(object, f.ttlAt, ':')
	return expiry.ParseMember(object[from:jsontext.ValueEnd(object, from)])
}

// mayHave reports whether a valid object may have a member of an ASCII name. It is a byte search that
// saves most objects a walk: see BenchmarkSetMembers. An escaped name (\u0074tl) spells a letter as \u00…
func mayHave(object, name string) bool {
	return strings.Contains(object, name+`"`) || strings.Contains(object, `\u00`)
}

// withTTL sets the root member ttl of a valid object, or removes it for Absent. All other bytes stay
// unchanged; one of repeated members is kept.
func withTTL(object string, ttl expiry.TTL) string {
	value := ""
	if ttl != expiry.Absent {
		value = ttl.String()
	}
	return setMembers(object, member{TTLMember, value})
}

// member is a root member to set. Its value is JSON, or empty to remove the member.
type member struct{ name, value string }

// setMembers returns a valid object with root members set or removed. An existing member is replaced in
// place, and its repetitions are removed. A new member is added at the end. All other bytes but commas
// stay unchanged.
func setMembers(object string, set ...member) string {
	var out strings.Builder
	size := len(object)
	for _, m := range set {
		size += len(m.name) + len(m.value) + len(`,"":`)
	}
	out.Grow(size)

	var end int      // the position in object after what out holds
	var members bool // out holds at least one member
	if slices.ContainsFunc(set, func(m member) bool { return mayHave(object, m.name) }) {
		end, members = replaceMembers(&out, object, set)
	} else {
		end = len(strings.TrimRight(object[:strings.LastIndexByte(object, '}')], jsontext.Space))
		members = object[end-1] != '{'
		out.WriteString(object[:end])
	}
	for _, m := range set {
		if m.value == "" {
			continue
		}
		if members {
			out.WriteByte(',')
		}
		out.WriteString(`"` + m.name + `":` + m.value)
		members = true
	}
	out.WriteString(object[end:])
	return out.String()
}

// replaceMembers writes an object up to its last member, with members of set replaced or left out. end
// is the position in object after that member. kept reports whether any member was written. The values
// of the members it finds are emptied in set.
func replaceMembers(out *strings.Builder, object string, set []member) (end int, kept bool) {
	w := jsontext.Walk(object)
	end = jsontext.Skip(object, w.Pos, ' ')
	out.WriteString(object[:end])
	for w.Next() {
		name, value := w.Name(), w.Value()
		for i := range set {
			if set[i].name == name {
				value, set[i].value = set[i].value, "" // only once: repetitions are left out
			}
		}
		if value != "" {
			if kept {
				out.WriteString(object[end:w.Start])
			}
			out.WriteString(object[w.Start:w.ValueFrom])
			out.WriteString(value)
			kept = true
		}
		end = w.Pos
	}
	return end, kept
}
