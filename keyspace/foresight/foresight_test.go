package foresight

import (
	"fmt"
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// filled returns a table of documents by id.
func filled(items map[string]record.Item) *memtable.Table {
	s, t := &memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}, &memtable.Table{}
	t.Init(s, 1)
	for id, it := range items {
		it.Body, it.Kind = "{}", record.Document
		t.Insert(id, it, nil)
	}
	return t
}

func run(tally Tally, tables ...*memtable.Table) {
	var w Walks
	for i, t := range tables {
		w.Add(i%2, t)
	}
	w.Run(tally, func(_ int, piece func()) { piece() }, func(int) bool { return true })
}

// TestHeldCountsAsReleased: of a container on hold a plan and a forecast tell what happens when the hold
// ends.
func TestHeldCountsAsReleased(t *testing.T) {
	t.Parallel()
	const now = 100_000
	table := filled(map[string]record.Item{
		"dead before":  {TS: 1000},                     // by a mark
		"overdue":      {TS: 50_000},                   // the default of 20 s has passed while it was held
		"overdue own":  {TS: 50_000, ExpireAt: 99_000}, // likewise
		"fresh":        {TS: 90_000},
		"never":        {TS: 50_000, ExpireAt: expiry.Never},
		"overdue also": {TS: 40_000},
	})
	held := expiry.Policy{Default: 20, InheritDeadTo: 2000}.WithHold("case 4711", 55_000)

	e := NewEffect(20, now, 10)
	e.Under(&held)
	run(e, table)
	if e.Kills() != 3 || e.Same != 2 || e.Never != 1 || e.Sooner+e.Later != 0 || e.Oldest != 40_000 || e.Newest != 50_000 {
		t.Errorf("the effect is %+v", e)
	}
	if got := e.Sample(); !slices.Equal(got, []string{"overdue also", "overdue", "overdue own"}) {
		t.Errorf("the sample is %q", got)
	}
	longer := NewEffect(1000, now, 10) // it rules at the moment of the release: the former default kills no more
	longer.Under(&held)
	if run(longer, table); longer.Kills() != 1 || longer.Later != 3 || longer.Same != 1 {
		t.Errorf("the effect of a longer default is %+v", longer)
	}

	f := NewForecast(now, 10_000, 2)
	f.Under(&held)
	run(f, table)
	if f.Killed.Items != 3 || f.Buckets[1].Items != 1 || f.Never.Items != 1 || f.Buckets[0].Items+f.Later.Items != 0 {
		t.Errorf("the forecast is %+v", f)
	}
}

// TestSample compares samples with all killed items in order.
func TestSample(t *testing.T) {
	t.Parallel()
	items := map[string]record.Item{}
	var ids []string
	for i := range 1000 {
		id := fmt.Sprintf("i%03d", i)
		items[id] = record.Item{TS: int64(1000 + i/3*10)} // three of one end
		ids = append(ids, id)
	}
	for most := range 101 {
		e := NewEffect(1, 1_000_000, most)
		e.Under(&expiry.Policy{Default: expiry.Forever})
		run(e, filled(items))
		if got := e.Sample(); e.Kills() != 1000 || !slices.Equal(got, ids[:most]) {
			t.Fatalf("of %d the sample of %d is %q", e.Kills(), most, got)
		}
	}
}

// TestWalks passes many tables, in pieces that end where they are told to.
func TestWalks(t *testing.T) {
	t.Parallel()
	items := map[string]record.Item{}
	for i := range 10_000 {
		items[fmt.Sprint("i", i)] = record.Item{TS: 1}
	}
	large, small := filled(items), filled(map[string]record.Item{"a": {TS: 1}})
	detached := filled(items)
	detached.Detach()
	f := NewForecast(5000, 1000, 1)
	f.Under(&expiry.Policy{})
	if run(f, large, small, detached, small, large); f.Never.Items != 20_002 {
		t.Errorf("%d items were counted", f.Never.Items)
	}

	var w Walks
	w.Add(0, large)
	f, pieces := NewForecast(5000, 1000, 1), 0
	f.Under(&expiry.Policy{})
	w.Run(f, func(_ int, piece func()) { piece() }, func(entries int) bool {
		if pieces++; entries > Piece+100 {
			t.Errorf("a piece has %d entries", entries)
		}
		return pieces < 2
	})
	if f.Never.Items < 7000 || f.Never.Items > 2*Piece+200 {
		t.Errorf("two pieces have %d entries", f.Never.Items)
	}
}
