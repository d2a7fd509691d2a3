package commands

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// ClientMemory bounds what all clients together make the server keep for them, besides items: commands
// between MULTI and EXEC, watched keys, subscriptions, commands that are half read, messages and
// replies that are not sent yet. Each of these is bounded for a single client, too, but ten thousand
// clients could each go to their limit. The zero value has no limit. Safe for concurrent use.
//
// Who brings the sum above the limit is refused if all others hold less; else the greatest are
// disconnected, as Redis does (maxmemory-clients), so that a few who hoard keep nobody else from
// working. Of those who hold about the same, by a factor of two, it is first whoever has given nothing
// back for the longest: one who takes his replies is better off than one who does not.
type ClientMemoryLimit struct {
	// Evicted, if not nil, is called for a client that is disconnected because it holds too much
	// (bytes). It must not wait.
	Evicted func(s *Session, held int)

	limit        atomic.Int64  // bytes; 0: none
	used         atomic.Int64  // what the accounts report, together
	disconnected atomic.Int64  // clients disconnected
	releases     atomic.Uint64 // how many times something was given back

	mu      sync.Mutex // protects accounts
	clients map[*ClientMemory]struct{}
}

// accountStep is in what steps an account reports what it holds. What is below the first step, which is
// what most clients need, concerns nobody else.
const reportStep = 16 << 10

// SetLimit changes the limit in bytes; 0 is none. Who holds more than a lower limit is disconnected when
// somebody wants more.
func (m *ClientMemoryLimit) SetLimit(bytes int64) { m.limit.Store(bytes) }

// Limit is the limit in bytes; 0 is none.
func (m *ClientMemoryLimit) Limit() int64 { return m.limit.Load() }

// Used is what all clients hold together, in bytes, to within accountStep a client.
func (m *ClientMemoryLimit) Used() int64 { return m.used.Load() }

// Disconnected is how many clients have been disconnected because of what they held.
func (m *ClientMemoryLimit) Disconnected() int64 { return m.disconnected.Load() }

// Open makes the account of a session, whose owner must close it.
func (m *ClientMemoryLimit) Open(s *Session) *ClientMemory {
	a := &ClientMemory{limit: m, session: s}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients == nil {
		m.clients = make(map[*ClientMemory]struct{})
	}
	m.clients[a] = struct{}{}
	return a
}

func (m *ClientMemoryLimit) exceeded() bool {
	limit := m.limit.Load()
	return limit > 0 && m.used.Load() > limit
}

// makeRoom disconnects those who hold most until the limit is kept, with a little to spare, lest
// everybody who wants something more has to look at all accounts. It tells whether that was possible
// without the account a.
func (m *ClientMemoryLimit) disconnectLargest(a *ClientMemory) bool {
	const spare = 16 // a part in so many
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.exceeded() {
		return true // somebody else has been faster
	}
	mine := a.usage()
	var rivals []memoryUsage
	for other := range m.clients {
		if h := other.usage(); other != a && !other.protected.Load() && h.sizeClass() >= mine.sizeClass() {
			rivals = append(rivals, h)
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
		r.client.closeAccount()
		m.disconnected.Add(1)
		if m.Evicted != nil {
			m.Evicted(r.client.session, r.held)
		}
	}
	return !m.exceeded()
}

// holder is a client as it is compared with others.
type memoryUsage struct {
	client   *ClientMemory
	held     int
	released uint64
}

func (h *memoryUsage) sizeClass() int { return bits.Len(uint(h.held)) }

// Account is what one client makes the server keep. A nil account is never refused anything. Safe for
// concurrent use.
type ClientMemory struct {
	limit     *ClientMemoryLimit
	session   *Session
	protected atomic.Bool // from being disconnected for the sake of others

	mu       sync.Mutex // protects what follows
	held     int        // bytes
	closed   bool       // the client is being disconnected, or has gone
	released uint64     // ClientMemory.returns when the client gave something back or began to hold
}

// Take asks for size bytes more and tells whether they were granted. If they were not, all clients
// together hold too much.
func (a *ClientMemory) Reserve(size int) bool {
	if a == nil {
		return true
	}
	reported, ok := a.change(size)
	if !ok {
		return false
	}
	if !reported || !a.limit.exceeded() || a.limit.disconnectLargest(a) {
		return true
	}
	a.Release(size)
	return false
}

// Hold is Take for what cannot be refused any more, a reply: if the client holds more than all others, so
// be it. It returns how much is to be given back, 0 if the client is being disconnected.
func (a *ClientMemory) Charge(size int) int {
	if a == nil {
		return 0
	}
	more, open := a.change(size)
	if !open {
		return 0
	}
	if more && a.limit.exceeded() {
		a.limit.disconnectLargest(a)
	}
	return size
}

// Exempt keeps the client from being disconnected for the sake of others (CLIENT NO-EVICT), or no longer.
// What it asks for itself may still be refused.
func (a *ClientMemory) Protect(on bool) {
	if a != nil {
		a.protected.Store(on)
	}
}

// Give returns size bytes that were taken.
func (a *ClientMemory) Release(size int) {
	if a != nil {
		a.change(-size)
	}
}

// Held is how many bytes the client holds.
func (a *ClientMemory) Size() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

func (a *ClientMemory) usage() memoryUsage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return memoryUsage{a, a.held, a.released}
}

// add changes what is held. It tells whether all accounts together hold more now, and whether the
// account is still open.
func (a *ClientMemory) change(size int) (more, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false, false
	}
	before := a.held / reportStep
	a.held += size
	if steps := a.held/reportStep - before; steps != 0 {
		a.limit.used.Add(int64(steps) * reportStep)
		switch {
		case steps < 0:
			a.released = a.limit.releases.Add(1)
		case before == 0: // it begins to hold something
			a.released = a.limit.releases.Load()
		}
		return steps > 0, true
	}
	return false, true
}

// shut ends the account and reports that nothing is held any more.
func (a *ClientMemory) closeAccount() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.limit.used.Add(-int64(a.held / reportStep * reportStep))
		a.held, a.closed = 0, true
	}
}

// Close ends the account of a client that has gone, with all that it held.
func (a *ClientMemory) Close() {
	if a == nil {
		return
	}
	a.limit.mu.Lock()
	delete(a.limit.clients, a)
	a.limit.mu.Unlock()
	a.closeAccount()
}
