package deathlog

import (
	"sync"

	"mayfly/keyspace/streamid"
)

// Generator gives the ids of a log's entries, each greater than all before. The zero value gives the first.
// Safe for concurrent use.
type Generator struct {
	mu   sync.Mutex
	last streamid.ID
}

// Next returns the next id at a moment in ms.
func (g *Generator) Next(now int64) streamid.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch ms := uint64(max(now, 0)); {
	case ms > g.last.Ms:
		g.last = streamid.ID{Ms: ms}
	case g.last.Seq < MaxSeq:
		g.last.Seq++
	default:
		g.last = streamid.ID{Ms: g.last.Ms + 1}
	}
	return g.last
}

// Last returns the greatest id that was given.
func (g *Generator) Last() streamid.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// Raise makes all ids to come greater than one.
func (g *Generator) Raise(id streamid.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.Less(id) {
		g.last = id
	}
}
