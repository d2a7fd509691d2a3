package memtable

import (
	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

// Evictable returns how many items may be evicted under a policy of eviction.
func (t *Table) Evictable(by eviction.Policy, p *expiry.Policy) int {
	if by.Volatile() {
		byDefault, byOwnTTL := t.expiring(p)
		return byDefault + byOwnTTL
	}
	return t.Len()
}

// EvictableBut is [Table.Evictable] without the dead that stay.
func (t *Table) EvictableBut(by eviction.Policy, p *expiry.Policy, dead Stats) int {
	n := t.Evictable(by, p)
	if !by.Volatile() {
		return max(n-dead.Items, 0)
	}
	byDefault, byOwnTTL := p.Expires()
	if byDefault {
		n -= dead.ByDefault
	}
	if byOwnTTL {
		n -= dead.ByOwnTTL
	}
	return max(n, 0)
}

// Draw visits about n random entries that may be evicted, but for kept ones: at least one if there is one.
// For volatile-ttl it visits up to n of each kind that die first; end is then when the entry dies (ms). intN
// returns a random number in [0,n).
func (t *Table) Draw(by eviction.Policy, p *expiry.Policy, kept *Kept, n int, intN func(n int) int, visit func(h Handle, e *Entry, end int64)) {
	if by == eviction.VolatileTTL {
		t.NearestExpiring(p, kept, n, intN, visit)
		return
	}
	if t.Evictable(by, p) == 0 {
		return
	}
	drawn := 0
	for range n {
		for range kept.tries() {
			var h Handle
			var e *Entry
			if by.Volatile() {
				h, e = t.RandomExpiring(p, intN)
			} else {
				h, e = t.Random(intN)
			}
			if !t.keeps(kept, e) {
				visit(h, e, 0)
				drawn++
				break
			}
		}
	}
	if drawn == 0 && kept != nil {
		t.drawFirst(by, p, kept, n, visit)
	}
}
