package commands

import (
	"errors"
	"strings"

	"mayfly/keyspace"
)

// Keyspace notifications: what happens to items, told to whoever subscribes to it. The option
// notify-keyspace-events says which events are wanted and on which channels:
//
//	__keyspace@<container>__:<id>     the message is the event: what happens to one item
//	__keyevent@<container>__:<event>  the message is the id: where this event happens
//
// The name of a database is its number. Nobody is told of an event before what it tells of is
// committed.

// Events are kinds of events, and the channels on which they are published: the letters of the option
// notify-keyspace-events.
type EventClasses uint32

// The letters in the order in which Redis shows them. Of those that ofAll covers there are some that
// never happen here, since there are no items of that type.
const (
	classGeneric EventClasses = 1 << iota // DEL, EXPIRE and the like, of items of any type
	classString                           // commands on plain keys
	_                                     // l, s, h, z: lists, sets, hashes, sorted sets
	_
	_
	_
	classExpired  // an item has died
	classEvicted  // an item had to go because memory is short
	_             // t: streams
	classDocument // commands on documents; in Redis: on the types of modules
	classNew      // an item comes into being
	toKeyspace
	toKeyevent
	classMissed // what was asked for is not there
)

const (
	classLetters = "g$lshzxetdnKEm"
	// ofAll is what A stands for: all but n and m.
	classAll   = classNew - 1
	classUsage = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
)

// ParseEvents reads the letters; the error is worded as in Redis.
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
			//lint:ignore ST1005 the words are Redis'
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

// An event is one kind of thing that happens to an item.
type eventKind struct {
	class EventClasses
	name  string
}

// The events, with Redis' names where Redis has the case. Whatever is written to an item of whatever
// type, an event tells of it.
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

	eventNew     = eventKind{classNew, "new"}
	eventMissed  = eventKind{classMissed, "keymiss"}
	eventExpired = eventKind{classExpired, "expired"}
	eventEvicted = eventKind{classEvicted, "evicted"}
)

// SetEvents says which events are wanted from now on.
func (h *Broker) SetEventClasses(e EventClasses) { h.classes.Store(uint32(e)) }

// wanted gives the channels on which an event is to be published; 0 if it is not wanted, or if there
// is nobody to hear of it.
func (h *Broker) channelsFor(e eventKind) EventClasses {
	all := EventClasses(h.classes.Load())
	if all&e.class == 0 || h.subscribedSessions.Load() == 0 {
		return 0
	}
	return all & (toKeyspace | toKeyevent)
}

// Died tells the hub that an item has died and is removed: a keyspace's OnDeath.
func (h *Broker) OnDeath(c *keyspace.Container, id string, written keyspace.LSN) {
	wanted := h.channelsFor(eventExpired)
	if wanted == 0 {
		return
	}
	h.queue.push(event{
		name: eventExpired.name, channels: wanted, container: c.Name(), id: strings.Clone(id), lsn: written, bound: true,
	})
	h.ensureHelper()
	if h.queue.len() > longQueue {
		h.deliver()
	}
}

// happened tells whoever wants to know what the command has done to an item. It is called with the
// item's partition locked.
func (x *Context) notify(e eventKind, c *keyspace.Container, id string) {
	if wanted := x.Engine.Broker.channelsFor(e); wanted != 0 {
		x.publish(event{name: e.name, channels: wanted, container: c.Name(), id: strings.Clone(id), bound: true})
	}
}

// post puts a letter into the command's mail, which is sent when the transaction is closed.
func (x *Context) publish(l event) {
	if x.batch == nil {
		x.batch = new(eventBatch)
	}
	l.batch = x.batch
	x.Engine.Broker.queue.push(l)
}

// put stores an item and tells of it.
func (x *Context) put(c *keyspace.Container, id string, kind keyspace.Kind, body string, own int64, e eventKind) {
	x.store(c, id, kind, body, own)
	x.notify(e, c, id)
}

// place stores an item and tells only whether it is new.
func (x *Context) store(c *keyspace.Container, id string, kind keyspace.Kind, body string, own int64) {
	if x.Engine.Broker.channelsFor(eventNew) == 0 {
		x.Tx.Put(c, id, kind, body, own)
		return
	}
	_, found := x.Tx.Get(c, id)
	x.Tx.Put(c, id, kind, body, own)
	if !found {
		x.notify(eventNew, c, id)
	}
}

// remove deletes an item and tells of it, if there is one.
func (x *Context) remove(c *keyspace.Container, id string) bool {
	gone := x.Tx.Delete(c, id)
	if gone {
		x.notify(eventDel, c, id)
	}
	return gone
}

// read gets an item that a user asks for.
func (x *Context) readAny(c *keyspace.Container, id string) (keyspace.Item, bool) {
	it, found := x.Tx.Get(c, id)
	x.countRead(c, id, found)
	return it, found
}

// readBody is the reply to a user who asks for an item's body: null if there is none. It is on the way of
// the commands that come most often, and so hands on no more of the item than the reply needs.
func (x *Context) readBody(c *keyspace.Container, id string) Reply {
	it, found := x.Tx.Get(c, id)
	x.countRead(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

// asked notes that a user has asked for an item, and tells of it if that is not there.
func (x *Context) countRead(c *keyspace.Container, id string, found bool) {
	x.Engine.stats.countRead(x.Session, found)
	if !found {
		x.notify(eventMissed, c, id)
	}
}
