package engine

import (
	"errors"
	"strings"

	"mayfly/keyspace"
)

// Keyspace notifications tell subscribers what happens to items. The option notify-keyspace-events
// selects the classes of events and the channels:
//
//	__keyspace@<container>__:<id>     the message is the name of the event
//	__keyevent@<container>__:<event>  the message is the id of the item
//
// The name of a database is its number. An event of another container comes under its name, or under its
// number to a subscription that matches only that. An event leaves only after its change is committed.

// EventClasses are classes of events, and the channels of their messages: the letters of the option
// notify-keyspace-events.
type EventClasses uint32

// The letters in the order in which Redis shows them. Some classes have no events here, since there are
// no items of their type.
const (
	classGeneric EventClasses = 1 << iota // DEL, EXPIRE and the like, of items of any type
	classString                           // commands on plain keys
	_                                     // l, s, h, z: lists, sets, hashes, sorted sets
	_
	_
	_
	ClassExpired  // an item has died
	classEvicted  // an item was evicted
	_             // t: streams
	classDocument // commands on documents; in Redis those of modules
	ClassNew      // an item is created
	ToKeyspace
	ToKeyevent
	classMissed // a client read a missing item
)

const (
	classLetters = "g$lshzxetdnKEm"
	// ClassAll is the letter A: all classes but n and m.
	ClassAll   = ClassNew - 1
	classUsage = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
)

// ParseEventClasses reads the letters. The error has the words of Redis.
func ParseEventClasses(text string) (EventClasses, error) {
	var e EventClasses
	for _, letter := range text {
		at := strings.IndexRune(classLetters, letter)
		switch {
		case letter == 'A':
			e |= ClassAll
		case at >= 0:
			e |= 1 << at
		default:
			//lint:ignore ST1005 the words of Redis
			return 0, errors.New(classUsage)
		}
	}
	return e, nil
}

// String writes the letters as Redis does, but shows n beside A, too.
func (e EventClasses) String() string {
	var out strings.Builder
	if e&ClassAll == ClassAll {
		out.WriteByte('A')
		e &^= ClassAll
	}
	for i := range len(classLetters) {
		if e&(1<<i) != 0 {
			out.WriteByte(classLetters[i])
		}
	}
	return out.String()
}

// EventKind is a kind of change of an item.
type EventKind struct {
	class EventClasses
	name  string
}

// The kinds of events, with the names of Redis where Redis has the case. Every write of an item has one.
var (
	EventSet         = EventKind{classString, "set"}
	EventAppend      = EventKind{classString, "append"}
	EventIncrBy      = EventKind{classString, "incrby"}
	EventIncrByFloat = EventKind{classString, "incrbyfloat"}
	EventSetRange    = EventKind{classString, "setrange"}

	eventDel        = EventKind{classGeneric, "del"}
	EventExpire     = EventKind{classGeneric, "expire"} // also of documents: EXPIRE has set the member ttl
	EventPersist    = EventKind{classGeneric, "persist"}
	EventCopyTo     = EventKind{classGeneric, "copy_to"}
	EventMoveFrom   = EventKind{classGeneric, "move_from"}
	EventMoveTo     = EventKind{classGeneric, "move_to"}
	EventRenameFrom = EventKind{classGeneric, "rename_from"}
	EventRenameTo   = EventKind{classGeneric, "rename_to"}

	EventDocPut    = EventKind{classDocument, "doc.put"}
	EventDocPatch  = EventKind{classDocument, "doc.patch"}
	EventDocMerge  = EventKind{classDocument, "doc.merge"}
	EventDocTouch  = EventKind{classDocument, "doc.touch"}
	EventDocSetTTL = EventKind{classDocument, "doc.setttl"}
	EventDocRevive = EventKind{classDocument, "doc.revive"}

	EventNew     = EventKind{ClassNew, "new"}
	eventMissed  = EventKind{classMissed, "keymiss"}
	EventExpired = EventKind{ClassExpired, "expired"}
	eventEvicted = EventKind{classEvicted, "evicted"}
)

// SetEventClasses sets the classes of events that are published from now on.
func (b *Broker) SetEventClasses(e EventClasses) { b.classes.Store(uint32(e)) }

// ChannelsFor returns the channels of an event; 0 if its class is not selected or there is no subscriber at
// any node.
func (b *Broker) ChannelsFor(e EventKind) EventClasses {
	all := EventClasses(b.classes.Load())
	if all&e.class == 0 || b.SubscribedSessions.Load() == 0 && !b.eventsWanted.Load() {
		return 0
	}
	return all & (ToKeyspace | ToKeyevent)
}

// DeathsHeard reports whether deaths are published and someone subscribes. It is the DeathsHeard of a
// keyspace.
func (b *Broker) DeathsHeard() bool { return b.ChannelsFor(EventExpired) != 0 }

// OnDeath publishes the death of an item. It is the OnDeath of a keyspace.
func (b *Broker) OnDeath(c *keyspace.Container, id string, written keyspace.LSN) {
	wanted := b.ChannelsFor(EventExpired)
	if wanted == 0 {
		return
	}
	b.Queue.push(Event{
		name: EventExpired.name, channels: wanted, container: c, id: strings.Clone(id), lsn: written, Bound: true,
	})
	if !b.held.Load() {
		b.ensureHelper()
	}
	if b.Queue.Len() > LongQueue {
		b.deliverAny()
	}
}

// Notify publishes an event of an item. The item's partition must be locked.
func (x *Context) Notify(e EventKind, c *keyspace.Container, id string) {
	if wanted := x.Engine.Broker.ChannelsFor(e); wanted != 0 {
		x.Publish(Event{name: e.name, channels: wanted, container: c, id: strings.Clone(id), Bound: true})
	}
}

// Publish adds an event to the command's batch, which is flushed after the transaction.
func (x *Context) Publish(ev Event) {
	if x.script != nil {
		x.script.hold(ev)
		return
	}
	if x.Batch == nil {
		x.Batch = new(eventBatch)
	}
	ev.batch = x.Batch
	x.Batch.cost += x.Engine.Broker.costOf(&ev)
	x.Engine.Broker.Queue.push(ev)
}

// Put stores an item and publishes an event of kind e.
func (x *Context) Put(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64, e EventKind) {
	x.Store(c, id, kind, body, expireAt)
	x.Notify(e, c, id)
}

// Store stores an item and publishes only whether it is new.
func (x *Context) Store(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64) {
	x.StoreEncoded(c, id, kind, body, expireAt, keyspace.Chosen)
}

// StoreEncoded is store for an item whose encoding is known.
func (x *Context) StoreEncoded(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64, n keyspace.Encoding) {
	x.Work += int64(len(body))
	if x.Engine.Broker.ChannelsFor(EventNew) == 0 {
		x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
		return
	}
	_, found := x.Tx.Get(c, id)
	x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
	if !found {
		x.Notify(EventNew, c, id)
	}
}

// Remove deletes an item and publishes that. It reports whether there was one.
func (x *Context) Remove(c *keyspace.Container, id string) bool {
	gone := x.Tx.Delete(c, id)
	if gone {
		x.Notify(eventDel, c, id)
	}
	return gone
}

// Read returns an item and counts the read.
func (x *Context) Read(c *keyspace.Container, id string) (keyspace.Item, bool) {
	it, found := x.Tx.Get(c, id)
	x.CountRead(c, id, found)
	return it, found
}

// ReadBody is the reply of a read of an item's body, null if there is none. It passes on no more of the
// item than the reply needs, which saves 4 % of BenchmarkExecute/GET.
func (x *Context) ReadBody(c *keyspace.Container, id string) Reply {
	it, found := x.Tx.Get(c, id)
	x.CountRead(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

// CountRead counts that a client has read an item. It publishes the read of a missing one.
func (x *Context) CountRead(c *keyspace.Container, id string, found bool) {
	x.Engine.Stats.countRead(x.Session, found)
	if !found {
		x.Notify(eventMissed, c, id)
	}
}

// Peeking returns a Run whose reads are no accesses to items, for eviction and OBJECT IDLETIME.
func Peeking(run Run) Run {
	return func(x *Context) Reply { return x.KeepingAccesses(true, run) }
}

// KeepingAccesses runs a command whose reads leave accesses as they are, or do not.
func (x *Context) KeepingAccesses(keep bool, run Run) Reply {
	was := x.Tx.KeepAccesses
	defer func() { x.Tx.KeepAccesses = was }()
	x.Tx.KeepAccesses = keep
	return run(x)
}

func EventJSON(name string) EventKind { return EventKind{classDocument, name} }
