package commands

import (
	"slices"
	"strconv"
	"strings"

	"mayfly/keyspace"
)

// Command is one row of the command table. All that the server knows of a command is derived from
// its row: look-up, arity, authentication, which partitions are locked, COMMAND and COMMAND DOCS,
// the tables in docs.
type Command struct {
	Name    string // lower case, as in Redis: "get", "doc.put"; of a subcommand the second word: "get" of CONFIG GET
	Syntax  string // the arguments after the name, in the notation of Redis' manual: "key value [NX | XX] [GET]"
	Summary string // one sentence
	Group   string // Redis' group: string, generic, connection, server, …; ours: container, document
	Since   string // the version of Redis that brought it, or of mayfly for our own
	Differs string // how it differs from Redis' command, and why; empty: not at all
	Arity   int    // number of arguments including the name; -n means at least n
	Flags   Flags

	// Keys are the positions of the ids among the arguments; their partitions are locked while Run
	// runs. A command without keys has a Scope instead.
	Keys  Keys
	Scope Scope

	// Parse checks the arguments and returns what is to be done. It touches neither the keyspace
	// nor the clock and does all the work that needs no lock (such as validating JSON).
	Parse func(in *Input) (Run, error)

	// Sub are the subcommands. A row with these has no Parse, but for COMMAND, which is a command by
	// itself too.
	Sub []Command

	// What COMMAND reports beyond what follows from the above, words separated by spaces. Most rows
	// need none of it.
	Categories string // ACL categories besides those of group and flags: "dangerous"
	Tips       string // for clients and proxies: "nondeterministic_output request_policy:all_shards"
	// Access to the keys, in the terms of key specifications: "OW update"; empty means "RO access" or
	// "RW access update". If they differ, one for each key: "RO access, OW update".
	Access string
}

// Own tells whether the command is mayfly's own, and not one of Redis'.
func (c *Command) IsOwn() bool { return c.Since == sinceFirst }

// SameAs is the version of Redis whose semantics the command has, "" for our own: the one that we compare
// with, or a later one that brought the command.
func (c *Command) SameAs() string {
	switch {
	case c.IsOwn():
		return ""
	case slices.Compare(versionParts(c.Since), versionParts(redisVersion)) > 0:
		return c.Since
	}
	return redisVersion
}

// versionParts are the numbers of a version such as 7.0.15.
func versionParts(version string) []int {
	var parts []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			panic("not a version: " + version) // of a row: found at the first test
		}
		parts = append(parts, n)
	}
	return parts
}

// Run does the work of a parsed command, alone or within EXEC, under the locks that its row asked
// for. What Parse has found out a Run either holds, being a closure, or finds in the context's Input: then
// Parse returns the same function every time, and a command that comes often leaves no garbage.
type Run func(x *Context) Reply

// Keys gives positions of ids among the arguments, as in Redis' key specifications: First is the
// first, Last the last (negative counts from the end), Step the distance. The zero value: none.
type Keys struct{ First, Last, Step int }

// The usual shapes.
var (
	OneKey  = Keys{1, 1, 1}  // GET key
	AllKeys = Keys{1, -1, 1} // DEL key [key …]
	OneID   = Keys{2, 2, 1}  // DOC.GET container id
	AllIDs  = Keys{2, -1, 1} // DOC.DEL container id [id …]
	Pairs   = Keys{1, -1, 2} // MSET key value [key value …]
)

// Scope is what a command without keys touches.
type Scope uint8

const (
	// ScopeNone touches no documents; it may look containers up.
	ScopeNone Scope = iota
	// ScopeSweep goes through containers partition by partition, locking one at a time: SCAN, DBSIZE.
	ScopeSweep
	// ScopeAll locks every partition, for what changes the catalogue of containers: constant time.
	ScopeAll
	// ScopeQueue locks what the commands that wait for EXEC need, and what is watched.
	ScopeQueue
)

// Flags are the properties of a command, in Redis' terms.
type Flags uint32

// The flags.
const (
	Write           Flags = 1 << iota // may change data; refused while the disk fails
	ReadOnly                          // reads data
	DenyOOM                           // may grow memory; refused at the memory limit
	Fast                              // constant or logarithmic time
	Admin                             // administers the server
	NoAuth                            // allowed before authentication
	NoMulti                           // not allowed between MULTI and EXEC
	Loading                           // allowed while the data is being loaded
	Stale                             // (reported only)
	PubSub                            // of publish/subscribe
	Blocking                          // (reported only)
	NoScript                          // (reported only)
	AllowBusy                         // (reported only)
	SkipSlowlog                       // (reported only)
	NoAsyncLoading                    // (reported only)
	Immediate                         // carried out at once, not queued, between MULTI and EXEC; not reported
	Publishes                         // sends messages; held back like writes by CLIENT PAUSE WRITE; not reported
	AllowSubscribed                   // allowed to clients of RESP2 that have subscribed; not reported
	Slow                              // may take long, however few its arguments are; not reported
)

// Input is what Parse may look at.
type Input struct {
	// Args are the arguments, Args[0] being the name as the user wrote it (of a subcommand,
	// Args[1] is its name). They are views of the connection's read buffer, valid until the
	// command's reply is rendered: what is kept longer must be cloned.
	Args []string
	// MaxValue is the largest value and document in bytes (max-value-size).
	MaxValue int

	put putInput // what Parse of DOC.PUT leaves for its Run
}

// Context is what Run may touch.
type Context struct {
	Tx      *keyspace.Tx // the keyspace at one frozen moment
	Session *Session     // the connection that gave the command
	Engine  *Engine
	Input   *Input // the command, as Parse has left it

	batch    *eventBatch // what it has posted; nil: nothing
	panicked bool        // the command, or one of an EXEC: nothing of it is to happen
}

// Now is the moment of the command in ms.
func (x *Context) Now() int64 { return x.Tx.Now() }

// Database is the container the session has selected; the error says that it has been dropped.
func (x *Context) Database() (*keyspace.Container, error) { return x.Container(x.Session.Database()) }

// Container looks a container up by its name; the error says how to create it.
func (x *Context) Container(name string) (*keyspace.Container, error) {
	if c := x.Tx.Container(name); c != nil {
		return c, nil
	}
	return nil, unknownContainer(name)
}

// helpRow is the row of HELP of a command with subcommands.
func helpRow(command, group string) Command {
	return Command{
		Name: "help", Summary: "Show helpful text about the different subcommands",
		Group: group, Since: "5.0.0", Arity: 2, Flags: Loading | Stale,
		Differs: "Its text is generated from the table of commands",
		Parse:   noParse(func(*Context) Reply { return help(table[command]) }),
	}
}

// help lists a command's subcommands from their rows, in the layout of Redis.
func help(r *row) Reply {
	lines := []Reply{Status(strings.ToUpper(r.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")}
	if r.Parse != nil {
		lines = append(lines, Status("(no subcommand)"), Status("    "+r.Summary))
	}
	for _, sub := range r.sorted {
		lines = append(lines,
			Status(strings.TrimSpace(strings.ToUpper(sub.Name)+" "+sub.Syntax)),
			Status("    "+sub.Summary))
	}
	return Array(lines...)
}
