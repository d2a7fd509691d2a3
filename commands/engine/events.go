package engine

import (
	"strings"

	"mayfly/commands/events"
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

// SetEventClasses sets the classes of events that are published from now on.
func (b *Broker) SetEventClasses(e events.Classes) { b.classes.Store(uint32(e)) }

// ChannelsFor returns the channels of an event; 0 if its class is not selected or there is no subscriber at
// any node.
func (b *Broker) ChannelsFor(e events.Kind) events.Classes {
	all := events.Classes(b.classes.Load())
	if all&e.Class == 0 || b.SubscribedSessions.Load() == 0 && !b.eventsWanted.Load() {
		return 0
	}
	return all & (events.ToKeyspace | events.ToKeyevent)
}

// DeathsHeard reports whether deaths are published and someone subscribes. It is the DeathsHeard of a
// keyspace.
func (b *Broker) DeathsHeard() bool {
	for _, e := range []events.Kind{events.Expired, events.HExpired, events.SExpired, events.ZExpired} {
		if b.ChannelsFor(e) != 0 {
			return true
		}
	}
	return false
}

// OnShed publishes the deaths of elements of a key. It is the OnShed of a keyspace.
func (b *Broker) OnShed(c *keyspace.Container, id string, kind keyspace.Kind, gone bool, written keyspace.LSN) {
	e := events.HExpired
	switch kind {
	case keyspace.SetKind:
		e = events.SExpired
	case keyspace.ZSetKind:
		e = events.ZExpired
	}
	b.death(e, c, id, written)
	if gone {
		b.death(events.Del, c, id, written)
	}
}

// OnDeath publishes the death of an item. It is the OnDeath of a keyspace.
func (b *Broker) OnDeath(c *keyspace.Container, id string, written keyspace.LSN) {
	b.death(events.Expired, c, id, written)
}

func (b *Broker) death(e events.Kind, c *keyspace.Container, id string, written keyspace.LSN) {
	wanted := b.ChannelsFor(e)
	if wanted == 0 {
		return
	}
	b.Queue.push(Event{
		name: e.Name, channels: wanted, container: c, id: strings.Clone(id), lsn: written, Bound: true,
	})
	if !b.held.Load() {
		b.ensureHelper()
	}
	if b.Queue.Len() > LongQueue {
		b.deliverAny()
	}
}

// Notify publishes an event of an item. The item's partition must be locked.
func (x *Context) Notify(e events.Kind, c *keyspace.Container, id string) {
	if wanted := x.Engine.Broker.ChannelsFor(e); wanted != 0 {
		x.Publish(Event{name: e.Name, channels: wanted, container: c, id: strings.Clone(id), Bound: true})
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
func (x *Context) Put(c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64, e events.Kind) {
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
	if x.Engine.Broker.ChannelsFor(events.New) == 0 {
		x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
		return
	}
	_, found := x.Tx.Get(c, id)
	x.Tx.PutEncoded(c, id, kind, body, expireAt, n)
	if !found {
		x.Notify(events.New, c, id)
	}
}

// Remove deletes an item and publishes that. It reports whether there was one.
func (x *Context) Remove(c *keyspace.Container, id string) bool {
	gone := x.Tx.Delete(c, id)
	if gone {
		x.Notify(events.Del, c, id)
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
	switch {
	case !found:
		return Null
	case it.Kind.IsCollection():
		return Fail(ErrWrongType)
	}
	return Bulk(it.Body)
}

// CountRead counts that a client has read an item. It publishes the read of a missing one.
func (x *Context) CountRead(c *keyspace.Container, id string, found bool) {
	x.Engine.Stats.countRead(x.Session, found)
	if !found {
		x.Notify(events.Missed, c, id)
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
