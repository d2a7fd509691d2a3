package deathlog

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// Entry is a death in a container.
type Entry struct {
	ID      streamid.ID
	Item    string       // id of the item
	Cause   expiry.Cause // not empty; Deleted or that of a rule
	At      int64        // ms; the moment of death
	TS      int64        // ms; the last write of the item
	Etag    uint64       // of the item; with the container it names the death
	Own     int64        // own end of the item, as [record.Item.ExpireAt]; expiry.Inherit for a cap
	Policy  uint64       // etag of the settings that ruled
	Kind    record.Kind  // of the item, or of the key whose element died
	Body    string       // of the item, or of the element; empty if a key with elements died
	HasBody bool         // else the log keeps no bodies

	Field    string // of an element that died: see ByElement
	Elements int64  // of a key with elements that died: how many lived
}

// MaxSeq is the greatest number of an entry among those of one ms.
const MaxSeq = math.MaxUint32

// AppendID appends the id under which the entry of an item's death lies in the log. The number of the entry
// is at most [MaxSeq].
func AppendID(dst []byte, id streamid.ID, item string) []byte {
	var digits [record.EntryIDLength]byte
	record.PutHex(digits[:8], uint32(id.Ms>>32))
	record.PutHex(digits[8:16], uint32(id.Ms))
	record.PutHex(digits[16:], uint32(id.Seq))
	dst = append(dst, digits[:]...)
	dst = append(dst, ':')
	return append(dst, item...)
}

var errID = errors.New("not the id of an entry: it must be 24 hexadecimal digits, a colon and the id of an item")

// SplitID is the inverse of [AppendID]. The item shares memory with the id.
func SplitID(id string) (entry streamid.ID, item string, err error) {
	const n = record.EntryIDLength
	if len(id) <= n || id[n] != ':' {
		return entry, "", errID
	}
	high, ok1 := record.ReadHex(id[:8])
	low, ok2 := record.ReadHex(id[8:16])
	seq, ok3 := record.ReadHex(id[16:n])
	if !ok1 || !ok2 || !ok3 {
		return entry, "", errID
	}
	return streamid.ID{Ms: uint64(high)<<32 | uint64(low), Seq: uint64(seq)}, id[n+1:], nil
}

// noBody stands behind the kind of an item whose body the log does not keep.
const noBody = '-'

// ByElement is the cause of the death of an element: its own end. The key lives.
const ByElement expiry.Cause = "field"

// Deleted is the cause of what a client has deleted.
const Deleted expiry.Cause = "deleted"

// causes are the letters of the causes.
var causes = [...]struct {
	letter byte
	expiry.Cause
}{{'d', expiry.ByDocument}, {'c', expiry.ByContainer}, {'x', expiry.ByChange}, {'r', Deleted}, {'f', ByElement}}

// AppendBody appends the body of the record of an entry. The record's version is the etag, and its kind
// record.Entry.
//
// Every death writes one, so it is short: moments are differences, which wrap around.
func (e *Entry) AppendBody(dst []byte) []byte {
	dst = e.appendHeader(dst)
	switch {
	case e.Cause == ByElement:
		dst = elements.AppendString(dst, e.Field)
	case e.Kind.IsCollection():
		return strconv.AppendInt(dst, e.Elements, 10)
	}
	return append(dst, e.Body...)
}

// appendHeader appends what comes before the body of the item.
func (e *Entry) appendHeader(dst []byte) []byte {
	dst = strconv.AppendInt(dst, int64(e.ID.Ms)-e.At, 10)
	dst = append(dst, ' ')
	for i := range causes {
		if causes[i].Cause == e.Cause {
			dst = append(dst, causes[i].letter)
		}
	}
	if dst = append(dst, byte(e.Kind)); !e.HasBody {
		dst = append(dst, noBody)
	}
	dst = strconv.AppendInt(append(dst, ' '), e.At-e.TS, 10)
	switch dst = append(dst, ' '); e.Own {
	case expiry.Inherit, expiry.Never:
		dst = strconv.AppendInt(dst, e.Own, 10)
	default:
		dst = strconv.AppendInt(append(dst, '+'), e.Own-e.TS, 10)
	}
	dst = strconv.AppendUint(append(dst, ' '), e.Policy, 16)
	return append(dst, ' ')
}

// MaxHeader is the length in bytes of the longest body of an entry, but for the item's.
const MaxHeader = 3*len("-9223372036854775808 ") + len("cd- +") + len("ffffffffffffffff ")

var errEntry = errors.New("not an entry of a log: it must have a delay, a cause and a kind, a life, an end, an etag and a body")

// ReadEntry decodes the entry under an id of a log. Its strings share memory with those given. It accepts
// nothing that AppendBody does not write, and allocates nothing.
func ReadEntry(id string, it record.Item) (e Entry, err error) {
	if e.ID, e.Item, err = SplitID(id); err != nil {
		return Entry{}, err
	}
	if it.Kind != record.Entry || e.ID.IsZero() {
		return Entry{}, errEntry
	}
	late, rest, ok1 := strings.Cut(it.Body, " ")
	kind, rest, ok2 := strings.Cut(rest, " ")
	lived, rest, ok3 := strings.Cut(rest, " ")
	own, rest, ok4 := strings.Cut(rest, " ")
	policy, body, ok5 := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !e.readKind(kind) {
		return Entry{}, errEntry
	}
	e.Etag = it.Version
	own, relative := strings.CutPrefix(own, "+")
	n1, err1 := strconv.ParseInt(late, 10, 64)
	n2, err2 := strconv.ParseInt(lived, 10, 64)
	n3, err3 := strconv.ParseInt(own, 10, 64)
	var err4 error
	e.Policy, err4 = strconv.ParseUint(policy, 16, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return Entry{}, errEntry
	}
	e.At = int64(e.ID.Ms) - n1
	e.TS = e.At - n2
	if e.Own = n3; relative {
		e.Own += e.TS
	}
	var buf [MaxHeader]byte // other spellings of the numbers
	if text := e.appendHeader(buf[:0]); string(text) != it.Body[:len(it.Body)-len(body)] || !e.readBody(body) {
		return Entry{}, errEntry
	}
	return e, nil
}

// readBody reads what follows the header.
func (e *Entry) readBody(body string) (ok bool) {
	switch {
	case e.Cause == ByElement:
		e.Field, body, ok = elements.CutString(body)
		if !ok || !e.Kind.IsCollection() {
			return false
		}
	case e.Kind.IsCollection():
		n, err := strconv.ParseInt(body, 10, 64)
		e.Elements = n
		return err == nil && n >= 0 && strconv.FormatInt(n, 10) == body && !e.HasBody
	}
	e.Body = body
	return body == "" || e.HasBody
}

// readKind reads the cause, the kind of the item, and whether the entry has its body.
func (e *Entry) readKind(s string) bool {
	e.HasBody = true
	if len(s) == 3 && s[2] == noBody {
		e.HasBody, s = false, s[:2]
	}
	if len(s) != 2 {
		return false
	}
	for i := range causes {
		if causes[i].letter == s[0] {
			e.Cause = causes[i].Cause
		}
	}
	e.Kind = record.Kind(s[1])
	return e.Cause != "" && (e.Kind == record.Document || e.Kind.IsKey())
}

// CheckEntry returns why an item under an id of a log is neither an entry nor a state, or nil.
func CheckEntry(id string, it record.Item) error {
	if IsStateID(id) {
		_, err := ReadState(id, it)
		return err
	}
	_, err := ReadEntry(id, it)
	return err
}
