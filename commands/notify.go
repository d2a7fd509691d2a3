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
type Events uint32

// The letters in the order in which Redis shows them. Of those that ofAll covers there are some that
// never happen here, since there are no items of that type.
const (
	ofGeneric Events = 1 << iota // DEL, EXPIRE and the like, of items of any type
	ofString                     // commands on plain keys
	_                            // l, s, h, z: lists, sets, hashes, sorted sets
	_
	_
	_
	ofExpired  // an item has died
	ofEvicted  // an item had to go because memory is short
	_          // t: streams
	ofDocument // commands on documents; in Redis: on the types of modules
	ofNew      // an item comes into being
	toKeyspace
	toKeyevent
	ofMissed // what was asked for is not there
)

const (
	eventLetters = "g$lshzxetdnKEm"
	// ofAll is what A stands for: all but n and m.
	ofAll      = ofNew - 1
	eventUsage = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
)

// ParseEvents reads the letters; the error is worded as in Redis.
func ParseEvents(text string) (Events, error) {
	var e Events
	for _, letter := range text {
		at := strings.IndexRune(eventLetters, letter)
		switch {
		case letter == 'A':
			e |= ofAll
		case at >= 0:
			e |= 1 << at
		default:
			//lint:ignore ST1005 the words are Redis'
			return 0, errors.New(eventUsage)
		}
	}
	return e, nil
}

// String writes the letters as Redis does, but shows n beside A, too.
func (e Events) String() string {
	var out strings.Builder
	if e&ofAll == ofAll {
		out.WriteByte('A')
		e &^= ofAll
	}
	for i := range len(eventLetters) {
		if e&(1<<i) != 0 {
			out.WriteByte(eventLetters[i])
		}
	}
	return out.String()
}

// An event is one kind of thing that happens to an item.
type event struct {
	of   Events
	name string
}

// The events, with Redis' names where Redis has the case. Whatever is written to an item of whatever
// type, an event tells of it.
var (
	eventSet         = event{ofString, "set"}
	eventAppend      = event{ofString, "append"}
	eventIncrBy      = event{ofString, "incrby"}
	eventIncrByFloat = event{ofString, "incrbyfloat"}
	eventSetRange    = event{ofString, "setrange"}

	eventDel        = event{ofGeneric, "del"}
	eventExpire     = event{ofGeneric, "expire"} // also of documents: EXPIRE has set the member ttl
	eventPersist    = event{ofGeneric, "persist"}
	eventCopyTo     = event{ofGeneric, "copy_to"}
	eventMoveFrom   = event{ofGeneric, "move_from"}
	eventMoveTo     = event{ofGeneric, "move_to"}
	eventRenameFrom = event{ofGeneric, "rename_from"}
	eventRenameTo   = event{ofGeneric, "rename_to"}

	eventDocPut    = event{ofDocument, "doc.put"}
	eventDocPatch  = event{ofDocument, "doc.patch"}
	eventDocMerge  = event{ofDocument, "doc.merge"}
	eventDocTouch  = event{ofDocument, "doc.touch"}
	eventDocSetTTL = event{ofDocument, "doc.setttl"}

	eventNew     = event{ofNew, "new"}
	eventMissed  = event{ofMissed, "keymiss"}
	eventExpired = event{ofExpired, "expired"}
	eventEvicted = event{ofEvicted, "evicted"}
)

// SetEvents says which events are wanted from now on.
func (h *Hub) SetEvents(e Events) { h.events.Store(uint32(e)) }

// wanted gives the channels on which an event is to be published; 0 if it is not wanted, or if there
// is nobody to hear of it.
func (h *Hub) wanted(e event) Events {
	all := Events(h.events.Load())
	if all&e.of == 0 || h.subscribers.Load() == 0 {
		return 0
	}
	return all & (toKeyspace | toKeyevent)
}

// Died tells the hub that an item has died and is removed: a keyspace's OnDeath.
func (h *Hub) Died(c *keyspace.Container, id string, written keyspace.LSN) {
	wanted := h.wanted(eventExpired)
	if wanted == 0 {
		return
	}
	h.queue.post(letter{
		event: eventExpired.name, wanted: wanted, container: c.Name(), id: strings.Clone(id), ticket: written, bound: true,
	})
	h.sendForHelp()
	if h.queue.length() > manyLetters {
		h.carry()
	}
}

// happened tells whoever wants to know what the command has done to an item. It is called with the
// item's partition locked.
func (x *Context) happened(e event, c *keyspace.Container, id string) {
	if wanted := x.Engine.Hub.wanted(e); wanted != 0 {
		x.post(letter{event: e.name, wanted: wanted, container: c.Name(), id: strings.Clone(id), bound: true})
	}
}

// post puts a letter into the command's mail, which is sent when the transaction is closed.
func (x *Context) post(l letter) {
	if x.mail == nil {
		x.mail = new(mail)
	}
	l.mail = x.mail
	x.Engine.Hub.queue.post(l)
}

// put stores an item and tells of it.
func (x *Context) put(c *keyspace.Container, id string, kind keyspace.Kind, body string, own int64, e event) {
	x.place(c, id, kind, body, own)
	x.happened(e, c, id)
}

// place stores an item and tells only whether it is new.
func (x *Context) place(c *keyspace.Container, id string, kind keyspace.Kind, body string, own int64) {
	if x.Engine.Hub.wanted(eventNew) == 0 {
		x.Tx.Put(c, id, kind, body, own)
		return
	}
	_, found := x.Tx.Get(c, id)
	x.Tx.Put(c, id, kind, body, own)
	if !found {
		x.happened(eventNew, c, id)
	}
}

// remove deletes an item and tells of it, if there is one.
func (x *Context) remove(c *keyspace.Container, id string) bool {
	gone := x.Tx.Delete(c, id)
	if gone {
		x.happened(eventDel, c, id)
	}
	return gone
}

// read gets an item that a user asks for.
func (x *Context) read(c *keyspace.Container, id string) (keyspace.Item, bool) {
	it, found := x.Tx.Get(c, id)
	x.asked(c, id, found)
	return it, found
}

// readBody is the reply to a user who asks for an item's body: null if there is none. It is on the way of
// the commands that come most often, and so hands on no more of the item than the reply needs.
func (x *Context) readBody(c *keyspace.Container, id string) Reply {
	it, found := x.Tx.Get(c, id)
	x.asked(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

// asked notes that a user has asked for an item, and tells of it if that is not there.
func (x *Context) asked(c *keyspace.Container, id string, found bool) {
	x.Engine.stats.asked(x.Session, found)
	if !found {
		x.happened(eventMissed, c, id)
	}
}
