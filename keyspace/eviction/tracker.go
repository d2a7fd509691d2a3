package eviction

import "math/rand/v2"

// Tracker reads and writes the words that keep accesses. The word 0 is that of an item without a recorded
// access. Times are in ms. A tracker does not change and is safe for concurrent use.
type Tracker struct {
	LFU       bool // count accesses, instead of keeping the time of the last one
	LogFactor int
	DecayTime int   // minutes
	Since     int64 // when counting began; earlier accesses are unknown

	// Random returns a random number in [0,1); nil means rand.Float64.
	Random func() float64
}

const (
	tick   = 100    // ms, the resolution of LRU; 32 bits are 13 years
	minute = 60_000 // ms, the resolution of LFU

	// LFU has the time in minutes above the counter.
	counterBits = 8
	maxCounter  = 1<<counterBits - 1
	minutesMask = 1<<(32-counterBits) - 1

	// initialCounter is the counter of a new item. It may gather accesses before it is the first to go.
	initialCounter = 5
)

// Touch returns the word of an item after an access at the time now. written is the time of its last write.
func (t *Tracker) Touch(word uint32, written, now int64) uint32 {
	if !t.LFU {
		return max(uint32(now/tick), 1)
	}
	counter := t.Frequency(word, written, now)
	return uint32(now/minute&minutesMask)<<counterBits | uint32(t.increment(counter))
}

// increment returns a counter after an access. The greater it is, the less likely it grows.
func (t *Tracker) increment(counter int) int {
	random := t.Random
	if random == nil {
		random = rand.Float64
	}
	above := max(counter-initialCounter, 0)
	if counter < maxCounter && random() < 1/(float64(above)*float64(t.LogFactor)+1) {
		counter++
	}
	return counter
}

// LastAccess returns the time of the last access that is known, of an LRU word. A write is an access, too.
func (t *Tracker) LastAccess(word uint32, written, now int64) int64 {
	if word == 0 {
		return written
	}
	passed := int32(uint32(now/tick) - word)
	return max(now-max(int64(passed), 0)*tick, written)
}

// Frequency returns the counter of an LFU word, 0 to 255, as of the time now.
func (t *Tracker) Frequency(word uint32, written, now int64) int {
	counter, since := int64(initialCounter), max(written, t.Since)/minute&minutesMask
	if word != 0 {
		counter, since = int64(word&maxCounter), int64(word>>counterBits)
	}
	if t.DecayTime == 0 {
		return int(counter)
	}
	passed := (now/minute - since) & minutesMask
	if passed > minutesMask/2 { // since is not before now
		passed = 0
	}
	return int(max(counter-passed/int64(t.DecayTime), 0))
}

// Rank returns the place of an item in the order of eviction: the least goes first. end is when it dies (ms),
// for volatile-ttl. t may be nil: a change of the policy takes it away while others evict by the one before.
func (t *Tracker) Rank(p Policy, word uint32, written, end, now int64) int64 {
	switch {
	case p == VolatileTTL:
		return end
	case t == nil:
		return 0
	case p.LRU():
		return t.LastAccess(word, written, now)
	case p.LFU():
		return int64(t.Frequency(word, written, now))
	}
	return 0
}

// Accesses are what is known of the accesses to an item.
type Accesses struct {
	LFU       bool  // the frequency is known, else the time
	Idle      int64 // since the last known access, ms
	Frequency int   // the logarithmic counter, 0 to 255
}

// Accesses returns what a word tells. Without a tracker the last known access is the write.
func (t *Tracker) Accesses(word uint32, written, now int64) Accesses {
	switch {
	case t == nil:
		return Accesses{Idle: max(now-written, 0)}
	case t.LFU:
		return Accesses{LFU: true, Frequency: t.Frequency(word, written, now)}
	}
	return Accesses{Idle: max(now-t.LastAccess(word, written, now), 0)}
}
