package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/expiry"

	"github.com/tidwall/gjson"
)

// maxNesting is how deep objects and arrays of a document may stand in each other, the document
// itself being the first level.
const maxNesting = 128

// ttlMember is the root member that carries a document's own time to live.
const ttlMember = "ttl"

// What the server knows of a document it shows as root members of these names.
const (
	tsMember   = "_ts"
	etagMember = "_etag"
)

// body is the JSON of a document that has passed [parseBody].
type body struct {
	json string
	ttl  expiry.TTL // of the root member ttl; Absent if there is none that counts
	bad  error      // why the member ttl does not count: what strict mode reports, lenient mode ignores
}

// parseBody checks that text is a document: an object, valid JSON in valid UTF-8, not deeper than
// maxNesting and not larger than most bytes. The member ttl is read but not judged: whether one that
// does not count is an error is the container's to say (rule 4). The body shares memory with text.
func parseBody(text string, most int) (body, error) {
	if err := checkSize(text, most); err != nil {
		return body{}, err
	}
	facts, valid := scanJSON(text)
	if !valid {
		return body{}, invalid(text)
	}
	if !facts.object {
		return body{}, fmt.Errorf("invalid document %s: legal are JSON objects", expiry.Quote(strings.TrimLeft(text, jsonSpace)))
	}
	b := body{json: text}
	b.ttl, b.bad = facts.readTTL(text)
	return b, nil
}

// checkJSON checks that text is one JSON value in valid UTF-8, not deeper than a document may be.
func checkJSON(text string) error {
	if validJSON(text) {
		return nil
	}
	return invalid(text)
}

// invalid tells why validJSON has refused a text.
func invalid(text string) error {
	if err := checkNesting(text); err != nil {
		return err
	}
	if !gjson.Valid(text) {
		return syntaxError(text)
	}
	return fmt.Errorf("invalid JSON: not UTF-8 at byte %d", invalidUTF8(text)+1)
}

// set writes the member ttl into the body in place of what stood there; Absent removes it. most is
// the largest size in bytes.
func (b body) set(ttl expiry.TTL, most int) (body, error) {
	text := withTTL(b.json, ttl)
	return body{json: text, ttl: ttl}, checkSize(text, most)
}

// refused is the error with which a container under this policy refuses the document (rule 4).
func (b *body) refused(p *expiry.Policy) error {
	if p.Default != expiry.Off && p.Mode == expiry.Strict {
		return b.bad
	}
	return nil
}

func checkSize(text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("document of %d bytes: legal are at most %d (max-value-size)", len(text), most)
	}
	return nil
}

// checkNesting counts without recursion, so that a text of megabytes of brackets, which would
// overflow the stack of the validator, never gets there. It needs no valid JSON: as far as the
// validator reads, both see the same strings and brackets.
func checkNesting(text string) error {
	// Fewer brackets than levels, anywhere: the common case, at the speed of a byte search.
	if strings.Count(text, "{")+strings.Count(text, "[") <= maxNesting {
		return nil
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			if depth++; depth > maxNesting {
				return fmt.Errorf("document nested deeper than %d levels at byte %d", maxNesting, i+1)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// syntaxError says what is wrong with a text that is not JSON, and where. The validator only says
// that something is, so the standard library looks again. Bytes are counted from 1.
func syntaxError(text string) error {
	err := json.Unmarshal([]byte(text), new(json.RawMessage))
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("invalid JSON at byte %d: %w", syntax.Offset, syntax)
	}
	return fmt.Errorf("invalid JSON %s", expiry.Quote(text))
}

// invalidUTF8 gives the position of the first byte that is not UTF-8.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return len(text)
}

// readTTL reads the root member ttl of a valid object: Absent if there is none that counts, the
// error saying why not.
func readTTL(object string) (ttl expiry.TTL, err error) {
	if !mayHave(object, ttlMember) {
		return expiry.Absent, nil
	}
	found := false
	for w := walk(object); w.next(); {
		if w.name() != ttlMember {
			continue
		}
		if found {
			return expiry.Absent, expiry.RepeatedMember()
		}
		found = true
		ttl, err = expiry.ParseMember(w.value())
	}
	return ttl, err
}

// readTTL is readTTL of the object that the facts are of.
func (f *rootFacts) readTTL(object string) (ttl expiry.TTL, err error) {
	switch {
	case f.escaped:
		return readTTL(object)
	case f.ttls == 0:
		return expiry.Absent, nil
	case f.ttls > 1:
		return expiry.Absent, expiry.RepeatedMember()
	}
	from := skip(object, f.ttlAt, ':')
	return expiry.ParseMember(object[from:valueEnd(object, from)])
}

// mayHave is a cheap search for a member of an ASCII name, which most objects do not have, before a
// walk through them: without a hit there is none. A name with escapes in it (\u0074tl) spells one of
// its letters as \u00…
func mayHave(object, name string) bool {
	return strings.Contains(object, name+`"`) || strings.Contains(object, `\u00`)
}

// withTTL sets the root member ttl of a valid object, or removes it for Absent. All other bytes
// stay as they are; of a repeated member one is left.
func withTTL(object string, ttl expiry.TTL) string {
	value := ""
	if ttl != expiry.Absent {
		value = ttl.String()
	}
	return setMembers(object, member{ttlMember, value})
}

// withMeta adds what the server knows of a document to its JSON: the time of the last write ts (ms)
// as "_ts" in seconds, as in Cosmos DB, and the "_etag". Members the user stored under these names
// are replaced in the result.
func withMeta(object string, ts int64, etag string) string {
	return setMembers(object, member{tsMember, strconv.FormatInt(ts/1000, 10)}, member{etagMember, `"` + etag + `"`})
}

// member is a root member to be set: value is JSON, or empty to remove the member.
type member struct{ name, value string }

// setMembers returns a valid object with the given root members set or removed. One that is there
// is replaced where it stands and its repetitions are removed; others are added at the end. All
// other bytes stay as they are, but for the commas.
func setMembers(object string, set ...member) string {
	var out strings.Builder
	size := len(object)
	for _, m := range set {
		size += len(m.name) + len(m.value) + len(`,"":`)
	}
	out.Grow(size)

	var end int      // where object goes on after what is in out
	var members bool // there are some in out
	if slices.ContainsFunc(set, func(m member) bool { return mayHave(object, m.name) }) {
		end, members = replaceMembers(&out, object, set)
	} else {
		end = len(strings.TrimRight(object[:strings.LastIndexByte(object, '}')], jsonSpace))
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

// replaceMembers writes an object up to its last member, with members replaced or left out, and
// tells where that ends in the object and whether any member is left. The values of members it has
// met are emptied in set.
func replaceMembers(out *strings.Builder, object string, set []member) (end int, left bool) {
	w := walk(object)
	end = skip(object, w.pos, ' ')
	out.WriteString(object[:end])
	for w.next() {
		name, value := w.name(), w.value()
		for i := range set {
			if set[i].name == name {
				value, set[i].value = set[i].value, "" // once; repetitions are left out
			}
		}
		if value != "" {
			if left {
				out.WriteString(object[end:w.start])
			}
			out.WriteString(object[w.start:w.valueFrom])
			out.WriteString(value)
			left = true
		}
		end = w.pos
	}
	return end, left
}
