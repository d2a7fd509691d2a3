package commands

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
// The name of a database is its number. An event of another container comes under its name, or under its number
// to a subscription that matches only that. An event leaves only after its change is committed.

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
	classExpired  // an item has died
	classEvicted  // an item was evicted
	_             // t: streams
	classDocument // commands on documents; in Redis those of modules
	classNew      // an item is created
	toKeyspace
	toKeyevent
	classMissed // a client read a missing item
)

const (
	classLetters = "g$lshzxetdnKEm"
	// classAll is the letter A: all classes but n and m.
	classAll   = classNew - 1
	classUsage = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
)

// ParseEventClasses reads the letters. The error has the words of Redis.
func ParseEventClasses(text string) (EventClasses, error) {
	var e EventClasses
	for _, letter := range text {
		at := strings.IndexRune(classLetters, letter)
		switch {
		case letter == 'A':
			e |= classAll
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
	if e&classAll == classAll {
		out.WriteByte('A')
		e &^= classAll
	}
	for i := range len(classLetters) {
		if e&(1<<i) != 0 {
			out.WriteByte(classLetters[i])
		}
	}
	return out.String()
}

// eventKind is a kind of change of an item.
type eventKind struct {
	class EventClasses
	name  string
}

// The kinds of events, with the names of Redis where Redis has the case. Every write of an item has one.
var (
	eventSet         = eventKind{classString, "set"}
	eventAppend      = eventKind{classString, "append"}
	eventIncrBy      = eventKind{classString, "incrby"}
	eventIncrByFloat = eventKind{classString, "incrbyfloat"}
	eventSetRange    = eventKind{classString, "setrange"}

	eventDel        = eventKind{classGeneric, "del"}
	eventExpire     = eventKind{classGeneric, "expire"} // also of documents: EXPIRE has set the member ttl
	eventPersist    = eventKind{classGeneric, "persist"}
	eventCopyTo     = eventKind{classGeneric, "copy_to"}
	eventMoveFrom   = eventKind{classGeneric, "move_from"}
	eventMoveTo     = eventKind{classGeneric, "move_to"}
	eventRenameFrom = eventKind{classGeneric, "rename_from"}
	eventRenameTo   = eventKind{classGeneric, "rename_to"}

	eventDocPut    = eventKind{classDocument, "doc.put"}
	eventDocPatch  = eventKind{classDocument, "doc.patch"}
	eventDocMerge  = eventKind{classDocument, "doc.merge"}
	eventDocTouch  = eventKind{classDocument, "doc.touch"}
	eventDocSetTTL = eventKind{classDocument, "doc.setttl"}
	eventDocRevive = eventKind{classDocument, "doc.revive"}

	eventNew     = eventKind{classNew, "new"}
	eventMissed  = eventKind{classMissed, "keymiss"}
	eventExpired = eventKind{classExpired, "expired"}
	eventEvicted = eventKind{classEvicted, "evicted"}
)

// SetEventClasses sets the classes of events that are published from now on.
func (b *Broker) SetEventClasses(e EventClasses) { b.classes.Store(uint32(e)) }

// channelsFor returns the channels of an event; 0 if its class is not selected or there is no subscriber at any node.
func (b *Broker) channelsFor(e eventKind) EventClasses {
	all := EventClasses(b.classes.Load())
	if all&e.class == 0 || b.subscribedSessions.Load() == 0 && !b.eventsWanted.Load() {
		return 0
	}
	return all & (toKeyspace | toKeyevent)
}

// DeathsHeard reports whether deaths are published and someone subscribes. It is the DeathsHeard of a keyspace.
func (b *Broker) DeathsHeard() bool { return b.channelsFor(eventExpired) != 0 }

// OnDeath publishes the death of an item. It is the OnDeath of a keyspace.
func (b *Broker) OnDeath(c *keyspace.Container, id string, written keyspace.LSN) {
	wanted := b.channelsFor(eventExpired)
	if wanted == 0 {
		return
	}
	b.queue.push(event{
		name: eventExpired.name, channels: wanted, container: c, id: strings.Clone(id), lsn: written, bound: true,
	})
	b.ensureHelper()
	if b.queue.len() > longQueue {
		b.deliverAny()
	}
}

// notify publishes an event of an item. The item's partition must be locked.
func (x *Context) notify(e eventKind, c *keyspace.Container, id string) {
	if wanted := x.Engine.Broker.channelsFor(e); wanted != 0 {
		x.publish(event{name: e.name, channels: wanted, container: c, id: strings.Clone(id), bound: true})
	}
}

// publish adds an event to the command's batch, which is flushed after the transaction.
func (x *Context) publish(ev event) {
	if x.script != nil {
		x.script.hold(ev)
		return
	}
	if x.batch == nil {
		x.batch = new(eventBatch)
	}
	ev.batch = x.batch
	x.batch.cost += x.Engine.Broker.costOf(&ev)
	x.Engine.Broker.queue.push(ev)
}

// put stores an item and publishes an event of kind e.
func (x *Context) put(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64, e eventKind) {
	x.store(c, id, kind, body, expireAt)
	x.notify(e, c, id)
}

// store stores an item and publishes only whether it is new.
func (x *Context) store(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64) {
	x.storeEncoded(c, id, kind, body, expireAt, keyspace.Chosen)
}

// storeEncoded is store for an item whose encoding is known.
func (x *Context) storeEncoded(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64, n keyspace.Encoding) {
	x.work += int64(len(body))
	if x.Engine.Broker.channelsFor(eventNew) == 0 {
		x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
		return
	}
	_, found := x.Tx.Get(c, id)
	x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
	if !found {
		x.notify(eventNew, c, id)
	}
}

// remove deletes an item and publishes that. It reports whether there was one.
func (x *Context) remove(c *keyspace.Container, id string) bool {
	gone := x.Tx.Delete(c, id)
	if gone {
		x.notify(eventDel, c, id)
	}
	return gone
}

// read returns an item and counts the read.
func (x *Context) read(c *keyspace.Container, id string) (keyspace.Item, bool) {
	it, found := x.Tx.Get(c, id)
	x.countRead(c, id, found)
	return it, found
}

// readBody is the reply of a read of an item's body, null if there is none. It passes on no more of the
// item than the reply needs, which saves 4 % of BenchmarkExecute/GET.
func (x *Context) readBody(c *keyspace.Container, id string) Reply {
	it, found := x.Tx.Get(c, id)
	x.countRead(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

// countRead counts that a client has read an item. It publishes the read of a missing one.
func (x *Context) countRead(c *keyspace.Container, id string, found bool) {
	x.Engine.stats.countRead(x.Session, found)
	if !found {
		x.notify(eventMissed, c, id)
	}
}

// peeking returns a Run whose reads are no accesses to items, for eviction and OBJECT IDLETIME.
func peeking(run Run) Run {
	return func(x *Context) Reply { return x.keepingAccesses(true, run) }
}

// keepingAccesses runs a command whose reads leave accesses as they are, or do not.
func (x *Context) keepingAccesses(keep bool, run Run) Reply {
	was := x.Tx.KeepAccesses
	defer func() { x.Tx.KeepAccesses = was }()
	x.Tx.KeepAccesses = keep
	return run(x)
}
