package commands

import (
	"container/list"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/redisfmt"
)

// slowlogCommand shows the commands that took long.
var slowlogCommand = Command{
	Name: "slowlog", Summary: "A container for slow log commands", Group: "server", Since: "2.2.12", Arity: -2,
	Sub: []Command{
		{
			Name: "get", Syntax: "[count]", Summary: "Get the slow log's entries", Group: "server", Since: "2.2.12",
			Arity: -2, Flags: Admin | Loading | Stale, Tips: "request_policy:all_nodes nondeterministic_output",
			Parse: parseSlowlogGet,
		},
		withSince(helpRow("slowlog", "server"), "6.2.0"),
		{
			Name: "len", Summary: "Get the slow log's length", Group: "server", Since: "2.2.12", Arity: 2,
			Flags: Admin | Loading | Stale, Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
			Parse: noParse(func(x *Context) Reply { return Count(x.Engine.Slowlog.length()) }),
		},
		{
			Name: "reset", Summary: "Clear all entries from the slow log", Group: "server", Since: "2.2.12", Arity: 2,
			Flags: Admin | Loading | Stale, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: noParse(func(x *Context) Reply {
				x.Engine.Slowlog.reset()
				return OK
			}),
		},
	},
}

// Slowlog keeps the newest commands that took long. The zero value keeps none. Safe for concurrent
// use.
type Slowlog struct {
	slowerThan atomic.Int64 // ns; 0: log nothing

	mu         sync.Mutex // protects what follows
	maxEntries int
	nextID     int64
	entries    list.List // of *slowEntry, the newest first
}

// slowEntry is a command that took long, its arguments cut.
type slowEntry struct {
	id   int64
	at   int64 // when it ended, ms
	took time.Duration
	args []string
	addr string // of the client
	name string // CLIENT SETNAME
}

// SetThreshold says from which duration, in µs, a command is logged; negative: none is.
func (l *Slowlog) SetThreshold(micros int) {
	if micros < 0 {
		l.slowerThan.Store(0)
		return
	}
	micros = min(micros, math.MaxInt64/int(time.Microsecond))
	l.slowerThan.Store(max(int64(micros)*int64(time.Microsecond), 1))
}

// SetLength says how many commands are kept.
func (l *Slowlog) SetLength(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = most
	l.trimLocked()
}

// wants tells whether a command that took so long is to be logged.
func (l *Slowlog) exceeds(took time.Duration) bool {
	limit := l.slowerThan.Load()
	return limit > 0 && int64(took) >= limit
}

// add logs a command that ended at a moment in ms. Its arguments are copied.
func (l *Slowlog) record(s *Session, at int64, took time.Duration, args []string) {
	entry := &slowEntry{at: at, took: took, args: cutArguments(args), addr: s.Addr, name: s.name}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.id = l.nextID
	l.nextID++
	l.entries.PushFront(entry)
	l.trimLocked()
}

func (l *Slowlog) trimLocked() {
	for l.entries.Len() > l.maxEntries {
		l.entries.Remove(l.entries.Back())
	}
}

func (l *Slowlog) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

// reset forgets all entries; their numbers go on.
func (l *Slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

// newest gives so many entries, the newest first; -1 means all.
func (l *Slowlog) newest(count int64) []*slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*slowEntry
	for e := l.entries.Front(); e != nil && int64(len(found)) != count; e = e.Next() {
		found = append(found, e.Value.(*slowEntry))
	}
	return found
}

// cutArguments copies arguments for the slow log: 32 of them and 128 bytes of each, with a note of what
// is left out, as in Redis.
func cutArguments(args []string) []string {
	const mostArgs, mostBytes = 32, 128
	shown := make([]string, 0, min(len(args), mostArgs))
	for i, arg := range args {
		if i == mostArgs-1 && len(args) > mostArgs {
			return append(shown, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		}
		if len(arg) > mostBytes {
			arg = fmt.Sprintf("%s... (%d more bytes)", arg[:mostBytes], len(arg)-mostBytes)
		}
		shown = append(shown, strings.Clone(arg))
	}
	return shown
}

func parseSlowlogGet(in *Input) (Run, error) {
	count := int64(10)
	switch len(in.Args) {
	case 2:
	case 3:
		n, ok := redisfmt.ParseInt(in.Args[2])
		if !ok || n < -1 {
			return nil, errSlowlogCount
		}
		count = n
	default:
		return nil, wrongSubcommandCall("slowlog", in.Args[1])
	}
	return func(x *Context) Reply {
		entries := []Reply{}
		for _, e := range x.Engine.Slowlog.newest(count) {
			entries = append(entries, Array(
				Integer(e.id), Integer(e.at/1000), Integer(e.took.Microseconds()), Bulks(e.args...), Bulk(e.addr), Bulk(e.name)))
		}
		return Array(entries...)
	}, nil
}
