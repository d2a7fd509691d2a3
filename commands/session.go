package commands

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
)

// Session is the state of one connection that commands read and change. It belongs to the goroutine that
// serves the connection. Other goroutines may read the fields behind mu (CLIENT LIST). The owner locks mu
// to change those fields, and reads them without.
type Session struct {
	ID    int64  // unique since the start, from 1
	Addr  string // of the client, host:port or path:0
	LAddr string // of the server
	Proto int    // of RESP, 2 or 3; protected by mu

	Authenticated atomic.Bool // the client has given the password, or needed none

	wrongPasswords int           // since the last right one
	authWait       chan struct{} // closed when the attempt that waits may be checked; see authThrottle

	// Disconnected is set when others disconnect the client. No listing shows the session any more,
	// though its goroutine may take a moment to end.
	Disconnected atomic.Bool

	// Abandoned reports whether nothing waits for the running command any more: the client has left or the
	// server stops. It may cost a system call. Nil: never.
	Abandoned       func() bool
	abandonInterval time.Duration // see watch
	execTime        time.Duration // see maxExecTime

	// Proxied is set for a session that runs what another node passes on. It replies MOVED to what it does not run, and never
	// waits for a leader.
	Proxied bool
	// ForwardsPending is set while commands are to be passed on that came before the next one.
	ForwardsPending bool

	OnLoop bool // other sessions wait for this one's commands: defer slow ones
	Paced  bool // defer commands that compute for long, until the session has a turn for one

	// Yield, if not nil, lets other sessions have their turn within a long command. It is called without
	// locks.
	Yield func()

	Receiver Receiver      // takes the session's messages
	Memory   *ClientMemory // held for the client; nil if not counted

	unsent, unsentSize           atomic.Int64 // see SetUnsent
	unread, readRoom, waitingArg atomic.Int64 // see SetUnread

	keyspace *keyspace.Keyspace // of all the session's transactions; nil before the first
	tx       keyspace.Tx
	ctx      Context
	in       Input
	idBuffer []string // ids of the running command; reused

	current    *row // the running or last command; nil if it was rejected or queued
	lastLookup cachedLookup
	lastEnd    time.Duration // when the last command ended; 0 if the session has waited since

	multi         transaction
	replies       replyMode
	revealed      keyspace.LSN  // covers everything that any reply has revealed
	subscriptions subscriptions // protected by the broker's mutex

	led     atomic.Bool // the node has served a command as the leader
	deposed atomic.Bool // it does not lead any more: the session is disconnected soon
	// unanswered is set from before a leader's command begins until its reply has left; see Answered.
	unanswered atomic.Bool
	readonly   bool    // READONLY: reads of this node's past are welcome
	service    service // of the running command; see cluster_admission.go

	late         lateLocks // of the running script
	scriptAll    bool      // the script runs again, and locks all partitions
	scriptLeaves bool      // the script runs again, beside the loop
	scriptOOM    bool      // before the script no memory could be freed
	scriptShown  bool      // MONITOR shows what the script calls

	wait *wait // of the running command, which waits; nil: it does not

	waited time.Duration // of the running command and of those read with it for the cluster, besides what awaits says
	remote remoteWatch   // see forward.go

	awaits time.Duration // since when the running command waits for a leader, as clock.Monotonic says; 0: it does not

	lastRow  atomic.Pointer[row] // the last command, for CLIENT LIST; nil if there was none
	lastUsed atomic.Int64        // its start, ms

	mu       sync.Mutex // protects Proto and what follows
	database string     // the selected container
	name     string     // CLIENT SETNAME
	// databaseNumber is the number that the selected container had when it was selected.
	databaseNumber uint32
	libName        string // CLIENT SETINFO
	libVer         string
	created        int64 // ms

	queued     int // commands since MULTI, or noTransaction
	queuedSize int // their size in bytes
	subscribed subscriptionCounts
	monitoring bool // MONITOR
	noTouch    bool // CLIENT NO-TOUCH
	blocked    bool // a command waits
}

const noTransaction = -1

// SetPage makes the session one of the page: listings and histories name it, and it reads what a follower has. It is called
// before the first command.
func (s *Session) SetPage() {
	s.name, s.readonly = "page", true
}

// NewSession returns a session on database 0; now is in ms.
func NewSession(id int64, addr, laddr string, now int64) *Session {
	s := &Session{
		ID: id, Addr: addr, LAddr: laddr, Proto: 2, database: "0", created: now, queued: noTransaction,
		abandonInterval: abandonInterval, execTime: maxExecTime,
	}
	s.lastUsed.Store(now)
	s.setName("")
	s.tx.OnDeath = func(c *keyspace.Container, id string) { s.ctx.notify(eventExpired, c, id) }
	return s
}

// noteCommand notes the session's command and its start (ms) for CLIENT LIST.
func (s *Session) noteCommand(r *row, now int64) {
	if s.lastRow.Load() != r { // a load is far cheaper than a store
		s.lastRow.Store(r)
	}
	if s.lastUsed.Load() != now {
		s.lastUsed.Store(now)
	}
}

// Answered notes that the replies to all commands so far have left.
func (s *Session) Answered() {
	if s.unanswered.Load() { // a load is far cheaper than a store
		s.unanswered.Store(false)
	}
}

// update calls f, which changes fields that other goroutines read.
func (s *Session) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// reset restores the state of a new connection (RESET), but for its age.
func (s *Session) reset() {
	s.update(func() { s.Proto, s.database, s.databaseNumber = 2, "0", 0 })
	s.setName("")
	s.replies.reset()
	s.setNoTouch(false)
	s.readonly = false
}

// setName names the client, for listings and in the history of containers.
func (s *Session) setName(name string) {
	s.update(func() { s.name = name })
	by := s.Addr
	if name != "" {
		by += " (" + name + ")"
	}
	s.tx.By = by[:min(len(by), expiry.MostBy)]
}

// setNoTouch sets whether the session's commands leave the accesses of items as they are.
func (s *Session) setNoTouch(on bool) {
	s.update(func() { s.noTouch = on })
	s.tx.KeepAccesses = on
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

// clientLine returns the session's line of CLIENT LIST at the time now (ms). running are the arguments of
// its running command, nil if unknown.
//
// The line has every field of Redis 7.0, on which some parsers insist, and the library fields of 7.2. A
// field without meaning here is -1 or 0: connections have no descriptors of their own, nor buffers while
// they are idle.
func (s *Session) clientLine(now int64, running []string) string {
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
	flags := ""
	if s.monitoring {
		flags += "O"
	}
	if s.subscribed.total() > 0 {
		flags += "P"
	}
	if s.queued != noTransaction {
		flags += "x"
	}
	if s.blocked {
		flags += "b"
	}
	if s.viaUnixSocket() {
		flags += "U"
	}
	if s.noTouch {
		flags += "T"
	}
	if flags == "" {
		flags = "N"
	}
	total := sessionSize + max(queryBytes+room+argBytes+s.queuedSize+int(s.unsentSize.Load()), s.Memory.Size())
	command := "NULL"
	if r := s.lastRow.Load(); r != nil {
		command = r.full
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d"+
		" sub=%d psub=%d ssub=%d multi=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=0 rbp=0"+
		" obl=0 oll=%d omem=%d tot-mem=%d events=r cmd=%s user=default redir=-1 resp=%d lib-name=%s lib-ver=%s\n",
		s.ID, s.Addr, s.LAddr, s.name, max(now-s.created, 0)/1000, max(now-s.lastUsed.Load(), 0)/1000, flags, s.databaseNumber,
		s.subscribed[subChannel], s.subscribed[subPattern], s.subscribed[subShard],
		s.queued, queryBytes, room, argBytes, s.queuedSize, s.unsent.Load(), s.unsentSize.Load(), total, command, s.Proto, s.libName, s.libVer)
}

// inSubscribedMode reports whether the session may run only commands of subscriptions. RESP2 cannot tell
// messages from replies.
func (s *Session) inSubscribedMode() bool { return s.Proto == 2 && s.subscribed.total() > 0 }

// onlyReceives is inSubscribedMode for other goroutines.
func (s *Session) onlyReceives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inSubscribedMode()
}

func (s *Session) viaUnixSocket() bool { return strings.Contains(s.LAddr, "/") }

// ReceivesMessages reports whether the client may receive messages besides replies: it subscribes or
// monitors. Safe for concurrent use.
func (s *Session) ReceivesMessages() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.monitoring || s.subscribed.total() > 0
}

// IsSubscriber reports whether the session subscribes to anything. Safe for concurrent use.
func (s *Session) IsSubscriber() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribed.total() > 0
}

// maxClientInfo is the largest size in bytes of a client's name and library. Every line of CLIENT LIST
// repeats them.
const maxClientInfo = 1 << 10

// checkClientInfo returns an error if a word is no legal client info. what names it in the error ("Client
// names").
func checkClientInfo(what, word string) error {
	switch {
	case len(word) > maxClientInfo:
		return errorf(errLongClientInfo, what, maxClientInfo)
	case !isPrintableWord(word):
		return errorf(errUnprintable, what)
	}
	return nil
}

// isPrintableWord reports whether s is printable ASCII without spaces.
func isPrintableWord(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}
