package groups

import (
	"slices"
	"strconv"

	"mayfly/keyspace/streamid"
)

// Change is the change of an item.
type Change struct {
	Item    string
	Body    string
	Deleted bool   // the item is removed; Body is empty
	Former  string // the body before
	Existed bool   // there was an item before
}

// Changes are the changes of a group's items in order. An item may occur several times.
type Changes struct {
	List []Change

	group *Group
}

// Begin returns the changes of a group, none yet.
func Begin(g *Group) *Changes { return &Changes{group: g} }

// Group returns the group that changes.
func (b *Changes) Group() *Group { return b.group }

// Rollback brings the group back to its state before the changes from the one of a number on, and forgets
// these.
func (b *Changes) Rollback(from int) {
	for _, c := range slices.Backward(b.List[from:]) {
		body := c.Body
		if c.Existed {
			body = c.Former
		}
		p, err := parseItem(c.Item, body)
		if err != nil {
			panic(err) // the package has written it
		}
		if c.Existed {
			b.group.set(p)
		} else {
			b.group.remove(p)
		}
	}
	b.List = b.List[:from]
}

// noteLast notes that the last delivered id and the entries read have changed.
func (b *Changes) noteLast(former string) {
	b.List = append(b.List, Change{Item: lastItem, Body: lastBody(b.group.last, b.group.read), Former: former, Existed: true})
}

// notePut notes that a pending entry was inserted or changed. former is nil if it was inserted.
func (b *Changes) notePut(e *Pending, former *Pending) {
	c := Change{Item: entryItem(e.ID), Body: entryBody(e.Time, e.Count, e.consumer.name)}
	if former != nil {
		c.Former, c.Existed = entryBody(former.Time, former.Count, former.consumer.name), true
	}
	b.List = append(b.List, c)
}

// noteDrop notes that a pending entry was removed.
func (b *Changes) noteDrop(e *Pending) {
	b.List = append(b.List, Change{
		Item: entryItem(e.ID), Deleted: true, Former: entryBody(e.Time, e.Count, e.consumer.name), Existed: true,
	})
}

// see returns the consumer of a name, seen now. It makes one that is missing.
func (b *Changes) see(name string, now int64) *Consumer {
	c := b.group.Consumer(name)
	if c == nil {
		c = b.group.consumer(name)
		c.seen = now
		b.List = append(b.List, Change{Item: consumerPrefix + c.name, Body: strconv.FormatInt(now, 10)})
		return c
	}
	if c.seen != now {
		b.List = append(b.List, Change{
			Item: consumerPrefix + c.name, Body: strconv.FormatInt(now, 10), Former: strconv.FormatInt(c.seen, 10), Existed: true,
		})
		c.seen = now
	}
	return c
}

// give makes an entry pending for a consumer, or changes it.
func (b *Changes) give(id streamid.ID, to *Consumer, time, count int64) {
	var former *Pending
	if e := b.group.Pending(id); e != nil {
		copied := *e
		former = &copied
		if copied.consumer == to && copied.Time == time && copied.Count == count {
			return
		}
	}
	b.notePut(b.group.put(id, to, time, count), former)
}

// CreateConsumer makes a consumer. It reports false if there is one of the name.
func (b *Changes) CreateConsumer(name string, now int64) bool {
	if b.group.Consumer(name) != nil {
		return false
	}
	b.see(name, now)
	return true
}

// DeleteConsumer removes a consumer with its pending entries, and returns their number.
func (b *Changes) DeleteConsumer(name string) int {
	c := b.group.Consumer(name)
	if c == nil {
		return 0
	}
	n := b.DropSome(c, -1)
	b.List = append(b.List, Change{
		Item: consumerPrefix + c.name, Deleted: true, Former: strconv.FormatInt(c.seen, 10), Existed: true,
	})
	b.group.dropConsumer(name)
	return n
}

// DropSome removes up to most pending entries of a consumer, all if most is negative, and returns their
// number.
func (b *Changes) DropSome(c *Consumer, most int) (n int) {
	for n != most {
		e, ok := c.pending.Min()
		if !ok {
			break
		}
		b.noteDrop(e)
		b.group.drop(e.ID)
		n++
	}
	return n
}

// SetID sets the last delivered id and the number of entries read, which may be [Unknown].
func (b *Changes) SetID(last streamid.ID, read int64) {
	g := b.group
	if g.last != last || g.read != read {
		former := lastBody(g.last, g.read)
		g.last, g.read = last, read
		b.noteLast(former)
	}
}

// Deliver delivers entries, whose ids ascend, to a consumer at a time in ms. With noAck they do not become
// pending. s is the stream that holds them.
func (b *Changes) Deliver(s *Stream, ids []streamid.ID, consumer string, now int64, noAck bool) {
	g := b.group
	c := b.see(consumer, now)
	last, read := g.last, g.read
	for _, id := range ids {
		if last.Less(id) {
			switch {
			case read != Unknown && !s.tombstoneFrom(id):
				read++
			case s.Added > 0:
				read = s.distance(id)
			}
			last = id
		}
		if !noAck {
			b.give(id, c, now, 1)
		}
	}
	b.SetID(last, read)
}

// See notes that a consumer reads. It makes one that is missing.
func (b *Changes) See(consumer string, now int64) { b.see(consumer, now) }

// Redeliver counts one more delivery of entries that are pending. Others are left out.
func (b *Changes) Redeliver(ids []streamid.ID, now int64) {
	for _, id := range ids {
		if e := b.group.Pending(id); e != nil {
			b.give(id, e.consumer, now, e.Count+1)
		}
	}
}

// Ack removes pending entries, and returns how many of the ids were pending.
func (b *Changes) Ack(ids []streamid.ID) (n int) {
	for _, id := range ids {
		if e := b.group.Pending(id); e != nil {
			b.noteDrop(e)
			b.group.drop(id)
			n++
		}
	}
	return n
}

// Claim says how entries change their consumer.
type Claim struct {
	Consumer   string
	Now        int64 // ms
	MinIdle    int64 // ms since the last delivery, at least
	Time       int64 // ms; the new time of delivery
	Count      int64 // the new number of deliveries; negative: one more
	KeepCount, // with a negative Count: the number stays
	Force bool // claims what is not pending, too
}

// Claim gives an entry of the stream to a consumer, and reports whether it did: the entry is pending for long
// enough, or Force is set. An entry that is gone is to be removed by Ack instead.
func (b *Changes) Claim(id streamid.ID, how *Claim) bool {
	count := int64(1)
	switch e := b.group.Pending(id); {
	case e == nil && !how.Force:
		return false
	case e != nil && how.MinIdle != 0 && how.Now-e.Time < how.MinIdle:
		return false
	case e != nil:
		count = e.Count
	}
	if how.Count >= 0 {
		count = how.Count
	} else if !how.KeepCount {
		count++
	}
	b.give(id, b.see(how.Consumer, how.Now), how.Time, count)
	return true
}
