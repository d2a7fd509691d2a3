package entry

import (
	"errors"
	"fmt"
)

// Version is the first byte of every entry and state.
const Version = 1

// Kind is what an entry holds.
type Kind uint8

// The kinds of entries. None is raft's own empty entry at the start of a term; Conf is a change of raft's
// configuration.
const (
	None Kind = iota
	Batch
	Begin
	Change
	Conf
)

func (k Kind) String() string {
	switch k {
	case None:
		return "none"
	case Batch:
		return "batch"
	case Begin:
		return "begin"
	case Change:
		return "change"
	case Conf:
		return "conf"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Op is what a change does with a member.
type Op uint8

const (
	// Announce permits a node of the name to join. Its id is not known yet.
	Announce Op = iota + 1
	// Join makes a node a member. It takes the place of the member of the same name, whose id leaves the
	// configuration; with the same id it only updates the addresses.
	Join
	// Leave removes the member of the name, or what Announce has announced.
	Leave
)

func (o Op) String() string {
	switch o {
	case Announce:
		return "announce"
	case Join:
		return "join"
	case Leave:
		return "leave"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Entry is one committed entry of the raft log.
type Entry struct {
	Index, Term uint64
	Kind        Kind

	Session uint64 // Batch, Begin: the term of the leader that made it
	LSN     uint64 // Batch: of the leader's journal
	Moment  int64  // Batch: in milliseconds, the followers' time
	Batch   []byte // Batch: a view of the log's memory, immutable

	Op     Op     // Change
	Member Member // Begin: the leader. Change: the member. Conf: the member whose id changes

	// Void reports whether the batch is of another session than the last that has begun. No node applies it.
	Void bool
	// State is the encoded State after this entry; nil if the entry has not changed it.
	State []byte
}

// ErrVersion is the error for an entry or a state of a later version.
var ErrVersion = errors.New("entry: unknown version")

// ErrDamaged is the error for bytes that are no entry or state.
var ErrDamaged = errors.New("entry: damaged")

// AppendBatch appends the encoded batch to dst.
func AppendBatch(dst []byte, session, lsn uint64, moment int64, batch []byte) []byte {
	w := writer{append(dst, Version, byte(Batch))}
	w.uint(session)
	w.uint(lsn)
	w.int(moment)
	return append(w.buf, batch...)
}

// AppendBegin appends the encoded begin of a session to dst.
func AppendBegin(dst []byte, session uint64, leader Member) []byte {
	w := writer{append(dst, Version, byte(Begin))}
	w.uint(session)
	w.member(leader)
	return w.buf
}

// AppendChange appends an encoded change of the members to dst.
func AppendChange(dst []byte, op Op, member Member) []byte {
	w := writer{append(dst, Version, byte(Change), byte(op))}
	w.member(member)
	return w.buf
}

// AppendConf appends the context of a change of raft's configuration to dst.
func AppendConf(dst []byte, member Member) []byte {
	w := writer{append(dst, Version, byte(Conf))}
	w.member(member)
	return w.buf
}

// Decode returns the entry that data holds, without index, term, Void and State. Batch is a view of data.
// Empty data is an entry of kind None.
func Decode(data []byte) (e Entry, err error) {
	if len(data) == 0 {
		return Entry{}, nil
	}
	r := reader{buf: data}
	if v := r.byte(); v != Version {
		return Entry{}, fmt.Errorf("%w %d; this program knows %d", ErrVersion, v, Version)
	}
	e.Kind = Kind(r.byte())
	switch e.Kind {
	case Batch:
		e.Session = r.uint()
		e.LSN = r.uint()
		e.Moment = r.int()
		e.Batch = r.rest()
	case Begin:
		e.Session = r.uint()
		e.Member = r.member()
	case Change:
		e.Op = Op(r.byte())
		if e.Op < Announce || e.Op > Leave {
			r.fail()
		}
		e.Member = r.member()
	case Conf:
		e.Member = r.member()
	default:
		r.fail()
	}
	if err := r.end(); err != nil {
		return Entry{}, fmt.Errorf("%w: %s of %d bytes", err, e.Kind, len(data))
	}
	return e, nil
}
