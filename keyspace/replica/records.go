package replica

import (
	"fmt"
	"strconv"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// The records of a tail are in the catalogue: the index is the version of that of the position, the moment
// its time, and its body has the term and the next number of a container.

// AppendTo appends the records as commands.
func (t Tail) AppendTo(dst aof.Commands) aof.Commands {
	for _, o := range t.Ops() {
		dst.Set(o.Key, o.Rec, "")
	}
	return dst
}

// Ops returns the records, none of the state if that is unchanged.
func (t Tail) Ops() (ops []aof.Op) {
	set := func(key string, body string) {
		it := record.Item{Kind: record.ReplicaKind, Body: body, TS: t.Moment, Version: t.Index}
		ops = append(ops, aof.Op{Key: key, Rec: string(record.Append(nil, key, it))})
	}
	if t.State != nil {
		set(record.StateKey, string(t.State))
	}
	set(record.PositionKey, fmt.Sprintf("%d %d", t.Term, t.Next))
	return ops
}

// Removal returns the commands that remove the records of any tail.
func Removal() []aof.Op {
	return []aof.Op{{Key: record.StateKey, Del: true}, {Key: record.PositionKey, Del: true}}
}

// Read applies a record of the catalogue, or its removal, to the tail. The state is a copy. ok is false if
// the record is of something else.
func (t *Tail) Read(key, rec string, removed bool) (ok bool, err error) {
	if key != record.PositionKey && key != record.StateKey {
		return false, nil
	}
	var it record.Item
	if !removed {
		if it, _, err = record.Decode(key, rec); err != nil {
			return true, fmt.Errorf("record %q: %w", key, err)
		}
		if it.Kind != record.ReplicaKind {
			return true, fmt.Errorf("record %q: its kind is %q, not %q", key, it.Kind, record.ReplicaKind)
		}
	}
	switch {
	case key == record.StateKey && removed:
		t.State = nil
	case key == record.StateKey:
		t.State = append([]byte{}, it.Body...)
	case removed:
		t.Position, t.Next = Position{}, 0
	default:
		first, second, _ := strings.Cut(it.Body, " ")
		term, err1 := strconv.ParseUint(first, 10, 64)
		next, err2 := strconv.ParseUint(second, 10, 32)
		if err1 != nil || err2 != nil {
			return true, fmt.Errorf("record %q: %.40q is not a term and a number", key, it.Body)
		}
		t.Position, t.Next = Position{Index: it.Version, Term: term, Moment: it.TS}, uint32(next)
	}
	return true, nil
}

// Text is the text of commands of the log, as changes that a journal takes.
type Text string

// AppendTo appends the commands.
func (t Text) AppendTo(dst aof.Commands) aof.Commands {
	dst.Text = append(dst.Text, t...)
	return dst
}
