package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"mayfly/keyspace"
)

// Clients may cache what they read (CLIENT TRACKING):
//
//  1. A command that reads ids notes them in the keyspace, in the lock of the read: see [keyspace.Tx.Track].
//  2. What changes is pushed to the broker's queue under the locks of the change, with its LSN.
//     So each client is told in the order of the changes, and of none that is not durable.
//  3. While a command of a client that caches runs, its messages are held back. So none about an id overtakes
//     the reply that has read it, and its own changes come after their reply.
//
// The names of an id are those by which libraries look into their caches: the key of a read by key. Of DOC.*
// they are the id, the container (libraries that take the first argument for the key), and both.

// Tracking is how a client caches. The zero value is not at all.
type Tracking struct {
	On, Bcast, OptIn, OptOut, NoLoop bool

	Redirect int64    // the client that is told instead; 0: itself
	Prefixes []string // of Bcast, sorted
	Caching  bool     // CLIENT CACHING counts for the running command, or for the next one
	Broken   bool     // the client of Redirect has gone

	Target  *Session // of Redirect; nil: the client itself
	reads   bool     // what the client reads is noted
	changed bool     // the keyspace is to learn whether there are prefixes
}

// look notes whether what the client reads is noted.
func (t *Tracking) look() {
	t.reads = t.On && !t.Bcast && (!t.OptIn || t.Caching) && !(t.OptOut && t.Caching)
}

// Redirection is the client that is told: 0 itself, -1 none.
func (t *Tracking) Redirection() int64 {
	if !t.On {
		return -1
	}
	return t.Redirect
}

// SetCaching is CLIENT CACHING for the next command.
func (s *Session) SetCaching(on bool) {
	s.Tracking.Caching = on
	s.Tracking.look()
}

// endCaching ends CLIENT CACHING after a command: not within MULTI, and not after a CLIENT command.
func (s *Session) endCaching(args []string) {
	if !s.Multi.Open && !strings.EqualFold(args[0], "client") {
		s.SetCaching(false)
	}
}

// trackers are the clients that cache. The broker's mutex protects them.
type trackers struct {
	byID     map[int64]*Session
	prefixes map[string][]*Session // of those with Bcast
	lengths  map[int]int           // how many prefixes have a length in bytes
	ids      sync.Map              // the keys of byID; needs no lock

	broadcastMu sync.Mutex // held while the keyspace learns whether there are prefixes; precedes the broker's
}

// MaxPrefix is the largest size in bytes of a prefix. Names are looked up by all lengths of prefixes.
const MaxPrefix = 1 << 10

// prefixCost is about what a prefix takes in bytes besides itself.
const prefixCost = 200

// Track makes a client cache as t says, or not at all. Its prefixes are new ones. The keyspace learns of them
// with shareBroadcast. The error is [ErrClientMemory].
func (e *Engine) Track(s *Session, t Tracking) error {
	b := &e.Broker
	if size := sizeOfPrefixes(t.Prefixes); !s.Memory.Reserve(size) {
		return ErrClientMemory
	}
	t.changed = s.Tracking.changed || t.Bcast || s.Tracking.Bcast
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.On {
		s.Receiver.Hold()
		if b.trackers.byID == nil {
			b.trackers.byID, b.trackers.prefixes, b.trackers.lengths = map[int64]*Session{}, map[string][]*Session{}, map[int]int{}
		}
		b.trackers.byID[s.ID] = s
		b.trackers.ids.Store(s.ID, nil)
		for _, p := range t.Prefixes {
			b.trackers.add(p, s)
		}
		t.Prefixes = append(t.Prefixes, s.Tracking.Prefixes...)
		slices.Sort(t.Prefixes)
	} else {
		delete(b.trackers.byID, s.ID)
		b.trackers.ids.Delete(s.ID)
		for _, p := range s.Tracking.Prefixes {
			b.trackers.remove(p, s)
		}
		s.Memory.Release(sizeOfPrefixes(s.Tracking.Prefixes))
	}
	t.look()
	s.Update(func() { s.Tracking = t })
	return nil
}

// shareBroadcast has the keyspace know whether there are prefixes, if the session has changed its own. The
// caller holds no locks of the keyspace.
func (e *Engine) shareBroadcast(s *Session) {
	if !s.Tracking.changed {
		return
	}
	s.Update(func() { s.Tracking.changed = false })
	e.Broker.trackers.broadcastMu.Lock()
	defer e.Broker.trackers.broadcastMu.Unlock()
	if ks := e.Keyspace(); ks != nil {
		_, prefixes := e.Broker.Trackers()
		ks.SetBroadcast(prefixes > 0)
	}
}

func sizeOfPrefixes(list []string) (size int) {
	for _, p := range list {
		size += len(p) + prefixCost
	}
	return size
}

func (t *trackers) add(prefix string, s *Session) {
	if t.prefixes[prefix] == nil {
		t.lengths[len(prefix)]++
	}
	t.prefixes[prefix] = append(t.prefixes[prefix], s)
}

func (t *trackers) remove(prefix string, s *Session) {
	list := slices.DeleteFunc(t.prefixes[prefix], func(other *Session) bool { return other == s })
	if t.prefixes[prefix] = list; len(list) > 0 {
		return
	}
	delete(t.prefixes, prefix)
	if t.lengths[len(prefix)]--; t.lengths[len(prefix)] == 0 {
		delete(t.lengths, len(prefix))
	}
}

// Trackers returns the number of clients that cache, and of their prefixes.
func (b *Broker) Trackers() (clients, prefixes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.trackers.byID), len(b.trackers.prefixes)
}

// Caches reports whether a client caches. It is the Caches of a keyspace.
func (b *Broker) Caches(client int64) bool {
	_, found := b.trackers.ids.Load(client)
	return found
}

// namesContainer reports whether the command names a container with its ids.
func (r *Row) namesContainer() bool { return strings.HasPrefix(r.Name, "doc.") }

// tracks reports whether the ids of a command are noted for a client.
func (s *Session) tracks(r *Row) bool {
	return s.Tracking.reads && r.Flags&ReadOnly != 0 && r.Items.First > 0
}

// track notes that a command is about to read ids. The transaction has locked their partitions. It reports
// whether there is such a container.
func (x *Context) track(r *Row, args, ids []string) bool {
	name := x.Session.Database
	if r.namesContainer() {
		name = args[1]
	}
	c := x.Tx.Container(name)
	if c == nil {
		return false
	}
	for _, id := range ids {
		x.Tx.Track(c, id, keyspace.ReaderOf(x.Session.ID, r.namesContainer()))
	}
	return true
}

// trimNotes has ids go that commands before this one have noted beyond the limit, as Redis does. Clients are
// told before the reply what has gone.
func (e *Engine) trimNotes(s *Session) {
	if e.Keyspace().TrimNotes() && !s.OnLoop {
		e.Broker.Drain()
	}
}

// trackForwarded notes what a command is about to read at the leader. A change that is not applied here yet
// is told later, and the reply has those that are. A container that is not known here yet has no notes: the
// client is told after the reply that it may keep nothing.
func (e *Engine) trackForwarded(s *Session, r *Row, args []string) {
	ids, ks := r.ids(nil, args), e.Keyspace()
	if r.Scope == ScopeScript {
		ids = scriptKeys(args)
	}
	if !s.Tracking.reads || r.Flags&ReadOnly == 0 && r.Scope != ScopeScript || len(ids) == 0 || ks == nil {
		return
	}
	e.trimNotes(s)
	s.Receiver.Hold()
	var tx keyspace.Tx
	ks.BeginKeys(&tx, ids)
	x := Context{Tx: &tx, Session: s}
	known := x.track(r, args, ids)
	if tx.Close(); !known {
		e.Broker.OnTold(&keyspace.Told{Clients: []int64{s.ID}})
	}
}

// stepsOfChange is the cost of telling a change, or a reader of it, in steps as of matching a message. From
// some thousands on the helper tells them: others that publish or change something meanwhile do not.
const stepsOfChange = 512

// OnTold tells clients that cache. It is the OnTold of a keyspace.
func (b *Broker) OnTold(t *keyspace.Told) {
	cost := len(t.Changes) + len(t.Clients)
	for i := range t.Changes {
		cost += len(t.Changes[i].Readers)
	}
	b.Queue.push(Event{told: t, lsn: t.LSN, toldCost: cost * stepsOfChange})
	b.told.Add(1)
	b.ensureHelper()
	if b.Queue.Len() > LongQueue {
		b.deliverAny()
	}
}

// TellAll tells all clients that cache that nothing holds any more.
func (b *Broker) TellAll() {
	if clients, _ := b.Trackers(); clients > 0 {
		b.OnTold(&keyspace.Told{All: true})
	}
}

// invalidation is a message to clients that cache, in its forms.
type invalidation struct {
	lsn   keyspace.LSN
	names Reply
	forms [2]*Message // as a message on a channel, and as a push of its own
}

// invalidationChannel is where clients of RESP2 are told.
const invalidationChannel = "__redis__:invalidate"

// to sends the message to a client that caches, or to the one that is told instead. The broker is locked.
func (m *invalidation) to(s *Session) {
	to := s
	if s.Tracking.Target != nil {
		if to = s.Tracking.Target; to.ended.Load() || to.Disconnected.Load() {
			s.Update(func() { s.Tracking.Broken = true })
			if s.proto() > 2 {
				s.Receiver.Deliver(&Message{Reply: Push(Bulk("tracking-redir-broken"), Integer(s.Tracking.Redirect)), LSN: m.lsn})
			}
			return
		}
	}
	form := 0
	switch proto := to.proto(); {
	case to.Subscribed.total() == 0 && !to.Tracking.On, proto < 3 && s.Tracking.Target == nil:
		return
	case proto > 2:
		form = 1
	case to.Subscribed.total() == 0:
		return
	}
	if m.forms[form] == nil {
		reply := Push(Bulk("message"), Bulk(invalidationChannel), m.names)
		if form == 1 {
			reply = Push(Bulk("invalidate"), m.names)
		}
		m.forms[form] = &Message{Reply: reply, LSN: m.lsn}
	}
	to.Receiver.Deliver(m.forms[form])
}

// proto returns the protocol of the session. Safe for concurrent use.
func (s *Session) proto() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Proto
}

// toldAtOnce is the number of changes that are told with the broker locked once: others wait for its lock.
const toldAtOnce = 32

// deliverTold tells clients that cache what has changed.
func (b *Broker) deliverTold(t *keyspace.Told) {
	var names map[string][]string // by prefix
	var seen map[string]bool
	for changes := range slices.Chunk(t.Changes, toldAtOnce) {
		b.mu.Lock()
		for i := range changes {
			b.tellReaders(t, &changes[i])
		}
		if len(b.trackers.prefixes) > 0 {
			if names == nil {
				names, seen = map[string][]string{}, map[string]bool{}
			}
			b.trackers.collect(changes, names, seen)
		}
		b.mu.Unlock()
	}
	b.tellRestricted(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tellPrefixes(t, names)
	everything := invalidation{lsn: t.LSN, names: Null}
	if t.All || t.Broadcast {
		for _, s := range b.trackers.byID {
			if t.All || s.Tracking.Bcast {
				everything.to(s)
			}
		}
	}
	for _, client := range t.Clients {
		if s := b.trackers.byID[client]; s != nil && !t.All && !s.Tracking.Bcast {
			everything.to(s)
		}
	}
}

// tellReaders tells those who have read an id.
func (b *Broker) tellReaders(t *keyspace.Told, c *keyspace.Change) {
	if len(c.Readers) == 0 {
		return
	}
	byKey := invalidation{lsn: t.LSN, names: Bulks(c.ID)}
	document := invalidation{lsn: t.LSN, names: Bulks(namesOf(c)...)}
	for _, r := range c.Readers {
		s := b.trackers.byID[r.Client()]
		switch {
		case s == nil || s.Tracking.Bcast || s.Tracking.NoLoop && s.ID == t.By:
		case r.Document():
			document.to(s)
		default:
			byKey.to(s)
		}
	}
}

// namesOf returns the names of an id that was read with its container: the last is the form of exports.
func namesOf(c *keyspace.Change) []string {
	name := c.Container.Name()
	return []string{c.ID, name, name + "/" + c.ID}
}

// collect adds the names of changes to those of their prefixes, each name once.
func (t *trackers) collect(changes []keyspace.Change, names map[string][]string, seen map[string]bool) {
	for i := range changes {
		list := namesOf(&changes[i])
		if changes[i].Container.IsDatabase() {
			list = list[:1]
		}
		for _, name := range list {
			if seen[name] {
				continue
			}
			seen[name] = true
			for length := range t.lengths {
				if length <= len(name) && t.prefixes[name[:length]] != nil {
					names[name[:length]] = append(names[name[:length]], name)
				}
			}
		}
	}
}

// tellPrefixes tells those who want to know all that changes under a prefix: each prefix its names at once.
func (b *Broker) tellPrefixes(t *keyspace.Told, names map[string][]string) {
	for _, prefix := range slices.Sorted(maps.Keys(names)) {
		m := invalidation{lsn: t.LSN, names: Bulks(names[prefix]...)}
		for _, s := range b.trackers.prefixes[prefix] {
			if s.rights.OpenNow() && (!s.Tracking.NoLoop || s.ID != t.By) {
				m.to(s)
			}
		}
	}
}

// tellRestricted is tellPrefixes for those who may not read all: each is told what it may. The broker is not
// locked while that is found.
func (b *Broker) tellRestricted(t *keyspace.Told) {
	b.mu.Lock()
	var list []*Session
	for _, s := range b.trackers.byID {
		if len(b.trackers.prefixes) == 0 {
			break // nobody has BCAST
		}
		if s.Tracking.Bcast && !s.rights.OpenNow() && (!s.Tracking.NoLoop || s.ID != t.By) {
			list = append(list, s)
		}
	}
	b.mu.Unlock()
	for _, s := range list {
		one := trackers{prefixes: map[string][]*Session{}, lengths: map[int]int{}}
		b.mu.Lock()
		for _, p := range s.Tracking.Prefixes {
			one.add(p, s)
		}
		b.mu.Unlock()
		names, seen := map[string][]string{}, map[string]bool{}
		for i := range t.Changes {
			if c := &t.Changes[i]; s.rights.MayReadNow(c.Container.Name(), c.ID) {
				one.collect(t.Changes[i:i+1], names, seen)
			}
		}
		b.mu.Lock()
		if b.trackers.byID[s.ID] == s {
			for _, prefix := range slices.Sorted(maps.Keys(names)) {
				(&invalidation{lsn: t.LSN, names: Bulks(names[prefix]...)}).to(s)
			}
		}
		b.mu.Unlock()
	}
}
