package commands

import "sync"

// queryCounts count queries and what they have read, for INFO.
type queryCounts struct{ queries, scans, examined, dead, slices, overBudget int64 }

// plus returns the counts with others added a number of times; -1 subtracts them.
func (c queryCounts) plus(other queryCounts, times int64) queryCounts {
	c.queries += times * other.queries
	c.scans += times * other.scans
	c.examined += times * other.examined
	c.dead += times * other.dead
	c.slices += times * other.slices
	c.overBudget += times * other.overBudget
	return c
}

// queryStats are the counts since the start. Safe for concurrent use.
type queryStats struct {
	mu     sync.Mutex // protects counts
	counts queryCounts
}

// add adds a query.
func (s *queryStats) add(r *queryRun) {
	one := queryCounts{queries: 1, examined: int64(r.examined), dead: int64(r.dead), slices: int64(r.slices)}
	if r.scans() {
		one.scans = 1
	}
	if r.over {
		one.overBudget = 1
	}
	s.mu.Lock()
	s.counts = s.counts.plus(one, 1)
	s.mu.Unlock()
}

func (s *queryStats) read() queryCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}
