package eviction

import (
	"fmt"
	"math/rand/v2"
	"testing"

	_ "mayfly/test/drill" // its flags
)

const epoch = 1_700_000_000_000 // ms

func TestLastAccess(t *testing.T) {
	t.Parallel()
	var lru Tracker
	for _, tt := range []struct {
		written, accessed, now, want int64 // accessed 0: never
	}{
		{epoch, 0, epoch + 5000, epoch},
		{epoch, epoch + 3000, epoch + 5000, epoch + 3000},
		{epoch, epoch + 3000, epoch + 3000, epoch + 3000},
		{epoch + 4000, epoch + 3000, epoch + 5000, epoch + 4000}, // a write is an access
		{0, 50, 50, 50}, // the first tick is not the word 0
		{epoch, epoch + 1e11, epoch + 1e11 + 500, epoch + 1e11},      // three years later
		{epoch, epoch + 5000, epoch + 4000, epoch + 4000},            // a clock that was set back
		{0, 1<<32*tick - tick, 1<<32*tick + tick, 1<<32*tick - tick}, // ticks wrap around
	} {
		word := uint32(0)
		if tt.accessed != 0 {
			if word = lru.Touch(0, tt.written, tt.accessed); word == 0 {
				t.Errorf("%+v: the word is 0", tt)
			}
		}
		if got := lru.LastAccess(word, tt.written, tt.now); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

// TestFrequencyGrowsLikeInRedis: redis.conf has a table of counters after that many hits, by lfu-log-factor.
func TestFrequencyGrowsLikeInRedis(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)).Float64
	for _, tt := range []struct{ factor, hits, least, most int }{
		{0, 100, 104, 106}, {0, 1000, 255, 255}, {1, 100, 15, 21}, {1, 1000, 44, 54}, {10, 100, 8, 12}, {10, 1000, 15, 21},
		{10, 100_000, 135, 150}, {100, 1000, 8, 14}, {100, 100_000, 44, 54},
	} {
		lfu := Tracker{LFU: true, LogFactor: tt.factor, DecayTime: 1, Since: epoch, Random: random}
		word := uint32(0)
		for range tt.hits {
			word = lfu.Touch(word, epoch, epoch)
		}
		if got := lfu.Frequency(word, epoch, epoch); got < tt.least || got > tt.most {
			t.Errorf("factor %d: %d after %d hits, want %d to %d", tt.factor, got, tt.hits, tt.least, tt.most)
		}
	}
}

func TestFrequencyDecays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		decay   int
		minutes int64
		want    int
	}{
		{1, 0, 8}, {1, 3, 5}, {1, 8, 0}, {1, 100_000, 0}, {0, 100_000, 8}, {2, 3, 7}, {10, 9, 8}, {10, 25, 6},
	} {
		lfu := Tracker{LFU: true, LogFactor: 0, DecayTime: tt.decay, Since: epoch}
		word := uint32(0)
		for range 3 {
			word = lfu.Touch(word, epoch, epoch)
		}
		if got := lfu.Frequency(word, epoch, epoch+tt.minutes*minute); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
	lfu := Tracker{LFU: true, DecayTime: 1, Since: epoch}
	if got := lfu.Frequency(0, epoch-100*minute, epoch); got != initialCounter {
		t.Errorf("an item from before the count begins with %d", got)
	}
	if got := lfu.Frequency(0, epoch+minute, epoch); got != initialCounter {
		t.Errorf("with a clock that was set back %d", got)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	var p Pool[int]
	if _, ok := p.Take(); ok || !p.Empty() {
		t.Error("an empty pool has a candidate")
	}
	var drawn []Candidate[int]
	for i := range 2 * poolSize {
		drawn = append(drawn, Candidate[int]{Rank: int64(i * 7 % (2 * poolSize)), Key: i})
	}
	p.Add(drawn[:poolSize])
	p.Add(drawn[poolSize:])
	for want := range int64(poolSize) {
		c, ok := p.Take()
		if !ok || c.Rank != want || c != drawn[c.Key] {
			t.Fatalf("got %+v, want that of rank %d", c, want)
		}
	}
	if !p.Empty() {
		t.Error("the pool keeps more than its size")
	}
	p.Add([]Candidate[int]{{1, 1}, {1, 1}})
	p.Take()
	if !p.Empty() {
		t.Error("the same candidate is there twice")
	}
	p.Add(drawn)
	p.Reset()
	if !p.Empty() {
		t.Error("there are candidates after Reset")
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	for p := None; p <= AllKeysRandom; p++ {
		var kinds []string
		for name, is := range map[string]bool{"lru": p.LRU(), "lfu": p.LFU(), "random": p.Random()} {
			if is {
				kinds = append(kinds, name)
			}
		}
		want := p.String()
		switch {
		case p == None || p == VolatileTTL:
			kinds = []string{want}
		case p.Volatile():
			kinds[0] = "volatile-" + kinds[0]
		default:
			kinds[0] = "allkeys-" + kinds[0]
		}
		if fmt.Sprint(kinds) != "["+want+"]" {
			t.Errorf("%s is %v", want, kinds)
		}
	}
}

// A change of the policy may take the tracker away while others still rank by the one before.
func TestRankWithoutTracker(t *testing.T) {
	t.Parallel()
	var none *Tracker
	for _, p := range []Policy{AllKeysLRU, AllKeysLFU, VolatileLRU, VolatileLFU} {
		if rank := none.Rank(p, 1, 2, 3, 4); rank != 0 {
			t.Errorf("%v: rank %d", p, rank)
		}
	}
}
