package scripts

import (
	"container/list"
	"strings"
	"sync"
)

// Bounds of a Cache. Scripts that EVAL brought leave first, the least recently used one before others.
const (
	maxScripts     = 10_000
	maxBytes       = 64 << 20
	maxEvalScripts = 500 // as Redis 7.4
)

// Cache keeps compiled scripts by their SHA1, bounded in number and bytes. Its zero value is empty
// and ready for use; it is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex // protects all below
	scripts map[string]*list.Element
	evals   list.List // of *cached, most recently used first: scripts that EVAL brought
	loads   list.List // likewise: scripts that SCRIPT LOAD brought
	bytes   int
	evicted int
}

type cached struct {
	script *Script
	keep   bool
}

// Load returns the script with the given body, compiled and cached. keep is for SCRIPT LOAD: other
// scripts leave a full cache first. The error has the text of Redis' reply, "ERR" included.
func (c *Cache) Load(body string, keep bool) (*Script, error) {
	sha := SHA1(body)
	if s, ok := c.lookup(sha, keep); ok {
		return s, nil
	}
	s, err := compile(strings.Clone(body), sha)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.scripts[sha]; ok {
		return e.Value.(*cached).script, nil
	}
	if c.scripts == nil {
		c.scripts = map[string]*list.Element{}
	}
	c.addLocked(&cached{s, keep})
	c.bytes += s.Size()
	for len(c.scripts) > 1 && (c.evals.Len() > maxEvalScripts || len(c.scripts) > maxScripts || c.bytes > maxBytes) {
		c.evictLocked(sha)
	}
	return s, nil
}

// Get returns the script with a SHA1, whose letters may be of either case.
func (c *Cache) Get(sha string) (*Script, bool) {
	for i := 0; i < len(sha); i++ {
		if 'A' <= sha[i] && sha[i] <= 'Z' {
			sha = strings.ToLower(sha)
			break
		}
	}
	return c.lookup(sha, false)
}

// Flush removes all scripts. Scripts that run go on.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts, c.bytes = nil, 0
	c.evals.Init()
	c.loads.Init()
}

// Stats describes a cache for INFO.
type Stats struct {
	Scripts int
	Bytes   int // that the scripts take, about
	Evicted int // scripts that have left a full cache
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{len(c.scripts), c.bytes, c.evicted}
}

func (c *Cache) lookup(sha string, keep bool) (*Script, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.scripts[sha]
	if !ok {
		return nil, false
	}
	entry := e.Value.(*cached)
	switch {
	case entry.keep:
		c.loads.MoveToFront(e)
	case keep:
		c.evals.Remove(e)
		entry.keep = true
		c.addLocked(entry)
	default:
		c.evals.MoveToFront(e)
	}
	return entry.script, true
}

// addLocked lists an entry. c.mu must be held.
func (c *Cache) addLocked(entry *cached) {
	queue := &c.evals
	if entry.keep {
		queue = &c.loads
	}
	c.scripts[entry.script.sha] = queue.PushFront(entry)
}

// evictLocked removes the least recently used script other than the one with SHA1 spare. c.mu must be held.
func (c *Cache) evictLocked(spare string) {
	for _, queue := range []*list.List{&c.evals, &c.loads} {
		e := queue.Back()
		if e == nil || e.Value.(*cached).script.sha == spare {
			continue
		}
		s := queue.Remove(e).(*cached).script
		delete(c.scripts, s.sha)
		c.bytes -= s.Size()
		c.evicted++
		return
	}
}
