package repair

import (
	"strings"

	"mayfly/keyspace/record"
)

// merger brings together what stores and journals say of each item: the stores in the order of their files, then
// the journals on top, which are kept in memory for that.
type merger struct {
	*folderReader
	later [][]journalEntry // by partition; those of the catalogue come last
}

// journalEntry is a change or a problem in a journal.
type journalEntry struct {
	change
	problem *Problem
}

// readJournals keeps what the journals say, to be applied on top of the stores.
func (m *merger) readJournals() ([]FileReport, error) {
	m.later = make([][]journalEntry, m.partitions+1)
	where := func(key string) int {
		if _, id, err := record.SplitKey(key); err == nil {
			return record.Partition(id, m.partitions)
		}
		return m.partitions
	}
	return m.journals(visitor{
		change: func(c change) error {
			to := where(c.key)
			c.key, c.rec = strings.Clone(c.key), strings.Clone(c.rec)
			m.later[to] = append(m.later[to], journalEntry{change: c})
			return nil
		},
		problem: func(file string, problem Problem) {
			if problem.Key != "" {
				to := where(problem.Key)
				m.later[to] = append(m.later[to], journalEntry{change: change{file: file}, problem: &problem})
				return
			}
			for to := range m.later { // it may have held anything
				m.later[to] = append(m.later[to], journalEntry{change: change{file: file}, problem: &problem})
			}
		},
	})
}

// merge brings together what the store of a partition (or the catalogue's, -1) and the journals say.
func (m *merger) merge(number int) (*merged, FileReport, error) {
	g := &merged{items: make(map[string]*itemState)}
	report, err := m.store(number, visitor{change: g.take, problem: g.hit})
	if err != nil {
		return nil, report, err
	}
	later := m.later[(number+m.partitions+1)%(m.partitions+1)]
	for _, e := range later {
		if e.problem != nil {
			g.hit(e.file, *e.problem)
		} else if err := g.take(e.change); err != nil {
			return nil, report, err
		}
	}
	return g, report, nil
}

// merged is what is known of the items of a partition.
type merged struct {
	items map[string]*itemState
	count int // changes and problems so far
	last  int // count at the last problem that may have held anything
}

// itemState is what is known of an item.
type itemState struct {
	rec   string // newest that could be read; empty if none or deleted
	aside string // what an unproven delete has deleted
	undo  *hit   // the first such delete since the last set
	at    int    // place in the order of changes
	hit   *hit   // a newer version was damaged
	del   bool
}

// hit is a problem and where it lies.
type hit struct {
	Problem
	file string
}

func (g *merged) take(c change) error {
	g.count++
	v := g.items[c.key]
	if v == nil {
		v = &itemState{}
		g.items[strings.Clone(c.key)] = v
	}
	was := *v
	*v = itemState{rec: strings.Clone(c.rec), at: g.count, del: c.del}
	if c.del && !c.proven {
		v.aside = was.rec + was.aside // one of them is empty
		v.undo = was.undo
		if was.aside == "" {
			v.undo = &hit{Problem{From: c.at.From, To: c.at.To}, c.file}
		}
	}
	return nil
}

// hit notes a problem. file and range are remembered for an item of which there is nothing newer.
func (g *merged) hit(file string, problem Problem) {
	g.count++
	if problem.Rescued {
		return
	}
	g.last = g.count
	if problem.Key == "" {
		return
	}
	v := g.items[problem.Key]
	if v == nil {
		v = &itemState{}
		g.items[problem.Key] = v
	}
	v.hit = &hit{problem, file}
}
