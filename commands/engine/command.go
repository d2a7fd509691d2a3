package engine

import (
	"strings"

	"mayfly/commands/scripts"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// Command is one row of the command table. Everything the server knows of a command follows from its row.
// That is look-up, arity, authentication, locks, COMMAND, COMMAND DOCS and the tables of the
// documentation.
type Command struct {
	Name    string // in lower case: "get", "doc.put"; of a subcommand the second word: "get" of CONFIG GET
	Syntax  string // the arguments after the name, in the notation of Redis' manual: "key value [NX | XX] [GET]"
	Summary string // one sentence
	Group   string // as in Redis: string, generic, connection, server, …; also container, document; empty: the family's
	Example string // the arguments of a call, which the error of a wrong number shows; empty: none
	Since   string // the first version of Redis that has it, or of mayfly; of a subcommand empty: its command's
	Differs string // how it differs from the command of Redis, and why; empty: not at all
	Arity   int    // number of arguments including the name; -n means at least n; 0: as Syntax says
	Flags   Flags

	// Keys are the positions of the ids among the arguments. Run holds the locks of their partitions. A
	// command without keys has a Scope instead.
	// With both, the keys are names of streams, which Run looks up itself.
	Keys  Keys
	Scope Scope

	// KeysAfter finds the names of streams where their positions vary. The zero value: Keys has them.
	KeysAfter Keyword

	// Counted reports that the argument before the first of Keys is their number.
	Counted bool

	// Stores reports that the first argument is a key that the command writes, besides those counted.
	Stores bool

	// Options returns the number of arguments at the end that are options, not ids. Nil: none. Only a
	// command whose Keys reach to the end needs it.
	Options func(args []string) int

	// Touches says which containers the command touches, for the rights of users. Zero: what the row above it
	// or the family says. Databases returns the arguments that name further ones; nil: there are none.
	Touches   Touches
	Databases func(args []string) []string

	// Blind reports whether a call only writes its key although Access says that it may read it. Nil: no.
	Blind func(args []string) bool

	// Walks reports whether the command walks or rewrites the values of its items, so that its time grows
	// with their size. Nil: no.
	Walks func(args []string) bool

	// Reads reports whether the command may read many items, so that it computes for long. Nil: as Slow says.
	Reads func(args []string) bool

	// Parse checks the arguments and returns the Run. It touches neither the keyspace nor the clock. It
	// does all work that needs no lock, such as validating JSON.
	Parse      func(in *Input) (Run, error)
	AtFollower Error // what a follower replies in place of MOVED, as in Redis; empty: MOVED

	// Secrets returns the positions of passwords, which MONITOR and SLOWLOG do not show. Nil: none.
	// Positions beyond the last argument are ignored.
	Secrets func(args []string) []int

	// Sub are the subcommands. A row with subcommands has no Parse, except COMMAND, which is also a
	// command by itself.
	Sub []Command

	// Clear is the command if its second argument, and last, is CLEAR. Its Name is that of the command which
	// users must be allowed. Only its Flags, Touches, Scope and Parse count besides. Nil: there is none.
	Clear *Command

	// What COMMAND reports besides, words separated by spaces. Most rows leave it empty.
	Categories string // ACL categories besides those of group and flags: "dangerous"
	Tips       string // for clients and proxies: "nondeterministic_output request_policy:all_shards"
	// Access to the keys, in the terms of key specifications: "OW update". Empty means "RO access" or
	// "RW access update". If the keys differ, one for each key: "RO access, OW update".
	Access string
}

// IsOwn reports whether the command is mayfly's own, not one of Redis.
func (c *Command) IsOwn() bool { return c.Since == SinceFirst }

// Run does the work of a parsed command, alone or within EXEC, under the locks of its row. A Run gets the
// results of Parse as a closure or from the context's Input. The second way makes no garbage: Parse
// returns the same function every time.
type Run func(x *Context) Reply

// Keys gives the positions of ids among the arguments, as Redis' key specifications do. First is the
// first position and Last the last; a negative Last counts from the end. Step is the distance. The zero
// value means none.
type Keys struct{ First, Last, Step int }

// The usual shapes.
var (
	OneKey  = Keys{1, 1, 1}  // GET key
	AllKeys = Keys{1, -1, 1} // DEL key [key …]
	OneID   = Keys{2, 2, 1}  // DOC.GET container id
	AllIDs  = Keys{2, -1, 1} // DOC.DEL container id [id …]
	Pairs   = Keys{1, -1, 2} // MSET key value [key value …]

	CountedPairs = Keys{2, -1, 2} // MSETEX numkeys key value [key value …]
)

// Keyword finds the keys of a command that follow a word: the first half of the arguments after it. From is
// the first position where the word may stand.
type Keyword struct {
	Word string
	From int
}

// keys returns the keys among the arguments.
func (k Keyword) keys(args []string) []string {
	for i := k.From; i < len(args); i++ {
		if redisfmt.EqualFold(args[i], k.Word) {
			rest := args[i+1:]
			return rest[:len(rest)/2]
		}
	}
	return nil
}

// Scope is the part of the keyspace that a command without keys touches.
type Scope uint8

const (
	// ScopeNone touches no items; it may look up containers.
	ScopeNone Scope = iota
	// ScopeSweep visits partitions one after the other, and locks one at a time: SCAN, DBSIZE.
	ScopeSweep
	// ScopeAll locks every partition: changes of the catalogue of containers, in constant time.
	ScopeAll
	// ScopeQueue locks the ids of the commands queued for EXEC, and the watched ids.
	ScopeQueue
	// ScopeScript locks the keys that EVAL names, or everything: see script_run.go. The argument after the
	// script is the number of keys, and they follow.
	ScopeScript
)

// Flags are the properties of a command, in the terms of Redis.
type Flags uint32

// The flags. Those up to AllowBusy are reported, in this order: see flagNames.
const (
	Write           Flags = 1 << iota // may change data; refused while the disk fails
	ReadOnly                          // reads data
	DenyOOM                           // may grow memory; refused at the memory limit
	Admin                             // administers the server
	PubSub                            // of publish/subscribe
	NoScript                          // not allowed within scripts
	Blocking                          // may wait with its reply: see waiters
	Loading                           // allowed while the data is being loaded
	Stale                             // (reported only)
	SkipSlowlog                       // (reported only)
	Fast                              // constant or logarithmic time
	NoAuth                            // allowed before authentication
	NoAsyncLoading                    // (reported only)
	NoMulti                           // not allowed between MULTI and EXEC
	AllowBusy                         // allowed while a script exceeds lua-time-limit
	Immediate                         // runs between MULTI and EXEC instead of being queued
	Publishes                         // sends messages; CLIENT PAUSE WRITE holds it back like a write
	AllowSubscribed                   // allowed in the subscribed mode of RESP2
	Slow                              // may take long even with few arguments
	Frees                             // a write that may free space, served on a full disk; if it does not free any, its Run refuses
	OnNode                            // in a cluster, runs on the node that gets it: see cluster_admission.go
	Waits                             // may wait for other nodes
	OnLeader                          // in a cluster, runs on the leader only, although it neither reads nor writes data
	OnlyInCluster                     // unknown to a server without a cluster
	MayGrow                           // may grow memory; frees some at the memory limit first, and its Run refuses
	MayWrite                          // runs commands that may write; CLIENT PAUSE WRITE holds it back like a write
	Receives                          // others may send to the client from now on
)

// Input is what Parse may read.
type Input struct {
	// Args are the arguments. Args[0] is the name as the client wrote it; Args[1] is that of a
	// subcommand. They are views of the connection's read buffer, valid until the reply is rendered.
	// What a command keeps longer it must clone.
	Args []string
	// MaxValue is the size in bytes of the largest legal value and document (max-value-size).
	MaxValue int

	Put PutInput // the result of parsing DOC.PUT

	script *scripts.Script // of EVAL or a relative; nil: not known yet

	Receivers int  // of a PUBLISH in a transaction, if matched
	Matched   bool // the receivers are known already
}

// Context is what a Run may touch.
type Context struct {
	Tx      *keyspace.Tx // the keyspace at one frozen time
	Session *Session     // the connection that sent the command
	Engine  *Engine
	Input   *Input // the parsed command

	Batch    *eventBatch // the published events; nil if there are none
	panicked bool        // the command, or one of an EXEC, has panicked: roll back
	aborted  bool        // an EXEC gives up, or a container on hold vetoes: roll back
	Close    bool        // see Outcome.Close
	Queued   bool        // the command runs within EXEC or a script
	Work     int64       // of an EXEC so far
	mostWork int64       // see MaxExecWork
	Examined int         // by the queries of the EXEC or script, as they count for query-budget

	script  *scriptRun // that runs now; nil: none does
	undone  error      // why the changes are taken back, as those of a script; nil: they are not
	counted bool       // the error that the script replies is in the statistics already

	Pieces  keyspace.LSN // covers the transactions of InPieces
	changed bool         // one of them has changed something
	refusal error        // why InPieces has ended before its last piece; nil: it has not

	// outside is what the Run leaves for after the transaction, without locks. It returns the reply, or true
	// if the Run is to run again in a new transaction. Nil: nothing.
	Outside func() (reply Reply, again bool)

	// resume is what a command waits for that has nothing to return yet: see Block. Nil: it does not wait.
	resume <-chan struct{}

	Abandoned bool // the command has ended early, because nothing takes its reply: see watch
}

// Now returns the time of the command in ms.
func (x *Context) Now() int64 { return x.Tx.Now() }

// Database returns the selected container. The error says that it has been dropped.
func (x *Context) Database() (*keyspace.Container, error) {
	return x.Container(x.Session.Database)
}

// Container returns the container with a name. The error says how to create it.
func (x *Context) Container(name string) (*keyspace.Container, error) {
	if c := x.Tx.Container(name); c != nil {
		return c, nil
	}
	return nil, UnknownContainer(name)
}

// HelpRow returns the row of HELP of a command with subcommands.
func HelpRow(command, since string) Command {
	return Command{
		Name: "help", Since: since, Summary: "Show helpful text about the different subcommands",
		Differs: "Its text is generated from the table of commands",
		Flags:   Loading | Stale | OnNode, Parse: NoParse(func(*Context) Reply { return Help(Table[command]) }),
	}
}

// Help lists a command's subcommands from their rows, in the layout of Redis: HELP is the last.
func Help(r *Row) Reply {
	lines := []Reply{Status(strings.ToUpper(r.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")}
	if r.Parse != nil {
		lines = append(lines, Status("(no subcommand)"), Status("    "+r.Summary))
	}
	for _, sub := range r.SortedSubcommands {
		if sub.Name == "help" {
			continue
		}
		lines = append(lines,
			Status(strings.TrimSpace(strings.ToUpper(sub.Name)+" "+sub.Syntax)),
			Status("    "+sub.Summary))
	}
	return Array(append(lines, Status("HELP"), Status("    Print this help."))...)
}

// With returns a row after a change.
func With(c Command, change func(c *Command)) Command {
	change(&c)
	return c
}

// NoParse returns the Parse of a command whose arguments need no parsing.
func NoParse(run Run) func(*Input) (Run, error) {
	return func(*Input) (Run, error) { return run, nil }
}
