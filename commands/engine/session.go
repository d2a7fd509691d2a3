package engine

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/access"
	"mayfly/commands/events"
	"mayfly/commands/waiting"
	"mayfly/expiry"
	"mayfly/keyspace"
)

// Session is the state of one connection that commands read and change. It belongs to the goroutine that
// serves the connection. Other goroutines may read what is [listed], and what is atomic.
type Session struct {
	ID    int64  // unique since the start, from 1
	Addr  string // of the client, host:port or path:0
	LAddr string // of the server

	Authentication
	Serving
	listed

	Receiver      Receiver      // takes the session's messages
	Memory        *ClientMemory // held for the client; nil if not counted
	Replies       ReplyMode
	Revealed      keyspace.LSN  // covers everything that any reply has revealed
	subscriptions subscriptions // protected by the broker's mutex

	running
	Multi  transaction
	script scriptSession
	nodes
}

// Authentication is what a session knows of its client's password, and of its user.
type Authentication struct {
	Authenticated atomic.Bool // the client has given a password, or needed none
	access.Guesser
	rights access.Holder
}

// Serving is how a session is served. Its server sets it before the first command.
type Serving struct {
	OnLoop bool // other sessions wait for this one's commands: defer slow ones
	Paced  bool // defer commands that compute for long, until the session has a turn for one

	// Yield, if not nil, lets other sessions have their turn within a long command. It is called without
	// locks.
	Yield func()
	// Abandoned reports whether nothing waits for the running command any more: the client has left or the
	// server stops. It may cost a system call. Nil: never.
	Abandoned       func() bool
	AbandonInterval time.Duration // see watch
	ExecTime        time.Duration // see maxExecTime

	// Disconnected is set when others disconnect the client, or before it can see that its connection ends.
	// No listing shows the session any more, though its goroutine may take a moment to end.
	Disconnected atomic.Bool
	ended        atomic.Bool // the connection has gone
}

// running is the command that a session runs, and what it keeps for the next one.
type running struct {
	keyspace *keyspace.Keyspace // of all the session's transactions; nil before the first
	Tx       keyspace.Tx
	Ctx      Context
	In       Input
	idBuffer []string // ids of the running command; reused

	Current    *Row // the running or last command; nil if it was rejected or queued
	lastLookup cachedLookup
	lastEnd    time.Duration // when the last command ended; 0 if the session has waited since

	Wait    *blocked      // of the running command, which waits; nil: it does not
	stirred *waiting.Wait // that was woken and has ended; nil: its reply has left
}

// scriptSession is what a session knows of its running script.
type scriptSession struct {
	late   lateLocks
	all    bool // it runs again, and locks all partitions
	leaves bool // it runs again, beside the loop
	logged int  // lines of it that an earlier run has logged
	oom    bool // before it no memory could be freed
	shown  bool // MONITOR shows what it calls
}

// nodes is what a session knows of the cluster.
type nodes struct {
	// Proxied is set for a session that runs what another node passes on. It replies MOVED to what it does
	// not run, and never waits for a leader.
	Proxied bool
	// ForwardsPending is set while commands are to be passed on that came before the next one.
	ForwardsPending bool
	Readonly        bool    // READONLY: reads of this node's past are welcome
	Service         service // of the running command; see cluster_admission.go

	led      atomic.Bool // the node has served a command as the leader
	greeted  bool        // the node led when it ran a command that any node runs, such as HELLO
	Deposed  atomic.Bool // it does not lead any more: the session is disconnected soon
	stranded atomic.Bool // a command waits for that: neither it nor what follows is answered
	Unread   func() bool // reports whether something has arrived that was not read; any goroutine may call it. May be nil
	// unanswered says what has been read whose replies have not left yet; see Answered.
	unanswered atomic.Uint32

	Awaits time.Duration // since when the running command waits for a leader, as clock.Monotonic says; 0: it does not
	waited time.Duration // of the running command and of those read with it for the cluster, besides what Awaits says
	remote remoteWatch   // see forward.go
}

// listed is what listings show of a session (CLIENT LIST). The owner locks mu to change a field, and reads
// without it.
type listed struct {
	unsent, unsentSize           atomic.Int64 // see SetUnsent
	unread, readRoom, waitingArg atomic.Int64 // see SetUnread

	lastRow  atomic.Pointer[Row] // the last command; nil if there was none
	lastUsed atomic.Int64        // its start, ms

	mu       sync.Mutex // protects what follows
	Proto    int        // of RESP, 2 or 3
	Database string     // the selected container
	Name     string     // CLIENT SETNAME
	// DatabaseNumber is the number that the selected container had when it was selected.
	DatabaseNumber uint32
	LibName        string // CLIENT SETINFO
	LibVer         string
	created        int64 // ms

	Queued     int // commands since MULTI, or NoTransaction
	queuedSize int // their size in bytes
	Subscribed subscriptionCounts
	Monitoring bool // MONITOR
	noTouch    bool // CLIENT NO-TOUCH
	blocked    bool // a command waits

	Tracking Tracking // changed with the broker's mutex held too
}

const NoTransaction = -1

// SetPage makes the session one of the page: listings and histories name it, and it reads what a follower
// has. It is called before the first command.
func (s *Session) SetPage() {
	s.Name, s.Readonly = "page", true
}

// NewSession returns a session on database 0; now is in ms.
func NewSession(id int64, addr, laddr string, now int64) *Session {
	s := &Session{ID: id, Addr: addr, LAddr: laddr}
	s.AbandonInterval, s.ExecTime = abandonInterval, maxExecTime
	s.Proto, s.Database, s.Queued, s.created = 2, "0", NoTransaction, now
	s.lastUsed.Store(now)
	if !s.viaUnixSocket() {
		s.From = addr
	}
	s.SetName("")
	s.Tx.Client = id
	s.Tx.OnDeath = func(c *keyspace.Container, id string) { s.Ctx.Notify(events.Expired, c, id) }
	return s
}

// noteCommand notes the session's command and its start (ms) for CLIENT LIST.
func (s *Session) noteCommand(r *Row, now int64) {
	if s.lastRow.Load() != r { // a load is far cheaper than a store
		s.lastRow.Store(r)
	}
	if s.lastUsed.Load() != now {
		s.lastUsed.Store(now)
	}
}

// The bits of Session.unanswered. The first two are for commands that have begun.
const (
	unansweredOutside = 1 << iota // one that works without locks: see Context.Outside
	unansweredLead                // one that the node runs as the leader
	unansweredRead                // in a cluster, any: see Received
)

// Received notes that something of the client has been read, or that a command goes on which has waited.
func (s *Session) Received() {
	if s.Service != serveAlone && s.unanswered.Load()&unansweredRead == 0 {
		s.unanswered.Or(unansweredRead)
	}
}

// Answered notes that the replies to all commands so far have left.
func (s *Session) Answered() {
	if s.unanswered.Load() != 0 { // a load is far cheaper than a store
		s.unanswered.Store(0)
	}
	if w := s.stirred; w != nil {
		s.stirred = nil
		s.Ctx.Engine.Waiters.Answered(w)
	}
}

// AwaitsReply reports whether something is under way that is to be answered. Any goroutine may ask. It looks
// first for what is unread: that counts as received before it is read.
func (s *Session) AwaitsReply() bool {
	unread := s.Unread != nil && s.Unread()
	bits := s.unanswered.Load()
	return bits&^unansweredRead != 0 || !s.stranded.Load() && (unread || bits != 0 || s.inMulti())
}

// inMulti reports whether a transaction is open. Any goroutine may ask.
func (s *Session) inMulti() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Queued != NoTransaction
}

// Update calls f, which changes fields that other goroutines read.
func (s *Session) Update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Reset restores the state of a new connection (RESET), but for its age.
func (s *Session) Reset() {
	s.Update(func() { s.Proto, s.Database, s.DatabaseNumber = 2, "0", 0 })
	s.SetUser(access.DefaultName)
	s.SetName("")
	s.Replies.reset()
	s.SetNoTouch(false)
	s.Memory.Protect(false)
	s.Readonly = false
}

// SetName names the client, for listings and in the history of containers.
func (s *Session) SetName(name string) {
	s.Update(func() { s.Name = name })
	by := s.Addr
	if user := s.User(); user != access.DefaultName {
		by += " " + user
	}
	if name != "" {
		by += " (" + name + ")"
	}
	s.Tx.By = by[:min(len(by), expiry.MostBy)]
}

// SetNoTouch sets whether the session's commands leave the accesses of items as they are.
func (s *Session) SetNoTouch(on bool) {
	s.Update(func() { s.noTouch = on })
	s.Tx.KeepAccesses = on
}

// SetUnsent notes the number of unsent messages and replies, and their size in bytes, for CLIENT LIST.
// Safe for concurrent use.
func (s *Session) SetUnsent(n, size int) {
	s.unsent.Store(int64(n))
	s.unsentSize.Store(int64(size))
}

// SetUnread notes what is read ahead for the client while it waits, for CLIENT LIST: the bytes of a half-read
// command, the room in its buffer, and the bytes of the arguments that are whole. Safe for concurrent use.
func (s *Session) SetUnread(unread, room, args int) {
	s.unread.Store(int64(unread))
	s.readRoom.Store(int64(room))
	s.waitingArg.Store(int64(args))
}

// sessionSize is about the number of bytes of a client that waits.
const sessionSize = 2 << 10

// ClientLine returns the session's line of CLIENT LIST at the time now (ms). running are the arguments of
// its running command, nil if unknown.
//
// The line has every field of Redis 7.0, on which some parsers insist, and the library fields of 7.2. A
// field without meaning here is -1 or 0: connections have no descriptors of their own, nor buffers while
// they are idle.
func (s *Session) ClientLine(now int64, running []string) string {
	argBytes, queryBytes, room := int(s.waitingArg.Load()), int(s.unread.Load()), int(s.readRoom.Load())
	if len(running) > 0 {
		argBytes, room = 0, 0
		queryBytes = len(fmt.Sprintf("*%d\r\n", len(running)))
	}
	for _, arg := range running {
		argBytes += len(arg)
		queryBytes += len(fmt.Sprintf("$%d\r\n\r\n", len(arg))) + len(arg)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	total := sessionSize + max(queryBytes+room+argBytes+s.queuedSize+int(s.unsentSize.Load()), s.Memory.Size())
	command := "NULL"
	if r := s.lastRow.Load(); r != nil {
		command = r.FullName
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d"+
		" sub=%d psub=%d ssub=%d multi=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=0 rbp=0"+
		" obl=0 oll=%d omem=%d tot-mem=%d events=r cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		s.ID, s.Addr, s.LAddr, s.Name, s.age(now), s.idle(now), s.flagLetters(), s.DatabaseNumber,
		s.Subscribed[SubChannel], s.Subscribed[SubPattern], s.Subscribed[SubShard],
		s.Queued, queryBytes, room, argBytes, s.queuedSize, s.unsent.Load(), s.unsentSize.Load(), total, command, s.rights.Name(), s.Tracking.Redirection(), s.Proto, s.LibName, s.LibVer)
}

// flagLetters are the flags of the session in CLIENT LIST. The lock must be held.
func (s *Session) flagLetters() string {
	var flags []byte
	for _, f := range []struct {
		letter byte
		is     bool
	}{
		{'O', s.Monitoring}, {'P', s.Subscribed.total() > 0}, {'x', s.Queued != NoTransaction}, {'b', s.blocked}, {'t', s.Tracking.On},
		{'R', s.Tracking.Broken}, {'B', s.Tracking.Bcast}, {'U', s.viaUnixSocket()}, {'e', s.Memory.isProtected()}, {'T', s.noTouch},
	} {
		if f.is {
			flags = append(flags, f.letter)
		}
	}
	return cmp.Or(string(flags), "N")
}

// age and idle return the seconds since the connection was made and since its last command.
func (s *Session) age(now int64) int64  { return max(now-s.created, 0) / 1000 }
func (s *Session) idle(now int64) int64 { return max(now-s.lastUsed.Load(), 0) / 1000 }

// ClientFacts are what the filters of CLIENT LIST and CLIENT KILL ask of a session, as ClientLine shows them.
type ClientFacts struct {
	Name, LibName, LibVer, Flags string
	Age, Idle                    int64 // seconds
	DatabaseNumber               uint32
	Subscriber                   bool
}

// Facts returns the facts of the session at a time in ms. Safe for concurrent use.
func (s *Session) Facts(now int64) ClientFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ClientFacts{
		Name: s.Name, LibName: s.LibName, LibVer: s.LibVer, Flags: s.flagLetters(), Age: s.age(now), Idle: s.idle(now),
		DatabaseNumber: s.DatabaseNumber, Subscriber: s.Subscribed.total() > 0,
	}
}

// InSubscribedMode reports whether the session may run only commands of subscriptions. RESP2 cannot tell
// messages from replies.
func (s *Session) InSubscribedMode() bool { return s.Proto == 2 && s.Subscribed.total() > 0 }

// onlyReceives is InSubscribedMode for other goroutines.
func (s *Session) onlyReceives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.InSubscribedMode()
}

func (s *Session) viaUnixSocket() bool { return strings.Contains(s.LAddr, "/") }

// ReceivesMessages reports whether the client may receive messages besides replies: it subscribes, monitors
// or caches. Safe for concurrent use.
func (s *Session) ReceivesMessages() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Monitoring || s.Subscribed.total() > 0 || s.Tracking.On
}

// MayBeSilent reports whether the client need not send anything: it subscribes or monitors. Safe for
// concurrent use.
func (s *Session) MayBeSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Monitoring || s.Subscribed.total() > 0
}

// MaxClientInfo is the largest size in bytes of a client's name and library. Every line of CLIENT LIST
// repeats them.
const MaxClientInfo = 1 << 10

// CheckClientInfo returns an error if a word is no legal client info. what names it in the error ("Client
// names").
func CheckClientInfo(what, word string) error {
	switch {
	case len(word) > MaxClientInfo:
		return Errorf(errLongClientInfo, what, MaxClientInfo)
	case strings.ContainsFunc(word, func(r rune) bool { return r < '!' || r > '~' }):
		return Errorf(errUnprintable, what)
	}
	return nil
}
