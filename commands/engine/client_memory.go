package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// ClientMemoryLimit limits the memory that all clients together hold besides items. It counts queued
// commands, watched keys, subscriptions, half-read commands, and unsent messages and replies. Each of
// these has a limit for one client, too, but ten thousand clients could each reach it. The zero value is
// no limit. Safe for concurrent use.
//
// Over the limit, the largest clients are disconnected, as in Redis (maxmemory-clients). The requester is
// refused if it is the largest. Sizes within a factor of two are equal. Among equals, the client whose
// last release is the oldest goes first, so a client that reads its replies has an advantage.
type ClientMemoryLimit struct {
	// Evicted, if not nil, is called for every disconnected client with the bytes that it held. It
	// must not wait.
	Evicted func(s *Session, held int)

	limit        atomic.Int64  // bytes; 0: none
	used         atomic.Int64  // the sum of what clients have reported, bytes
	disconnected atomic.Int64  // clients
	releases     atomic.Uint64 // the number of releases so far

	mu      sync.Mutex // protects clients
	clients map[*ClientMemory]struct{}
}

// reportStep is the step in bytes in which a client reports its size. Most clients stay below the first
// step and so never touch shared state.
const reportStep = 16 << 10

// SetLimit changes the limit in bytes; 0 is none. A lower limit takes effect at the next request for
// memory.
func (m *ClientMemoryLimit) SetLimit(bytes int64) { m.limit.Store(bytes) }

// Limit returns the limit in bytes; 0 is none.
func (m *ClientMemoryLimit) Limit() int64 { return m.limit.Load() }

// Used returns the bytes that all clients hold, to within reportStep a client.
func (m *ClientMemoryLimit) Used() int64 { return m.used.Load() }

// Disconnected returns the number of clients disconnected over the limit.
func (m *ClientMemoryLimit) Disconnected() int64 { return m.disconnected.Load() }

// Open returns the memory of a session's client, which the caller must close.
func (m *ClientMemoryLimit) Open(s *Session) *ClientMemory {
	c := &ClientMemory{limit: m, session: s}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients == nil {
		m.clients = make(map[*ClientMemory]struct{})
	}
	m.clients[c] = struct{}{}
	return c
}

func (m *ClientMemoryLimit) exceeded() bool {
	limit := m.limit.Load()
	return limit > 0 && m.used.Load() > limit
}

// disconnectLargest disconnects the largest clients, but not c, until the limit is kept. It reports
// whether that was possible. It frees a little more than needed, so that the next requests need not look
// at all clients.
func (m *ClientMemoryLimit) disconnectLargest(c *ClientMemory) bool {
	const spare = 16 // frees one part in 16 more than needed
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.exceeded() {
		return true // another goroutine was faster
	}
	own := c.usage()
	var rivals []memoryUsage
	for other := range m.clients {
		if u := other.usage(); other != c && !other.protected.Load() && u.sizeClass() >= own.sizeClass() {
			rivals = append(rivals, u)
		}
	}
	slices.SortFunc(rivals, func(x, y memoryUsage) int {
		return cmp.Or(cmp.Compare(y.sizeClass(), x.sizeClass()), cmp.Compare(x.released, y.released))
	})
	target := m.limit.Load() - m.limit.Load()/spare
	for _, r := range rivals {
		if m.used.Load() <= target {
			break
		}
		delete(m.clients, r.client)
		r.client.free()
		m.disconnected.Add(1)
		if m.Evicted != nil {
			m.Evicted(r.client.session, r.held)
		}
	}
	return !m.exceeded()
}

// memoryUsage is the use of memory by a client, to compare it with others.
type memoryUsage struct {
	client   *ClientMemory
	held     int
	released uint64
}

func (u *memoryUsage) sizeClass() int { return bits.Len(uint(u.held)) }

// ClientMemory is the memory that one client holds. A nil ClientMemory has no limit. Safe for concurrent
// use.
type ClientMemory struct {
	limit     *ClientMemoryLimit
	session   *Session
	protected atomic.Bool // never disconnected for others

	mu       sync.Mutex // protects what follows
	held     int        // bytes
	closed   bool       // the client is disconnected
	released uint64     // ClientMemoryLimit.releases at the last release, or when the client began to hold
}

// Reserve requests size bytes and reports whether they are granted. If not, all clients together hold too
// much.
func (c *ClientMemory) Reserve(size int) bool {
	if c == nil {
		return true
	}
	reported, ok := c.change(size)
	if !ok {
		return false
	}
	if !reported || !c.limit.exceeded() || c.limit.disconnectLargest(c) {
		return true
	}
	c.Release(size)
	return false
}

// Charge is Reserve for a reply, which cannot be refused. It returns the number of bytes to release
// later, 0 if the client is disconnected.
func (c *ClientMemory) Charge(size int) int {
	if c == nil {
		return 0
	}
	more, open := c.change(size)
	if !open {
		return 0
	}
	if more && c.limit.exceeded() {
		c.limit.disconnectLargest(c)
	}
	return size
}

// Protect protects the client from being disconnected for others, or no longer (CLIENT NO-EVICT). Its own
// requests may still be refused.
func (c *ClientMemory) Protect(on bool) {
	if c != nil {
		c.protected.Store(on)
	}
}

// isProtected reports whether the client is protected.
func (c *ClientMemory) isProtected() bool { return c != nil && c.protected.Load() }

// Release returns size reserved bytes.
func (c *ClientMemory) Release(size int) {
	if c != nil {
		c.change(-size)
	}
}

// Size returns the number of bytes that the client holds.
func (c *ClientMemory) Size() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

func (c *ClientMemory) usage() memoryUsage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return memoryUsage{c, c.held, c.released}
}

// change changes what the client holds by size bytes. more reports whether the sum of all clients has
// grown, open whether the client is not closed.
func (c *ClientMemory) change(size int) (more, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, false
	}
	before := c.held / reportStep
	c.held += size
	if steps := c.held/reportStep - before; steps != 0 {
		c.limit.used.Add(int64(steps) * reportStep)
		switch {
		case steps < 0:
			c.released = c.limit.releases.Add(1)
		case before == 0: // the client begins to hold
			c.released = c.limit.releases.Load()
		}
		return steps > 0, true
	}
	return false, true
}

// free ends the accounting: the client holds nothing any more.
func (c *ClientMemory) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.limit.used.Add(-int64(c.held / reportStep * reportStep))
		c.held, c.closed = 0, true
	}
}

// Close releases everything that a disconnected client holds.
func (c *ClientMemory) Close() {
	if c == nil {
		return
	}
	c.limit.mu.Lock()
	delete(c.limit.clients, c)
	c.limit.mu.Unlock()
	c.free()
}
