package deaths

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// Entry is a death in a container.
type Entry struct {
	ID      streamid.ID
	Item    string       // id of the item
	Cause   expiry.Cause // not empty
	At      int64        // ms; the moment of death
	TS      int64        // ms; the last write of the item
	Etag    uint64       // of the item; with the container it names the death
	Own     int64        // own end of the item, as [record.Item.ExpireAt]
	Policy  uint64       // etag of the settings that ruled
	Kind    record.Kind  // of the item: record.Document or record.Plain
	Body    string       // of the item
	HasBody bool         // else the log keeps no bodies
}

// MaxSeq is the greatest number of an entry among those of one ms.
const MaxSeq = math.MaxUint32

// AppendID appends the id under which the entry of an item's death lies in the log. The number of the entry is at most
// [MaxSeq].
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

// AppendBody appends the body of the record of an entry. The record's version is the etag, and its kind record.Entry.
func (e *Entry) AppendBody(dst []byte) []byte {
	dst = strconv.AppendInt(dst, e.At, 10)
	dst = append(append(append(dst, ' '), e.Cause...), ' ', byte(e.Kind))
	if !e.HasBody {
		dst = append(dst, noBody)
	}
	dst = strconv.AppendInt(append(dst, ' '), e.TS, 10)
	dst = strconv.AppendInt(append(dst, ' '), e.Own, 10)
	dst = strconv.AppendUint(append(dst, ' '), e.Policy, 16)
	dst = append(dst, ' ')
	return append(dst, e.Body...)
}

// MaxHeader is the length in bytes of the longest body of an entry, but for the item's.
const MaxHeader = 3*len("-9223372036854775808 ") + len("container d- ") + len("ffffffffffffffff ")

var errEntry = errors.New("not an entry of a log: it must have a moment, a cause, a kind, a time, an end, an etag and a body")

// Read decodes the entry under an id of a log. Its strings share memory with those given. It accepts nothing that
// AppendBody does not write, and allocates nothing.
func Read(id string, it record.Item) (e Entry, err error) {
	if e.ID, e.Item, err = SplitID(id); err != nil {
		return Entry{}, err
	}
	if it.Kind != record.Entry || e.ID.IsZero() {
		return Entry{}, errEntry
	}
	at, rest, ok1 := strings.Cut(it.Body, " ")
	cause, rest, ok2 := strings.Cut(rest, " ")
	kind, rest, ok3 := strings.Cut(rest, " ")
	ts, rest, ok4 := strings.Cut(rest, " ")
	own, rest, ok5 := strings.Cut(rest, " ")
	policy, body, ok6 := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || !e.readKind(kind) || body != "" && !e.HasBody {
		return Entry{}, errEntry
	}
	e.Cause, e.Etag, e.Body = expiry.Cause(cause), it.Version, body
	var err1, err2, err3, err4 error
	e.At, err1 = strconv.ParseInt(at, 10, 64)
	e.TS, err2 = strconv.ParseInt(ts, 10, 64)
	e.Own, err3 = strconv.ParseInt(own, 10, 64)
	e.Policy, err4 = strconv.ParseUint(policy, 16, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || !known(e.Cause) {
		return Entry{}, errEntry
	}
	var buf [MaxHeader]byte // other spellings of the numbers
	header := e
	header.Body = ""
	if text := header.AppendBody(buf[:0]); string(text) != it.Body[:len(it.Body)-len(body)] {
		return Entry{}, errEntry
	}
	return e, nil
}

// readKind reads the kind of the item, and whether the entry has its body.
func (e *Entry) readKind(s string) bool {
	e.HasBody = true
	if len(s) == 2 && s[1] == noBody {
		e.HasBody, s = false, s[:1]
	}
	if len(s) != 1 {
		return false
	}
	e.Kind = record.Kind(s[0])
	return e.Kind == record.Document || e.Kind == record.Plain
}

// known reports whether a cause is one of those that expiry names.
func known(c expiry.Cause) bool {
	return c == expiry.ByDocument || c == expiry.ByContainer || c == expiry.ByChange
}

// Check returns why an item under an id of a log is neither an entry nor a state, or nil.
func Check(id string, it record.Item) error {
	if IsStateID(id) {
		_, err := ReadState(id, it)
		return err
	}
	_, err := Read(id, it)
	return err
}
