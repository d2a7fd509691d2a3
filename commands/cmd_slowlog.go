package commands

import (
	"container/list"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"mayfly/commands/redisfmt"
)

// slowlogCommand lists slow commands.
var slowlogCommand = Command{
	Name: "slowlog", Since: "2.2.12", Summary: "A container for slow log commands",
	Sub: []Command{
		{
			Name: "get", Syntax: "[count]", Summary: "Get the slow log's entries",
			Flags: Admin | Loading | Stale | OnNode, Tips: "request_policy:all_nodes nondeterministic_output", Parse: parseSlowlogGet,
		},
		helpRow("slowlog", "6.2.0"),
		{
			Name: "len", Summary: "Get the slow log's length",
			Flags: Admin | Loading | Stale | OnNode, Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
			Parse: noParse(func(x *Context) Reply { return Count(x.Engine.Slowlog.length()) }),
		},
		{
			Name: "reset", Summary: "Clear all entries from the slow log",
			Flags: Admin | Loading | Stale | OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: noParse(func(x *Context) Reply {
				x.Engine.Slowlog.reset()
				return OK
			}),
		},
	},
}

// Slowlog keeps the newest slow commands. The zero value keeps none. Safe for concurrent use.
type Slowlog struct {
	threshold

	mu         sync.Mutex // protects what follows
	maxEntries int
	nextID     int64
	entries    list.List // of *slowEntry, the newest first
}

// slowEntry is a slow command with truncated arguments.
type slowEntry struct {
	id   int64
	at   int64 // the end of the command, ms
	took time.Duration
	args []string
	addr string // of the client
	name string // CLIENT SETNAME
}

// SetThreshold sets the shortest duration that is recorded, in µs; negative records nothing.
func (l *Slowlog) SetThreshold(micros int) {
	if micros < 0 {
		l.shortest.Store(0)
		return
	}
	micros = min(micros, math.MaxInt64/int(time.Microsecond))
	l.shortest.Store(max(int64(micros)*int64(time.Microsecond), 1))
}

// SetLength sets the number of commands that are kept.
func (l *Slowlog) SetLength(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = n
	l.trimLocked()
}

// record adds a command that ended at a time in ms. It copies the arguments.
func (l *Slowlog) record(s *Session, at int64, took time.Duration, args []string) {
	entry := &slowEntry{at: at, took: took, args: truncateArguments(args), addr: s.Addr, name: s.name}
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

// reset drops all entries. Their numbers continue.
func (l *Slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

// newest returns up to count entries, the newest first; -1 means all.
func (l *Slowlog) newest(count int64) []*slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*slowEntry
	for e := l.entries.Front(); e != nil && int64(len(found)) != count; e = e.Next() {
		found = append(found, e.Value.(*slowEntry))
	}
	return found
}

// truncateArguments copies arguments for the slow log as Redis does: at most 32, of 128 bytes each. A
// note tells what is left out.
func truncateArguments(args []string) []string {
	const maxArgs, maxBytes = 32, 128
	shown := make([]string, 0, min(len(args), maxArgs))
	for i, arg := range args {
		if i == maxArgs-1 && len(args) > maxArgs {
			return append(shown, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		}
		if len(arg) > maxBytes {
			arg = fmt.Sprintf("%s... (%d more bytes)", arg[:maxBytes], len(arg)-maxBytes)
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
		return nil, errorf(errSubcommandCall, shown(in.Args[1]), "SLOWLOG")
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
