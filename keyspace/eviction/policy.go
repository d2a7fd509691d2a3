package eviction

// Policy says which items may go and which of them go first (maxmemory-policy).
type Policy uint8

// The policies, with the names of Redis. Volatile items are those that will die.
const (
	None           Policy = iota // nothing is evicted
	VolatileTTL                  // volatile items, the nearest to death first
	VolatileLRU                  // volatile items, the longest unused first
	VolatileLFU                  // volatile items, the least often used first
	VolatileRandom               // volatile items at random
	AllKeysLRU                   // any item, the longest unused first
	AllKeysLFU                   // any item, the least often used first
	AllKeysRandom                // any item at random
)

var names = [...]string{
	None: "noeviction", VolatileTTL: "volatile-ttl", VolatileLRU: "volatile-lru", VolatileLFU: "volatile-lfu",
	VolatileRandom: "volatile-random", AllKeysLRU: "allkeys-lru", AllKeysLFU: "allkeys-lfu", AllKeysRandom: "allkeys-random",
}

// String returns the name of Redis.
func (p Policy) String() string { return names[p] }

// Volatile reports whether only items that will die may go.
func (p Policy) Volatile() bool { return p >= VolatileTTL && p <= VolatileRandom }

// LRU reports whether the time of the last access decides.
func (p Policy) LRU() bool { return p == VolatileLRU || p == AllKeysLRU }

// LFU reports whether the frequency of accesses decides.
func (p Policy) LFU() bool { return p == VolatileLFU || p == AllKeysLFU }

// Random reports whether chance decides.
func (p Policy) Random() bool { return p == VolatileRandom || p == AllKeysRandom }

// Options configure eviction. The zero value evicts nothing.
type Options struct {
	Policy    Policy
	Samples   int // items drawn for each one that goes (maxmemory-samples)
	LogFactor int // of LFU: the greater, the slower counters grow (lfu-log-factor)
	DecayTime int // of LFU: minutes until a counter falls by one; 0: never (lfu-decay-time)
}

// Defaults are the options of Redis.
var Defaults = Options{Samples: 5, LogFactor: 10, DecayTime: 1}
