package repair

import (
	"strings"

	"mayfly/keyspace/record"
)

// merger merges the changes of stores and journals per item: each store in the order of its file, then the
// journals, which are kept in memory.
type merger struct {
	*folderReader
	later [][]journalEntry // by partition; the catalogue's come last
}

// journalEntry is a change or a problem in a journal.
type journalEntry struct {
	change
	problem *Problem
}

// readJournals keeps the changes and problems of the journals.
func (m *merger) readJournals() ([]FileReport, error) {
	m.later = make([][]journalEntry, m.partitions+1)
	return m.journals(visitor{
		change: func(c change) error {
			c.key, c.rec = strings.Clone(c.key), strings.Clone(c.rec)
			to := m.laterOf(c.key)
			m.later[to] = append(m.later[to], journalEntry{change: c})
			return nil
		},
		problem: func(file string, problem Problem) {
			e := journalEntry{change: change{file: file}, problem: &problem}
			for to := range m.later { // the range may have held any item, even if a key in it can be read
				if to < m.partitions || problem.Key == "" || m.laterOf(problem.Key) == to {
					m.later[to] = append(m.later[to], e)
				}
			}
		},
	})
}

// laterOf returns the index in later of a key's changes. A damaged key may be that of a page of no partition.
func (m *merger) laterOf(key string) int {
	key, _ = record.TouchedKey(key)
	if k, err := record.SplitKey(key); err == nil {
		return min(k.Partition(m.partitions), m.partitions)
	}
	return m.partitions
}

// merge merges the store of a partition (or the catalogue's, -1) and the journals.
func (m *merger) merge(number int) (*merged, FileReport, error) {
	g := &merged{items: make(map[string]*itemState)}
	report, err := m.store(number, visitor{change: g.apply, problem: g.addProblem})
	if err != nil {
		return nil, report, err
	}
	g.damaged = m.damaged
	to := (number + m.partitions + 1) % (m.partitions + 1)
	for _, e := range m.later[to] {
		if e.problem != nil {
			problem := *e.problem
			if m.laterOf(problem.Key) != to {
				problem.Key = ""
			}
			g.addProblem(e.file, problem)
		} else if err := g.apply(e.change); err != nil {
			return nil, report, err
		}
	}
	return g, report, nil
}

// merged is the state of a partition's items.
type merged struct {
	items   map[string]*itemState
	count   int  // changes and problems so far
	last    int  // count at the last problem that lost something
	damaged bool // the store or a journal is

	lastProblem *damagedRange // that at last
}

// itemState is the state of an item.
type itemState struct {
	rec       string        // newest that could be read; empty if none or deleted
	undeleted string        // the record that an unproven delete has deleted
	deletedBy *damagedRange // the first such delete since the last set
	at        int           // count at the last change
	damage    *damagedRange // of a newer version
	del       bool
}

// damagedRange is a problem in a file.
type damagedRange struct {
	Problem
	file string
}

// item returns the state of the item under a key, new if there is none.
func (g *merged) item(key string) *itemState {
	v := g.items[key]
	if v == nil {
		v = &itemState{}
		g.items[strings.Clone(key)] = v
	}
	return v
}

func (g *merged) apply(c change) error {
	g.count++
	if key, touched := record.TouchedKey(c.key); touched {
		return g.touch(key, c)
	}
	v := g.item(c.key)
	was := *v
	*v = itemState{rec: strings.Clone(c.rec), at: g.count, del: c.del}
	if c.del && !c.proven {
		v.undeleted = was.rec + was.undeleted // one of them is empty
		v.deletedBy = was.deletedBy
		if was.undeleted == "" {
			v.deletedBy = &damagedRange{Problem{From: c.at.From, To: c.at.To}, c.file}
		}
	}
	return nil
}

// touch applies a touch to the item under a key. In a sound folder one that finds no record with its body
// belongs to an item that was removed later. In a damaged one the record may be what is lost.
func (g *merged) touch(key string, c change) error {
	touch, base, err := record.ReadTouch(c.key, c.rec)
	if err != nil {
		return err
	}
	version := uint64(0)
	var it record.Item
	if v := g.items[key]; v != nil && v.rec != "" {
		if it, _, err = record.Decode(key, v.rec); err != nil {
			return err
		}
		version = it.Version
	}
	switch {
	case version > 0 && touch.Touches(base, version):
		v := g.item(key)
		*v = itemState{rec: string(record.Append(nil, key, it.Touched(touch))), at: g.count}
	case version < base && g.damaged:
		reason := "the record to which this touch belongs is missing"
		g.item(key).damage = &damagedRange{Problem{From: c.at.From, To: c.at.To, Reason: reason}, c.file}
	}
	return nil
}

// addProblem records a problem. Until a newer change it marks the item whose key it has.
func (g *merged) addProblem(file string, problem Problem) {
	g.count++
	if problem.Rescued {
		return
	}
	g.last, g.lastProblem = g.count, &damagedRange{problem, file}
	if problem.Key == "" {
		return
	}
	key, _ := record.TouchedKey(problem.Key)
	g.item(key).damage = g.lastProblem
}
