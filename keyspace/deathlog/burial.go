package deathlog

import (
	"mayfly/expiry"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Death returns the entry, without an id, of an item that is dead at a moment in ms, by the history of its
// container. bodies says whether the log keeps the bodies of items.
func Death(item string, it record.Item, history *record.History, now int64, bodies bool) Entry {
	d := entryOf(item, it, bodies)
	d.At, d.Cause, d.Policy = expiry.Death(it.TS, it.ExpireAt, history.Entries, now)
	if d.Cause == "" { // the history begins later
		d.At, d.Cause, d.Policy = now, expiry.ByChange, history.Etag
	}
	return d
}

// Deletion is Death for an item that a client deletes at that moment.
func Deletion(item string, it record.Item, history *record.History, now int64, bodies bool) Entry {
	d := entryOf(item, it, bodies)
	d.At, d.Cause, d.Policy = now, Deleted, history.Etag
	return d
}

// entryOf returns what the entry of an item has of the item.
func entryOf(item string, it record.Item, bodies bool) Entry {
	d := Entry{Item: item, TS: it.TS, Etag: it.Version, Own: it.ExpireAt, Kind: it.Kind, HasBody: bodies}
	if _, capped := expiry.Cap(it.ExpireAt); capped {
		d.Own = expiry.Inherit // the document has no ttl
	}
	switch {
	case it.Kind.IsCollection():
		d.HasBody = false
	case bodies:
		d.Body = it.Body
	}
	return d
}

// ElementDeath is Death for an element of a key. page is the item that has it, with the kind of the key.
func ElementDeath(key string, page record.Item, el elements.Element, history *record.History, now int64, bodies bool) Entry {
	page.ExpireAt = el.End
	d := Death(key, page, history, now, bodies)
	d.Cause, d.Field, d.HasBody = ByElement, el.Field, bodies
	if bodies {
		d.Body = el.Value
	}
	return d
}

// Insert adds an entry at a moment in ms. It encodes the entry in a buffer, which it returns for reuse.
func (p *Part) Insert(d *Entry, now int64, buf []byte) (*memtable.Entry, []byte) {
	buf = AppendID(buf[:0], d.ID, d.Item)
	n := len(buf)
	var own *memtable.Body
	it := record.Item{Kind: record.Entry, TS: now, Version: d.Etag}
	if body := d.Body; len(body) < memtable.LargeBody {
		buf = d.AppendBody(buf)
		it.Body = record.View(buf[n:])
	} else { // it is copied once
		d.Body = ""
		buf = d.AppendBody(buf)
		it.Body = string(buf[n:]) + body
		b := memtable.NewBody(it.Body)
		own = &b
	}
	_, e := p.table.Insert(record.View(buf[:n]), it, own)
	return e, buf
}
