package deathlog

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
	_ "mayfly/test/drill" // its flags
)

const epoch = 1_700_000_000_000 // ms

func TestGenerator(t *testing.T) {
	t.Parallel()
	var g Generator
	next := func(now int64, want streamid.ID) {
		t.Helper()
		if got := g.Next(now); got != want || g.Last() != want {
			t.Errorf("at %d: %v, the last is %v, want %v", now, got, g.Last(), want)
		}
	}
	next(-1, streamid.ID{Seq: 1}) // 0-0 is no id
	next(epoch, streamid.ID{Ms: epoch})
	next(epoch, streamid.ID{Ms: epoch, Seq: 1})
	next(epoch-5, streamid.ID{Ms: epoch, Seq: 2}) // a transaction that began earlier
	g.Raise(streamid.ID{Ms: epoch + 3, Seq: MaxSeq})
	next(epoch+1, streamid.ID{Ms: epoch + 4}) // no number is left
	g.Raise(streamid.ID{Ms: epoch})
	next(epoch+5, streamid.ID{Ms: epoch + 5})
}

// parts are those of a log for a test.
type parts struct {
	list   []*Part
	shards []memtable.Shard
	length atomic.Int64
}

func newParts(n int) *parts {
	ps := &parts{shards: make([]memtable.Shard, n)}
	for i := range ps.shards {
		ps.shards[i].SetSize = func(key, rec int) int64 { return int64(key + rec) }
		table := new(memtable.Table)
		table.InitLog(&ps.shards[i], 41)
		ps.list = append(ps.list, NewPart(table, i, n, &ps.length))
	}
	return ps
}

func (ps *parts) add(part int, e Entry, ts int64) {
	table := ps.list[part].table
	if table.Len() == 0 {
		table.Insert(ps.list[part].StateID(), new(State).Item(0, 0), nil)
	}
	id := string(AppendID(nil, e.ID, e.Item))
	table.Insert(id, record.Item{Kind: record.Entry, TS: ts, Version: e.Etag, Body: string(e.AppendBody(nil))}, nil)
}

func (ps *parts) read(from, to streamid.ID, expired expiry.Limits, reverse bool, most int) (list []streamid.ID) {
	r := NewReader(len(ps.list), from, to, expired, reverse)
	r.Run(func(n int, take func(*Part)) {
		if n == len(ps.list)-1 {
			take(nil) // the last never had an entry
		} else {
			take(ps.list[n])
		}
	}, func(e Entry) bool {
		list = append(list, e.ID)
		return len(list) < most
	})
	return list
}

// TestReader: what is read between two ids are the entries between them, in order, from all parts.
func TestReader(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		ps := newParts(1 + 1 + r.IntN(8))
		var g Generator
		var all []streamid.ID
		now := int64(epoch)
		for i := range r.IntN(1500) {
			now += r.Int64N(3)
			id := g.Next(now)
			ps.add(r.IntN(len(ps.list)-1), Entry{ID: id, Item: strconv.Itoa(i), Cause: expiry.ByChange, Kind: record.Plain}, now)
			all = append(all, id)
		}
		for range 20 {
			bound := func() streamid.ID {
				return streamid.ID{Ms: uint64(epoch + r.Int64N(now-epoch+3) - 1), Seq: []uint64{0, 1, MaxSeq, math.MaxUint64}[r.IntN(4)]}
			}
			from, to, most, reverse := bound(), bound(), 1+r.IntN(400), r.IntN(2) == 0
			if r.IntN(4) == 0 {
				from, to = streamid.ID{}, streamid.Max
			}
			expired := expiry.NoLimits
			if r.IntN(3) == 0 {
				expired.ByDefault = epoch + r.Int64N(now-epoch+2)
			}
			var want []streamid.ID
			for _, id := range all {
				if !id.Less(from) && !to.Less(id) && int64(id.Ms) > expired.ByDefault {
					want = append(want, id)
				}
			}
			if reverse {
				slices.Reverse(want)
			}
			want = want[:min(most, len(want))]
			if got := ps.read(from, to, expired, reverse, most); !slices.Equal(got, want) {
				t.Fatalf("from %v to %v, reverse %v, at most %d: %d of %d are read", from, to, reverse, most, len(got), len(want))
			}
		}
		s := State{}
		for _, p := range ps.list {
			s.Merge(p.State(expiry.NoLimits))
		}
		if n := int64(len(all)); s.Length != n || s.Added != n || s.Last != g.Last() || ps.length.Load() != n {
			t.Errorf("%+v of %d entries", s, n)
		}
	}
}

// TestExpiredByTimeNotByID: after a clock was corrected, ids may be ahead of the time of their entries.
func TestExpiredByTimeNotByID(t *testing.T) {
	t.Parallel()
	ps := newParts(2)
	for i := range 10 {
		ps.add(0, Entry{ID: streamid.ID{Ms: epoch + 1000, Seq: uint64(i)}, Item: strconv.Itoa(i), Cause: expiry.ByChange, Kind: record.Plain}, epoch+int64(i))
	}
	expired := expiry.Limits{ByDefault: epoch + 3, ByOwnTTL: math.MinInt64}
	if got := ps.read(streamid.ID{}, streamid.Max, expired, false, 100); len(got) != 6 || got[0].Seq != 4 {
		t.Errorf("%v", got)
	}
	if s := ps.list[0].State(expired); s.Length != 6 || s.First.Seq != 4 || s.Oldest != epoch+4 {
		t.Errorf("%+v", s)
	}
}

// TestPartOfAFolder: a part over a table that was loaded in any order, with and without the item of the
// state.
func TestPartOfAFolder(t *testing.T) {
	t.Parallel()
	for _, stored := range []*State{nil, {}, {Added: 7, Last: streamid.ID{Ms: epoch + 49}, MaxDeleted: streamid.ID{Ms: epoch}}} {
		shard := memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
		table := new(memtable.Table)
		table.InitLog(&shard, 41)
		for _, n := range rand.Perm(100) {
			e := Entry{ID: streamid.ID{Ms: uint64(epoch + n)}, Item: strconv.Itoa(n % 3), Cause: expiry.ByChange, Kind: record.Plain}
			table.Insert(string(AppendID(nil, e.ID, e.Item)), record.Item{Kind: record.Entry, TS: epoch + int64(n), Body: string(e.AppendBody(nil))}, nil)
			if n == 50 && stored != nil {
				table.Insert(StateID(1, 4), stored.Item(epoch, 1), nil)
			}
		}
		var length atomic.Int64
		p := NewPart(table, 1, 4, &length)
		want := State{Length: 100, Added: 100, First: streamid.ID{Ms: epoch}, Last: streamid.ID{Ms: epoch + 99}, Oldest: epoch}
		if stored != nil && stored.Added > 0 {
			want.Added, want.MaxDeleted = 7+50, stored.MaxDeleted
		}
		s := p.State(expiry.NoLimits)
		if want.Bytes = s.Bytes; s != want || length.Load() != 100 || p.Last() != want.Last {
			t.Errorf("%+v, want %+v", s, want)
		}
		ids := []streamid.ID{{}, {Ms: epoch + 50}, {Ms: epoch + 50, Seq: MaxSeq + 1}, {Ms: epoch + 99}, streamid.Max}
		if list, greatest := p.Entries(ids, expiry.NoLimits); len(list) != 2 || list[0].TS() != epoch+50 || greatest != ids[3] {
			t.Errorf("entries %v, the greatest is %s", list, greatest)
		}
		if list := p.Upto(streamid.ID{Ms: epoch + 9}); len(list) != 10 {
			t.Errorf("%d entries up to the tenth", len(list))
		}
	}
}

// TestEachOf: who looks for many ids among few searches a few times.
func TestEachOf(t *testing.T) {
	t.Parallel()
	set, searches := []uint64{3, 500, 2000}, 0
	var ids []streamid.ID
	for ms := range uint64(1000) {
		ids = append(ids, streamid.ID{Ms: ms})
	}
	var got []uint64
	eachOf(ids, func(from streamid.ID) (streamid.ID, bool) {
		searches++
		at, _ := slices.BinarySearch(set, from.Ms)
		return streamid.ID{Ms: set[at]}, true
	}, func(id streamid.ID) { got = append(got, id.Ms) })
	if !slices.Equal(got, set[:2]) || searches != 3 {
		t.Errorf("found are %d, after %d searches", got, searches)
	}
}
