package eviction

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Source is a set of items under one lock. K names an item in a state: after a write or an access it is
// another.
type Source[K comparable] interface {
	// Evictable returns how many of the items may go.
	Evictable(p Policy) int
	// Draw appends n random items that may go. For volatile-ttl it appends up to n of each kind that die
	// first.
	Draw(p Policy, n int, intN func(n int) int, drawn []Candidate[K]) []Candidate[K]
}

// Evictor draws candidates from sources and keeps the options. It works in rounds. A round draws about
// Options.Samples items for each one that may go, and adds them to the pool. The best of the pool go.
//
//  1. Sources are drawn from in proportion to their items, so that every item has the same chance. For
//     volatile-ttl, which knows the nearest to death of each source, every source has the same share.
//  2. A round looks at SourcesPerRound sources at most, and the next goes on with others. If none of them has
//     an item that may go, up to roundsPerDraw rounds are tried.
//
// Accesses are kept in words only while a policy needs them, or after Track. Until then the last known access
// to an item is its last write.
//
// Init makes it ready. Safe for concurrent use. No other lock is taken while its own is held.
type Evictor[K comparable, S Source[K]] struct {
	// IntN returns a random number in [0,n). Tests replace it.
	IntN func(n int) int

	options atomic.Pointer[Options]
	tracker atomic.Pointer[Tracker]
	at      atomic.Uint32 // position in the list of sources where the next round begins

	mu    sync.Mutex // protects what follows
	asked bool       // accesses are kept even if the policy does not need them
	pool  Pool[K]
	mean  float64 // items of the sources of a round
}

// SourcesPerRound is the largest number of sources that a round looks at.
const SourcesPerRound = 1024

const (
	batch         = 16 // items that go in a round, on the average
	roundsPerDraw = 16
	maxSamples    = 64 // more samples count as this
)

// Init makes an evictor with the options of Redis.
func (e *Evictor[K, S]) Init() {
	e.IntN = rand.IntN
	o := Defaults
	e.options.Store(&o)
}

// Options returns the options.
func (e *Evictor[K, S]) Options() Options { return *e.options.Load() }

// Tracker returns what keeps accesses, nil if they are not kept.
func (e *Evictor[K, S]) Tracker() *Tracker { return e.tracker.Load() }

// SetOptions changes the options at the time now (ms). Accesses are kept from now on if the policy needs
// them. forget means that the words that the former tracker has written mean nothing any more.
func (e *Evictor[K, S]) SetOptions(o Options, now int64) (forget bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Store(&o)
	e.pool.Reset()
	was := e.tracker.Load()
	is := e.retrackLocked(now)
	return was != nil && (is == nil || is.LFU != was.LFU)
}

// Track keeps accesses from now (ms) on, whatever the policy.
func (e *Evictor[K, S]) Track(now int64) {
	if e.tracker.Load() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = true
	e.retrackLocked(now)
}

// retrackLocked makes the tracker that is needed, nil if none. e.mu must be held.
func (e *Evictor[K, S]) retrackLocked(now int64) (t *Tracker) {
	o, was := e.options.Load(), e.tracker.Load()
	if o.Policy.LRU() || o.Policy.LFU() || e.asked {
		t = &Tracker{LFU: o.Policy.LFU(), LogFactor: o.LogFactor, DecayTime: o.DecayTime, Since: now}
		if was != nil && was.LFU == t.LFU {
			t.Since = was.Since
		}
	}
	e.tracker.Store(t)
	return t
}

// Draw draws items, adds them to the pool, and returns how many of its candidates may go, 0 if there are
// none. some returns up to n sources, each at most once, from a position on that wraps around.
func (e *Evictor[K, S]) Draw(some func(from, n int) []S) int {
	o := e.Options()
	samples := min(max(o.Samples, 1), maxSamples)
	switch {
	case o.Policy == None:
		return 0
	case o.Policy.Random():
		samples = 1
	}
	for range roundsPerDraw {
		from := int(e.at.Add(SourcesPerRound) - SourcesPerRound)
		sources := some(from, SourcesPerRound)
		if drawn := e.drawFrom(sources, o.Policy, samples); len(drawn) > 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			if o.Policy.Random() {
				e.pool.Reset()
			}
			e.pool.Add(drawn)
			return (len(drawn) + samples - 1) / samples
		}
		if len(sources) < SourcesPerRound {
			break // these are all
		}
	}
	return 0
}

// drawFrom draws items from some sources.
func (e *Evictor[K, S]) drawFrom(sources []S, p Policy, samples int) (drawn []Candidate[K]) {
	if p == VolatileTTL {
		for _, s := range sources {
			drawn = s.Draw(p, samples, e.IntN, drawn)
		}
		return drawn
	}
	// ends[i] is how many items the sources up to i have that may go.
	ends, total := make([]int, len(sources)), 0
	for i, s := range sources {
		total += s.Evictable(p)
		ends[i] = total
	}
	if total == 0 {
		return nil
	}
	picks := make([]int, e.share(total, len(sources))*samples)
	for i := range picks {
		picks[i] = e.IntN(total)
	}
	slices.Sort(picks)
	for i, s := range sources {
		n := 0
		for n < len(picks) && picks[n] < ends[i] {
			n++
		}
		if picks = picks[n:]; n > 0 {
			drawn = s.Draw(p, n, e.IntN, drawn)
		}
	}
	return drawn
}

// share returns how many items may go in a round whose sources have total items. If there are more sources
// than a round looks at, that is its share by items.
func (e *Evictor[K, S]) share(total, sources int) int {
	if sources < SourcesPerRound {
		return batch
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mean == 0 {
		e.mean = float64(total)
	}
	e.mean += (float64(total) - e.mean) / 16
	return int(min(max(batch*float64(total)/e.mean, 1), 16*batch))
}

// Take removes the best candidate and returns it, false if there is none.
func (e *Evictor[K, S]) Take() (K, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.pool.Take()
	return c.Key, ok
}

// Forget drops the candidates, which may keep the memory of what they name.
func (e *Evictor[K, S]) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pool.Reset()
}

// Empty reports whether there are no candidates.
func (e *Evictor[K, S]) Empty() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pool.Empty()
}
