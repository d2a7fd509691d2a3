package commands

import (
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// Engine executes commands. Safe for concurrent use by many sessions.
type Engine struct {
	Keyspace *keyspace.Keyspace
	Host     Host
	Log      zerolog.Logger
}

// Host is what the engine needs of the server around it. Safe for concurrent use.
type Host interface {
	// ConfigGet gives name and value of every option whose name matches one of the glob patterns.
	ConfigGet(patterns []string) [][2]string
	// ConfigSet changes options, all or none; the error is worded as in Redis.
	ConfigSet(pairs [][2]string) error
	// PasswordSet tells whether clients must authenticate; CheckPassword whether they may.
	PasswordSet() bool
	CheckPassword(password string) bool
	// MaxValueSize is the largest value and document in bytes.
	MaxValueSize() int
	// Sessions gives the sessions that are connected now, by ascending ID.
	Sessions() []*Session
	// Info gives the figures the server keeps.
	Info() ServerInfo
}

// ServerInfo are the figures of the server for INFO.
type ServerInfo struct {
	Version          string
	StartedAt        int64 // ms
	TCPPort          int
	ConfigFile       string
	Connected        int // clients
	MaxClients       int
	TotalConnections int64 // accepted since the start
	Rejected         int64 // connections refused
	NetInput         int64 // bytes read
	NetOutput        int64 // bytes written
}

// Execute carries one command out and returns its reply, which must not leave before the session's
// Ticket has been waited for. args are as described at [Input]. It never panics: a panic in a
// handler is logged and answered as an error.
func (e *Engine) Execute(s *Session, args []string) Reply {
	panic("stub")
}
