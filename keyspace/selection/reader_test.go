package selection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// fakeSource is a container of two partitions, which notes what is locked. Ids of the first begin with "a".
type fakeSource struct {
	t      *testing.T
	policy expiry.Policy
	shards [2]memtable.Shard
	tables [2]memtable.Table
	trees  [2]*index.Table
	index  *index.Index
	locked [2]bool
}

// newSource returns a source at the moment 10,000 with living and dead items in both partitions: each is
// named after its partition, its end in s, and whether it is a document.
func newSource(t *testing.T) *fakeSource {
	s := &fakeSource{t: t, policy: expiry.Policy{Default: expiry.Forever}}
	set := index.FromRecord([][]string{{"/n"}})
	s.index = set.List()[0]
	s.index.MarkReady()
	for p, name := range []string{"a", "b"} {
		s.shards[p].SetSize = func(key, rec int) int64 { return int64(key + rec) }
		s.tables[p].Init(&s.shards[p], 16)
		s.trees[p] = index.Observe(&s.tables[p], nil, set)
		s.trees[p].BuildAll()
		for end := int64(5); end < 20; end += 5 {
			s.tables[p].Insert(fmt.Sprint(name, end), record.Item{Kind: record.Document, Body: fmt.Sprintf(`{"n":%d}`, end), TS: 1, ExpireAt: 1000 * end}, nil)
		}
		s.tables[p].Insert(name+"-key", record.Item{Kind: record.Plain, Body: "x", TS: 1, ExpireAt: 12_000}, nil)
	}
	return s
}

func (s *fakeSource) Partitions() int { return 2 }
func (s *fakeSource) Now() int64      { return 10_000 }

func (s *fakeSource) PartitionOf(id string) int {
	if id[0] == 'a' {
		return 0
	}
	return 1
}

func (s *fakeSource) lock(f func(), partitions ...int) {
	s.t.Helper()
	if s.locked != [2]bool{} {
		s.t.Error("a lock is waited for while another is held")
	}
	for _, p := range partitions {
		s.locked[p] = true
	}
	f()
	s.locked = [2]bool{}
}

func (s *fakeSource) One(partition int, f func()) { s.lock(f, partition) }
func (s *fakeSource) All(f func())                { s.lock(f, 0, 1) }

func (s *fakeSource) Policy() *expiry.Policy { return &s.policy }

func (s *fakeSource) Part(partition int) (*memtable.Table, *index.Table) {
	if !s.locked[partition] {
		s.t.Errorf("partition %d is read without its lock", partition)
	}
	return &s.tables[partition], s.trees[partition]
}

func (s *fakeSource) Find(id string) (it Item, ok bool, removed int) {
	t, _ := s.Part(s.PartitionOf(id))
	e := t.Find(id)
	switch {
	case e == nil:
		return it, false, 0
	case e.Dead(&s.policy, s.Now()):
		s.Remove(s.PartitionOf(id), []*memtable.Entry{e})
		return it, false, 1
	}
	return Item{ID: id, Item: t.Item(e)}, true, 0
}

func (s *fakeSource) Remove(partition int, dead []*memtable.Entry) {
	t, _ := s.Part(partition)
	for _, e := range dead {
		t.Remove(e)
		t.Release(e)
	}
}

func (s *fakeSource) RemoveSome(partition, most int) (removed int, more bool) {
	t, _ := s.Part(partition)
	more = t.RemoveDead(s.policy.DeadLimits(s.Now()), most, func(e *memtable.Entry) {
		s.Remove(partition, []*memtable.Entry{e})
		removed++
	})
	return removed, more
}

// TestReader: each way of reading returns the living items in its order, once, and removes the dead that it
// meets. Nothing is locked while visit runs.
func TestReader(t *testing.T) {
	t.Parallel()
	keys := []string{"a-key", "b-key"}
	documents := []string{"a15", "b15"}
	all := append(slices.Clone(keys), documents...)
	for _, tt := range []struct {
		name    string
		read    func(r Reader, visit func(s Slice) bool) error
		want    []string
		ordered bool
		counted int
		dead    int
	}{
		{"Scan", func(r Reader, visit func(Slice) bool) error { r.Scan(visit); return nil }, all, false, 0, 4},
		{"ScanCount", func(r Reader, visit func(Slice) bool) error { r.ScanCount(visit); return nil }, nil, false, 2, 4},
		{"HashOrder", func(r Reader, visit func(Slice) bool) error { r.HashOrder("", false, visit); return nil }, all, false, 0, 4},
		{"Index", func(r Reader, visit func(Slice) bool) error {
			p := Plan{Index: r.source.(*fakeSource).index}
			p.Spans = []index.Span{everything(t)}
			return r.Index(&p, Place{}, func(s Slice, _ func(int) Place) bool { return visit(s) })
		}, documents, false, 0, 4},
		{"Ends", func(r Reader, visit func(Slice) bool) error {
			r.Ends(EndsRange{High: 1 << 60, Plain: true}, EndPlace{}, func(s Slice, _ func(int) EndPlace) bool { return visit(s) })
			return nil
		}, append(slices.Clone(keys), documents...), true, 0, 4},
		{"Ends of a count", func(r Reader, visit func(Slice) bool) error {
			r.Ends(EndsRange{High: 1 << 60, Count: true}, EndPlace{}, func(s Slice, _ func(int) EndPlace) bool { return visit(s) })
			return nil
		}, nil, false, 2, 4},
		{"IDs", func(r Reader, visit func(Slice) bool) error {
			r.IDs([]string{"b15", "a5", "none", "b-key", "a15"}, visit)
			return nil
		}, []string{"b15", "b-key", "a15"}, true, 0, 1},
		{"IDs of one", func(r Reader, visit func(Slice) bool) error { r.IDs([]string{"b5"}, visit); return nil }, nil, true, 0, 1},
	} {
		s := newSource(t)
		var got []string
		counted, dead, last := 0, 0, false
		if err := tt.read(NewReader(s), func(slice Slice) bool {
			if s.locked != [2]bool{} {
				t.Errorf("%s: visit runs under a lock", tt.name)
			}
			for _, it := range slice.Items {
				got = append(got, it.ID)
			}
			counted, dead, last = counted+slice.Counted, dead+slice.Dead, slice.Last
			return true
		}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !tt.ordered {
			slices.Sort(got)
			slices.Sort(tt.want)
		}
		if !slices.Equal(got, tt.want) || counted != tt.counted || dead != tt.dead || !last {
			t.Errorf("%s: items %q, %d counted, %d dead, the last %v; want %q, %d, %d", tt.name, got, counted, dead, last, tt.want, tt.counted, tt.dead)
		}
		if left := s.tables[0].Len() + s.tables[1].Len(); left != 8-tt.dead {
			t.Errorf("%s: %d items are left in memory", tt.name, left)
		}
		visits := 0
		if err := tt.read(NewReader(s), func(Slice) bool { visits++; return false }); err != nil || visits > 1 {
			t.Errorf("%s: %d visits after the first has ended it, %v", tt.name, visits, err)
		}
		s = newSource(t)
		_ = tt.read(NewReader(s), func(Slice) bool { return false })
		if left := s.tables[1].Len(); strings.HasPrefix(tt.name, "Ends") && left != 4 {
			t.Errorf("%s: %d items are left in the second partition when the first visit has ended it", tt.name, left)
		}
	}
}

// everything returns the range of all numbers in the index.
func everything(t *testing.T) index.Span {
	t.Helper()
	return between(t, "-1e300", "1e300")
}

// between returns the range of the index between two values in JSON.
func between(t *testing.T, from, to string) (s index.Span) {
	low, high := index.NewReader([]index.Definition{define(t)}), index.NewReader([]index.Definition{define(t)})
	s.Low.Key = low.Load(`{"n":`+from+`}`, 0).Keys(0, nil)[0]
	s.High.Key = high.Load(`{"n":`+to+`}`, 0).Keys(0, nil)[0]
	return s
}

func define(t *testing.T) index.Definition {
	d, err := index.Define([]string{"/n"}, false)
	drill.Check(t, err)
	return d
}

// TestPage: pages of every size visit each living item once, and leave the dead.
func TestPage(t *testing.T) {
	t.Parallel()
	for count := 1; count < 10; count++ {
		s := newSource(t)
		var got []string
		for cursor := uint64(0); ; {
			cursor = NewReader(s).Page(cursor, count, func(id string, _ record.Item) { got = append(got, id) })
			if cursor == 0 {
				break
			}
		}
		if want := []string{"a-key", "a15", "b-key", "b15"}; !slices.Equal(got, want) || s.tables[0].Len() != 4 {
			t.Errorf("pages of %d: %q, want %q; %d items in memory", count, got, want, s.tables[0].Len())
		}
	}
}

// TestRunsAreSortedWithoutLocks: the documents that tell the order of strings that are cut are read when
// nothing is locked. What is read of them is told, and how many are of the page before.
func TestRunsAreSortedWithoutLocks(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	size := 0
	for i, id := range []string{"a-3", "b-1", "a-2", "b-4"} {
		body := fmt.Sprintf(`{"n":"%s%d"}`, strings.Repeat("z", 300), []int{3, 1, 2, 4}[i])
		size += len(body)
		s.tables[s.PartitionOf(id)].Insert(id, record.Item{Kind: record.Document, Body: body, TS: 1}, nil)
	}
	for _, desc := range []bool{false, true} {
		p := Plan{Index: s.index}
		p.Spans, p.Ordered, p.Ties, p.Desc = []index.Span{between(t, `"a"`, `"~"`)}, true, true, desc
		want := []string{"b-1", "a-2", "a-3", "b-4"}
		if desc {
			slices.Reverse(want)
		}
		places := []Place{{}}
		for from := range len(want) + 1 {
			x := newIndexReader(s, &p, places[from])
			s.All(func() { drill.Check(t, x.Read()) })
			if x.values != nil {
				t.Fatal("documents are read while partitions are locked")
			}
			slice := x.Slice()
			var got []string
			for i, it := range slice.Items {
				if got = append(got, it.ID); from == 0 {
					places = append(places, x.Place(i))
				}
			}
			if !slices.Equal(got, want[from:]) || slice.Walked != size || slice.Ordered != from {
				t.Errorf("behind row %d: %q, %d bytes read, %d passed over; want %q, %d", from, got, slice.Walked, slice.Ordered, want[from:], size)
			}
		}
	}
}

// TestLookUpsInVain: look-ups that find nothing end slices, too, and are told. What they find among others
// comes once, in its order, by each kind of plan.
func TestLookUpsInVain(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	var p Plan
	for n := range 2000 {
		id := fmt.Sprintf("%s-%04d", []string{"a", "b"}[n%2], n)
		if n%2 == 1 && n < 1500 { // from there on nothing is found
			continue
		}
		if n%10 == 0 && n < 1500 {
			s.tables[s.PartitionOf(id)].Insert(id, record.Item{Kind: record.Document, Body: fmt.Sprintf(`{"n":%d}`, 1000+n), TS: 1}, nil)
		}
		one := between(t, fmt.Sprint(1000+n), fmt.Sprint(1000+n))
		one.High.After = true
		p.Spans = append(p.Spans, one)
	}
	for _, ordered := range []bool{false, true} {
		for _, desc := range []bool{false, ordered} {
			p.Index, p.Ordered, p.Desc = s.index, ordered, desc
			var want, got []string
			for n := 0; n < 1500; n += 10 {
				want = append(want, fmt.Sprintf("a-%04d", n))
			}
			if desc {
				slices.Reverse(want)
			}
			missed, most := 0, 0
			drill.Check(t, NewReader(s).Index(&p, Place{}, func(s Slice, _ func(int) Place) bool {
				for _, it := range s.Items {
					got = append(got, it.ID)
				}
				missed, most = missed+s.Missed, max(most, s.Missed)
				return true
			}))
			if !slices.Equal(got, want) {
				t.Errorf("ordered %t, desc %t: %d items %q", ordered, desc, len(got), got)
			}
			if want := 2*len(p.Spans) - len(want); missed != want || most > Entries+1 {
				t.Errorf("ordered %t, desc %t: %d look-ups in vain, %d in a slice; want %d", ordered, desc, missed, most, want)
			}
		}
	}
}
