package keyspace

import (
	"cmp"
	"fmt"
	"slices"

	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
)

// inventory is what the records say that were read. The zero value has read nothing. Not safe for concurrent
// use.
type inventory struct {
	Clock   int64  // ms; the latest moment read
	Epoch   uint64 // the latest read
	Version uint64 // the latest of a container

	Tail replica.Tail // in a cluster's log; zero: none

	records map[uint32]record.Container
	owned   map[uint32]bool // the logs that a container says are its own; nil: not known yet
}

// Read applies a record of the catalogue, or its removal. It returns the container that the record is of, nil
// if it is of none. A removed container has only its number.
func (v *inventory) Read(key, rec string, removed bool) (*record.Container, error) {
	if ok, err := v.Tail.Read(key, rec, removed); ok {
		return nil, err
	}
	var it record.Item
	if !removed {
		var err error
		if it, _, err = record.Decode(key, rec); err != nil {
			return nil, err
		}
		v.Clock = max(v.Clock, it.TS)
	}
	if key == record.ClockKey {
		v.Epoch = max(v.Epoch, it.Version)
		return nil, nil
	}
	if !record.InCatalogue(key) { // a store under a wrong name
		return nil, fmt.Errorf("item %q does not belong in the catalogue", key)
	}
	number, err := record.ContainerNumber(key)
	if err != nil {
		return nil, err
	}
	v.owned = nil
	if removed {
		delete(v.records, number)
		return &record.Container{Number: number}, nil
	}
	c, err := record.ReadContainer(key, it)
	if err != nil {
		return nil, err
	}
	if v.records == nil {
		v.records = make(map[uint32]record.Container)
	}
	v.records[number] = c
	v.Clock = max(v.Clock, c.Policy.OwnDeadTo, c.Policy.InheritDeadTo, c.History[len(c.History)-1].At)
	v.Version = max(v.Version, c.Etag)
	if c.Aside != nil {
		v.Version = max(v.Version, c.Aside.Order)
	}
	return &c, nil
}

// Container returns the container of a number. ok is false if there is none.
func (v *inventory) Container(number uint32) (c record.Container, ok bool) {
	c, ok = v.records[number]
	switch {
	case !ok:
		return record.Container{}, false
	case c.Hidden == nil:
		return c, true
	case c.Hidden.IsGroup():
		log := v.records[c.Hidden.GroupOf]
		if log.Hidden == nil || log.Hidden.IsGroup() {
			return c, false
		}
		_, ok = v.Container(log.Number)
		return c, ok
	}
	if v.owned == nil {
		v.owned = make(map[uint32]bool)
		for _, owner := range v.records {
			if owner.Log != nil {
				v.owned[owner.Log.Number] = true
			}
		}
	}
	return c, v.owned[number]
}

// Listed returns the containers that have a name which no other has: no log, no group, and nothing set aside.
// Those of list come in the order in which they have got their numbers for SELECT. Those of rest have none,
// or one that is taken, as a repair may leave them: they wait for a free one. Those whose name is a number
// come first: theirs cannot change.
func (v *inventory) Listed() (list, rest []record.Container) {
	var all []record.Container
	rank := make(map[uint32]int)
	for number, c := range v.records {
		if c.Hidden != nil || c.Aside != nil {
			continue
		}
		own, isNumber := numberOfName(c.Name)
		switch {
		case isNumber:
			c.DB, rank[number] = own, -1
		case c.DB == 0:
			rank[number] = 1
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b record.Container) int {
		return cmp.Or(rank[a.Number]-rank[b.Number], cmp.Compare(a.Number, b.Number))
	})
	taken := make(map[uint32]bool)
	for _, c := range all {
		if rank[c.Number] >= 0 && c.DB < Databases || c.DB > MaxDB || taken[c.DB] {
			rest = append(rest, c)
			continue
		}
		taken[c.DB] = true
		list = append(list, c)
	}
	return list, rest
}
