package tables

import (
	"fmt"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/index"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// container has tables in two partitions.
type container struct {
	policy   expiry.Policy
	away     bool
	punctual bool
	keeps    bool
	tables   List[*container]
}

func (c *container) Policy() *expiry.Policy { return &c.policy }

// host is a [Host] that counts.
type host struct{ left, sampled int }

func (*host) Tables(c *container) List[*container]           { return c.tables }
func (*host) Number(*container) uint32                       { return 7 }
func (*host) Entries(*container) (*atomic.Int64, bool)       { return nil, false }
func (*host) Indexes(*container) *index.Set                  { return nil }
func (*host) Retention(*container) (r expiry.Retention)      { return r }
func (*host) Away(c *container) bool                         { return c.away }
func (*host) Punctual(c *container) bool                     { return c.punctual }
func (*host) Keeps(c *container, _ int64) bool               { return c.keeps }
func (h *host) Sample(*Table[*container], int) expiry.Sample { h.sampled++; return expiry.Sample{} }
func (h *host) Left()                                        { h.left++ }

// TestPlaces: a table is listed while it is attached and shown, and has a timer then if its container asks
// for one.
func TestPlaces(t *testing.T) {
	t.Parallel()
	var s Set[*container]
	h := new(host)
	s.Init(h, expiry.NewPurge(1, clock.NewManual(1000), func(int, int) []expiry.Pool { return nil }), 2)
	p := NewPartition[*container](1)
	c := &container{policy: expiry.Policy{Default: 5}, punctual: true, tables: make(List[*container], 2)}
	table := s.Open(c, p)
	is := func(what string, listed, there, timed, gone bool) {
		t.Helper()
		if got := s.Len() == 1; got != listed || (c.tables[1] == table) != there || (table.Timer() != nil) != timed || table.Gone() != gone {
			t.Errorf("%s: listed %v, its container has it %v, a timer %v, gone %v", what, got, c.tables[1] == table, table.Timer() != nil, table.Gone())
		}
	}
	is("opened", true, true, true, false)
	c.away = true
	c.tables.Hide()
	is("hidden", false, true, false, true)
	c.away = false
	c.tables.Show()
	is("shown", true, true, true, false)
	table.Leave()
	is("detached", false, false, false, true)
	table.Return()
	is("attached again", true, true, true, false)
	c.punctual = false
	table.SetTimer(1000)
	is("not punctual", true, true, false, false)
	table.NoteDue(1, expiry.Inherit) // without a timer
	if table.Sample(1); h.left != 2 || h.sampled != 1 {
		t.Errorf("%+v", h)
	}
}

// TestKeptStats: figures of the dead that stay are exact on demand, and for another policy; else they may be
// old.
func TestKeptStats(t *testing.T) {
	t.Parallel()
	var s Set[*container]
	s.Init(new(host), expiry.NewPurge(1, clock.NewManual(1000), func(int, int) []expiry.Pool { return nil }), 1)
	p := NewPartition[*container](0)
	c := &container{policy: expiry.Policy{Default: 5}, keeps: true, tables: make(List[*container], 1)}
	table := s.Open(c, p)
	for i := range 10 {
		table.Insert(fmt.Sprint(i), record.Item{Kind: record.Plain, Body: "x", TS: int64(1000 * i), Version: p.NextVersion()}, nil)
	}
	for _, tt := range []struct {
		now, old int64
		want     int
	}{{5000, 0, 1}, {7000, 0, 3}, {7500, 1000, 3}, {8600, 1000, 4}, {8900, 1000, 4}, {9000, 0, 5}} {
		if got := table.KeptStats(tt.now, tt.old).Items; got != tt.want {
			t.Errorf("at %d, %d old: %d, want %d", tt.now, tt.old, got, tt.want)
		}
	}
	if n := table.Living(9000); n != 5 {
		t.Errorf("%d live", n)
	}
	c.keeps = false
	if n := table.Living(9000); n != 10 {
		t.Errorf("%d live of those that do not stay", n)
	}
	before := p.Version
	if after := p.NextVersion(); after <= before {
		t.Error(before, after)
	}
	if p.Begin(3); p.NextVersion() <= 3*VersionLeap {
		t.Error(p.Version)
	}
}
