package eviction

import (
	"cmp"
	"slices"
)

// Candidate is an item that may go.
type Candidate[K comparable] struct {
	Rank int64 // the least goes first
	Key  K     // names the item in the state in which it was drawn
}

// Pool keeps the best candidates of several samples, so that each eviction chooses among more than its own
// sample. The zero value is ready. Not safe for concurrent use.
type Pool[K comparable] struct {
	best []Candidate[K] // the best last
}

// poolSize is the number of candidates that a pool keeps between samples. Redis keeps 16 and draws 5 at a
// time. Samples here are larger.
const poolSize = 256

// Add adds candidates and keeps the best.
func (p *Pool[K]) Add(drawn []Candidate[K]) {
	p.best = append(p.best, drawn...)
	slices.SortStableFunc(p.best, func(a, b Candidate[K]) int { return cmp.Compare(b.Rank, a.Rank) })
	p.best = slices.Compact(p.best)
	if excess := len(p.best) - poolSize; excess > 0 {
		p.best = slices.Delete(p.best, 0, excess)
	}
}

// Take removes the best candidate and returns it, false if there is none.
func (p *Pool[K]) Take() (c Candidate[K], ok bool) {
	last := len(p.best) - 1
	if last < 0 {
		return c, false
	}
	c = p.best[last]
	p.best[last] = Candidate[K]{}
	p.best = p.best[:last]
	return c, true
}

// Empty reports whether there is no candidate.
func (p *Pool[K]) Empty() bool { return len(p.best) == 0 }

// Reset drops all candidates.
func (p *Pool[K]) Reset() { p.best = nil }
