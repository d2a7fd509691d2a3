package latency

import (
	"container/list"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// Slowlog keeps the newest slow commands. The zero value keeps none. Safe for concurrent use.
type Slowlog struct {
	Threshold

	mu         sync.Mutex // protects what follows
	maxEntries int
	nextID     int64
	entries    list.List // of *SlowCommand, the newest first
}

// SlowCommand is a slow command with truncated arguments.
type SlowCommand struct {
	ID   int64
	At   int64 // the end of the command, ms
	Took time.Duration
	Args []string
	Addr string // of the client
	Name string // CLIENT SETNAME
}

// SetThreshold sets the shortest duration that is recorded, in µs; negative records nothing.
func (l *Slowlog) SetThreshold(micros int) {
	if micros < 0 {
		l.Shortest.Store(0)
		return
	}
	micros = min(micros, math.MaxInt64/int(time.Microsecond))
	l.Shortest.Store(max(int64(micros)*int64(time.Microsecond), 1))
}

// SetLength sets the number of commands that are kept.
func (l *Slowlog) SetLength(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = n
	l.trimLocked()
}

// Record adds a command of a client that ended at a time in ms. It copies the arguments.
func (l *Slowlog) Record(addr, name string, at int64, took time.Duration, args []string) {
	entry := &SlowCommand{At: at, Took: took, Args: truncateArguments(args), Addr: addr, Name: name}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.ID = l.nextID
	l.nextID++
	l.entries.PushFront(entry)
	l.trimLocked()
}

func (l *Slowlog) trimLocked() {
	for l.entries.Len() > l.maxEntries {
		l.entries.Remove(l.entries.Back())
	}
}

func (l *Slowlog) Length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

// Reset drops all entries. Their numbers continue.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

// Newest returns up to count entries, the newest first; -1 means all.
func (l *Slowlog) Newest(count int64) []*SlowCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*SlowCommand
	for e := l.entries.Front(); e != nil && int64(len(found)) != count; e = e.Next() {
		found = append(found, e.Value.(*SlowCommand))
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
