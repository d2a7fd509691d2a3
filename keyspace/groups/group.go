package groups

import (
	"iter"
	"strings"

	"mayfly/keyspace/streamid"

	"github.com/tidwall/btree"
)

// Unknown stands for a number of entries read that cannot be told.
const Unknown = -1

// Group is the state of a consumer group. It changes by [Changes] only.
type Group struct {
	last      streamid.ID
	read      int64 // entries, or Unknown
	consumers btree.Map[string, *Consumer]
	pending   *btree.BTreeG[*Pending] // by id
	oldest    *btree.BTreeG[*Pending] // by time, then id
	memory    int64
}

// Consumer is a consumer of a group.
type Consumer struct {
	name    string
	seen    int64                   // ms
	pending *btree.BTreeG[*Pending] // by id
}

// Pending is an entry that was delivered and is not acknowledged.
type Pending struct {
	ID       streamid.ID
	Time     int64 // ms; the last delivery, by which the group sorts
	Count    int64 // deliveries
	consumer *Consumer
}

// Estimates of memory in bytes. A pending entry has a struct and a place in three trees.
const (
	groupMemory    = 512
	consumerMemory = 256 // besides the name
	pendingMemory  = 108
)

func newTree(less func(a, b *Pending) bool) *btree.BTreeG[*Pending] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

func byID(a, b *Pending) bool { return a.ID.Less(b.ID) }

func byTime(a, b *Pending) bool { return a.Time < b.Time || a.Time == b.Time && a.ID.Less(b.ID) }

// New returns a group without consumers.
func New(last streamid.ID, read int64) *Group {
	return &Group{last: last, read: read, pending: newTree(byID), oldest: newTree(byTime), memory: groupMemory}
}

// Memory estimates the memory of the group in bytes, without its items.
func (g *Group) Memory() int64 { return g.memory }

// Last returns the last delivered id.
func (g *Group) Last() streamid.ID { return g.last }

// Read returns the number of entries read, or [Unknown].
func (g *Group) Read() int64 { return g.read }

// Len returns the number of pending entries.
func (g *Group) Len() int { return g.pending.Len() }

// Pending returns the pending entry of an id, nil if there is none.
func (g *Group) Pending(id streamid.ID) *Pending {
	e, _ := g.pending.Get(&Pending{ID: id})
	return e
}

// First returns the pending entry with the least id, nil if there is none.
func (g *Group) First() *Pending {
	e, _ := g.pending.Min()
	return e
}

// End returns the pending entry with the greatest id, nil if there is none.
func (g *Group) End() *Pending {
	e, _ := g.pending.Max()
	return e
}

// From yields the pending entries from an id on. The group must not change meanwhile.
func (g *Group) From(id streamid.ID) iter.Seq[*Pending] { return from(g.pending, id) }

// Oldest yields the pending entries by the time of their last delivery, then by id, from a time in ms and an
// id on. The group must not change meanwhile.
func (g *Group) Oldest(time int64, id streamid.ID) iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) { g.oldest.Ascend(&Pending{ID: id, Time: time}, yield) }
}

// Consumer returns the consumer of a name, nil if there is none.
func (g *Group) Consumer(name string) *Consumer {
	c, _ := g.consumers.Get(name)
	return c
}

// Consumers yields the consumers by name in ascending order. The group must not change meanwhile.
func (g *Group) Consumers() iter.Seq[*Consumer] {
	return func(yield func(*Consumer) bool) {
		g.consumers.Scan(func(_ string, c *Consumer) bool { return yield(c) })
	}
}

// ConsumersLen returns the number of consumers.
func (g *Group) ConsumersLen() int { return g.consumers.Len() }

// Name returns the consumer's name.
func (c *Consumer) Name() string { return c.name }

// Seen returns when the consumer was seen, in ms.
func (c *Consumer) Seen() int64 { return c.seen }

// Len returns the number of pending entries.
func (c *Consumer) Len() int { return c.pending.Len() }

// From yields the consumer's pending entries from an id on. The group must not change meanwhile.
func (c *Consumer) From(id streamid.ID) iter.Seq[*Pending] { return from(c.pending, id) }

// Consumer returns the name of the consumer that the entry was delivered to.
func (e *Pending) Consumer() string { return e.consumer.name }

func from(t *btree.BTreeG[*Pending], id streamid.ID) iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) { t.Ascend(&Pending{ID: id}, yield) }
}

// consumer returns the consumer of a name, and makes one that is missing.
func (g *Group) consumer(name string) *Consumer {
	c := g.Consumer(name)
	if c == nil {
		c = &Consumer{name: strings.Clone(name), pending: newTree(byID)}
		g.consumers.Set(c.name, c)
		g.memory += consumerMemory + int64(len(name))
	}
	return c
}

// dropConsumer removes a consumer without pending entries.
func (g *Group) dropConsumer(name string) {
	if _, ok := g.consumers.Delete(name); ok {
		g.memory -= consumerMemory + int64(len(name))
	}
}

// put makes an entry pending, or changes it.
func (g *Group) put(id streamid.ID, to *Consumer, time, count int64) *Pending {
	e := g.Pending(id)
	switch {
	case e == nil:
		e = &Pending{ID: id, consumer: to}
		g.pending.Set(e)
		to.pending.Set(e)
		g.memory += pendingMemory
	case e.consumer != to:
		e.consumer.pending.Delete(e)
		e.consumer = to
		to.pending.Set(e)
		fallthrough
	default:
		g.oldest.Delete(e)
	}
	e.Time, e.Count = time, count
	g.oldest.Set(e)
	return e
}

// drop removes a pending entry.
func (g *Group) drop(id streamid.ID) {
	if e, ok := g.pending.Delete(&Pending{ID: id}); ok {
		e.consumer.pending.Delete(e)
		g.oldest.Delete(e)
		g.memory -= pendingMemory
	}
}
