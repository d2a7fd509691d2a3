package commands

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace"
)

// Session is the state of one connection that commands see and change. It belongs to the goroutine
// that serves the connection; what other connections may look at (CLIENT LIST) is behind its mutex:
// the owner locks it to change that, and reads without.
type Session struct {
	ID      int64        // unique since the start, from 1
	Addr    string       // of the peer, host:port or path:0
	LAddr   string       // of our side
	Proto   int          // 2 or 3; under mu
	LSN     keyspace.LSN // covers all that the replies not yet sent reveal
	Closing bool         // close the connection once the reply is sent (QUIT)

	Authenticated bool

	// Gone is set when the client is disconnected by others. From then on nobody hears of the session any
	// more, though it may take its goroutine a moment to end it.
	Disconnected atomic.Bool

	OnLoop   bool // others wait while a command of this session is carried out: put off those that may take long
	Deferred bool // the last command was not carried out for that reason, as if it had not come; it has no reply

	Receiver Receiver      // takes the messages of what the session subscribes to
	Memory   *ClientMemory // what the client makes the server keep; nil: nobody counts it

	unsent, unsentSize atomic.Int64 // see SetUnsent

	tx       keyspace.Tx
	ctx      Context
	in       Input
	idBuffer []string // of the command that runs; kept to be used again

	current    *row // of the command that runs or has run; nil: none was let in, or it is queued
	lastLookup cachedLookup
	lastEnd    time.Duration // when the last command ended; 0: the session has waited since

	multi         transaction
	replies       replyMode
	revealed      keyspace.LSN  // covers all that any reply has reported or revealed
	subscriptions subscriptions // protected by the hub's mutex

	lastRow  atomic.Pointer[row] // of the last command, for CLIENT LIST; nil: there was none
	lastUsed atomic.Int64        // when it began, ms

	mu       sync.Mutex // protects Proto and what follows
	database string     // the selected container
	name     string     // CLIENT SETNAME
	libName  string     // CLIENT SETINFO
	libVer   string
	created  int64 // ms

	queued     int // commands since MULTI, or noTransaction
	queuedSize int // bytes that they take
	subscribed subscriptionCounts
	monitoring bool // MONITOR
}

const noTransaction = -1

// NewSession is a session on database 0.
func NewSession(id int64, addr, laddr string, now int64) *Session {
	s := &Session{
		ID: id, Addr: addr, LAddr: laddr, Proto: 2, database: "0", created: now, queued: noTransaction,
	}
	s.lastUsed.Store(now)
	s.tx.OnDeath = func(c *keyspace.Container, id string) { s.ctx.notify(eventExpired, c, id) }
	return s
}

// Database is the name of the selected container.
func (s *Session) Database() string { return s.database }

// used notes which command the session runs, and when (ms), for CLIENT LIST.
func (s *Session) noteCommand(r *row, now int64) {
	if s.lastRow.Load() != r { // loading costs next to nothing
		s.lastRow.Store(r)
	}
	if s.lastUsed.Load() != now {
		s.lastUsed.Store(now)
	}
}

// change lets f change what other connections may look at.
func (s *Session) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// reset makes the session what it was when it connected (RESET), but for its age.
func (s *Session) reset() {
	s.update(func() { s.Proto, s.database, s.name = 2, "0", "" })
	s.replies.reset()
}

// SetUnsent notes how many messages and replies the client has not taken yet, and how many bytes these take,
// for CLIENT LIST. Any goroutine may call it.
func (s *Session) SetUnsent(n, size int) {
	s.unsent.Store(int64(n))
	s.unsentSize.Store(int64(size))
}

// describe is the session's line in CLIENT LIST, at the moment now (ms). running are the arguments
// of the command that it runs, nil if that is not known.
//
// The line has every field of Redis 7.0, which some parsers insist on, and the library's of 7.2.
// What a connection of ours does not have (a descriptor of its own, buffers that belong to it while
// it is idle) is -1 or 0.
func (s *Session) clientLine(now int64, running []string) string {
	argBytes, queryBytes := 0, 0
	if len(running) > 0 {
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
	if s.viaUnixSocket() {
		flags += "U"
	}
	if flags == "" {
		flags = "N"
	}
	command := "NULL"
	if r := s.lastRow.Load(); r != nil {
		command = r.full
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%s"+
		" sub=%d psub=%d ssub=%d multi=%d qbuf=%d qbuf-free=0 argv-mem=%d multi-mem=%d rbs=0 rbp=0"+
		" obl=0 oll=%d omem=%d tot-mem=%d events=r cmd=%s user=default redir=-1 resp=%d lib-name=%s lib-ver=%s\n",
		s.ID, s.Addr, s.LAddr, s.name, max(now-s.created, 0)/1000, max(now-s.lastUsed.Load(), 0)/1000, flags, s.database,
		s.subscribed[subChannel], s.subscribed[subPattern], s.subscribed[subShard],
		s.queued, queryBytes, argBytes, s.queuedSize, s.unsent.Load(), s.unsentSize.Load(), queryBytes+argBytes+max(s.queuedSize, s.Memory.Size()), command, s.Proto, s.libName, s.libVer)
}

// listening tells whether the session may do little but listen to what it subscribes to: its protocol
// cannot tell messages from replies.
func (s *Session) inSubscribedMode() bool { return s.Proto == 2 && s.subscribed.total() > 0 }

func (s *Session) viaUnixSocket() bool { return strings.Contains(s.LAddr, "/") }

// TakesMessages tells whether there is more to come for the client than replies, because it
// subscribes to something or monitors. It may be called from any goroutine.
func (s *Session) ReceivesMessages() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.monitoring || s.subscribed.total() > 0
}

// IsSubscriber tells whether the session subscribes to anything. It may be called from any goroutine.
func (s *Session) IsSubscriber() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribed.total() > 0
}

// maxSelfDescription is the most bytes of a word that a client says of itself: the lines of CLIENT
// LIST repeat it for whoever asks.
const maxClientInfo = 1 << 10

// checkSelfDescription refuses what a client must not say of itself, such as what ("Client names"),
// since it stands in the lines of CLIENT LIST.
func checkClientInfo(what, word string) error {
	switch {
	case len(word) > maxClientInfo:
		return clientInfoTooLong(what)
	case !isPrintableWord(word):
		return clientInfoUnprintable(what)
	}
	return nil
}

// plainWord tells whether a text consists of printable ASCII without spaces.
func isPrintableWord(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}
