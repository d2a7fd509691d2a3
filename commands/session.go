package commands

import (
	"sync"

	"mayfly/keyspace"
)

// Session is the state of one connection that commands see and change. It belongs to the goroutine
// that serves the connection; what other connections may look at (CLIENT LIST) is behind its mutex.
type Session struct {
	ID      int64           // unique since the start, from 1
	Addr    string          // of the peer, host:port or path:0
	LAddr   string          // of our side
	Proto   int             // 2 or 3
	Ticket  keyspace.Ticket // covers all that the replies not yet sent reveal
	Closing bool            // close the connection once the reply is sent (QUIT)

	Authenticated bool

	tx  keyspace.Tx
	ctx Context
	in  Input
	ids []string // of the command that runs; kept to be used again

	mu       sync.Mutex // protects what follows
	database string     // the selected container
	name     string     // CLIENT SETNAME
	libName  string
	libVer   string
	lastCmd  string
	created  int64 // ms
	lastUsed int64 // ms
}

// NewSession is a session on database 0.
func NewSession(id int64, addr, laddr string, now int64) *Session {
	return &Session{ID: id, Addr: addr, LAddr: laddr, Proto: 2, database: "0", created: now, lastUsed: now}
}

// Database is the name of the selected container.
func (s *Session) Database() string { return s.database }

// used notes which command the session runs, and when (ms), for CLIENT LIST.
func (s *Session) used(command string, now int64) {
	s.mu.Lock()
	s.lastCmd, s.lastUsed = command, now
	s.mu.Unlock()
}
