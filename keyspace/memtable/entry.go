package memtable

import (
	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// Entry is one item of a table, without its key and record. The owner's lock protects it. It is valid until
// it is released.
//
// There are many: fields are as small as they can be, and values that the record yields as fast are not
// repeated. An entry fills one cache line and has no pointers, so the collector does not look into it.
type Entry struct {
	ts       int64 // ms; time of the last write
	expireAt int64 // expiry.Inherit, expiry.Never, the moment in ms or a cap
	version  uint64
	lsn      uint64
	data     ref // the key as in the store (container number, colon, id), then the record as on disk
	recSize  uint32
	hash     uint32 // of the id
	next     Handle // in the chain of its index bucket
	pos      uint32 // in the insertion order
	queuePos uint32 // in its expiry queue, see place; notQueued if it is in none
	keySize  uint16 // its lower 16 bits; see longKey
	bodyAt   uint8  // offset of the body in the record; its highest bit: see Collection
	flags    flags
}

type flags uint8

const (
	longKey  flags = 1 << iota // the key is 64 KiB longer than keySize says
	plain                      // a plain key
	dirty                      // in the table's dirty list
	stored                     // the store has, or is about to get, an item of this key
	present                    // in the table
	changing                   // see MarkChanging
	raw                        // see Encoding
	text
)

func (e *Entry) has(f flags) bool { return e.flags&f != 0 }

func (e *Entry) set(f flags)   { e.flags |= f }
func (e *Entry) clear(f flags) { e.flags &^= f }

func (e *Entry) keyLen() int {
	return int(e.keySize) + int(e.flags&longKey)<<16
}

// withElements is the bit of bodyAt of an item that has elements: a header is shorter.
const withElements = 1 << 7

// header returns the offset of the body in the record.
func (e *Entry) header() int { return int(e.bodyAt &^ withElements) }

// Collection reports whether the item has elements.
func (e *Entry) Collection() bool { return e.bodyAt&withElements != 0 }

// Version returns the item's version.
func (e *Entry) Version() uint64 { return e.version }

// Plain reports whether the item is a plain key, or one with elements: no document.
func (e *Entry) Plain() bool { return e.has(plain) }

// TS returns the time of the item's last write in ms.
func (e *Entry) TS() int64 { return e.ts }

// LSN returns what SetLSN has set last, 0 if nothing: the log sequence number of the item's last write.
func (e *Entry) LSN() uint64 { return e.lsn }

// SetLSN sets the log sequence number. The table does not use it.
func (e *Entry) SetLSN(lsn uint64) { e.lsn = lsn }

// MarkChanging marks the entry as changed by the transaction that holds the lock. The table does not use the
// mark.
func (e *Entry) MarkChanging() { e.set(changing) }

// ClearChanging removes the mark of MarkChanging.
func (e *Entry) ClearChanging() { e.clear(changing) }

// Changing reports whether the mark of MarkChanging is set.
func (e *Entry) Changing() bool { return e.has(changing) }

// Present reports whether the entry is in its table: it has not been removed.
func (e *Entry) Present() bool { return e.has(present) }

// Dead reports whether the item is dead at a moment in ms.
func (e *Entry) Dead(p *expiry.Policy, now int64) bool { return p.Dead(e.ts, e.expireAt, now) }

// Within reports whether limits select the entry.
func (e *Entry) Within(l expiry.Limits) bool { return l.Select(e.ts, e.expireAt) }

// Ending is [expiry.Policy.Ending] of the item.
func (e *Entry) Ending(p *expiry.Policy) (end int64, of expiry.Cause) {
	return p.Ending(e.ts, e.expireAt)
}

// End returns the moment in ms at which the item dies if nothing changes, and whether there is one.
func (e *Entry) End(p *expiry.Policy) (end int64, ok bool) { return p.End(e.ts, e.expireAt) }

// ItemOverhead is the memory of an item besides its key and record, in bytes: the entry, its share of the
// index and the lists, and the header of its allocation. BenchmarkMemory measures it.
const ItemOverhead = 96

// cappedOverhead is the memory of a cap in bytes: the place in another queue.
const cappedOverhead = 8

// Memory estimates the memory of the item in bytes.
func (e *Entry) Memory() int64 {
	n := int64(e.keyLen()) + int64(e.recSize) + ItemOverhead
	if e.capped() {
		n += cappedOverhead
	}
	return n
}

// capped reports whether the item has a cap beside the container's default.
func (e *Entry) capped() bool { return e.expireAt < expiry.Never }

// The encoding lies in two flags.
const encodingShift, encodingMask = 6, raw | text

// Encoding returns what SetEncoding has set since the last write of the body, else 0.
func (e *Entry) Encoding() record.Encoding {
	return record.Encoding(e.flags & encodingMask >> encodingShift)
}

// SetEncoding sets the encoding.
func (e *Entry) SetEncoding(n record.Encoding) {
	e.flags = e.flags&^encodingMask | flags(n)<<encodingShift
}
