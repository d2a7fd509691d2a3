package deathlog

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

const newYear = 1_767_225_600_000 // ms

// someEntries are entries at the edges of what a record holds.
var someEntries = []Entry{
	{ID: streamid.ID{Ms: newYear + 10_001, Seq: 3}, Item: "order-1", Cause: expiry.ByContainer, At: newYear + 10_000, TS: newYear, Etag: 42, Policy: 31, Kind: record.Document, Body: `{"sku":"A-1"}`, HasBody: true},
	{ID: streamid.ID{Ms: math.MaxUint64, Seq: MaxSeq}, Item: "", Cause: expiry.ByDocument, At: math.MinInt64, TS: math.MinInt64, Etag: math.MaxUint64, Own: math.MinInt64, Policy: math.MaxUint64, Kind: record.Plain, HasBody: false},
	{ID: streamid.ID{Seq: 1}, Item: "a:b\r\n\xff", Cause: expiry.ByChange, Own: expiry.Never, Kind: record.Plain, Body: " \x00 1 \xff", HasBody: true},
	{ID: streamid.ID{Ms: 9}, Item: "a", Cause: Deleted, At: 9, TS: 4, Etag: 2, Own: 20, Policy: 1, Kind: record.Plain},
	{ID: streamid.ID{Ms: 1}, Item: "a", Cause: expiry.ByChange, Kind: record.Plain, Body: "", HasBody: true},
}

// item returns the id and the item of an entry in its log.
func (e *Entry) item() (string, record.Item) {
	return string(AppendID(nil, e.ID, e.Item)), record.Item{Kind: record.Entry, Body: string(e.AppendBody(nil)), TS: newYear, Version: e.Etag}
}

func TestEntriesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, e := range someEntries {
		id, it := e.item()
		if back, err := ReadEntry(id, it); err != nil || back != e {
			t.Errorf("%+v comes back from %q as %+v, %v", e, it.Body, back, err)
		}
		if header := len(it.Body) - len(e.Body); header > MaxHeader {
			t.Errorf("the header of %q has %d bytes; the longest should have %d", it.Body, header, MaxHeader)
		}
	}
}

// TestEntryInTheDocument: the example in doc.go is a real key and, but for its checksum, a real record.
func TestEntryInTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	drill.Check(t, err)
	id, it := someEntries[0].item()
	it.TS = newYear + 10_001
	key := string(record.AppendLogKey(nil, 41, id))
	rec := string(record.Append(nil, key, it))
	for _, line := range []string{key + "    the key", "//	" + rec + "\n"} {
		if !strings.Contains(string(doc), line) {
			t.Errorf("doc.go lacks %q", line)
		}
	}
}

// TestOrderOfIDs: the texts of ids order as the ids do.
func TestOrderOfIDs(t *testing.T) {
	t.Parallel()
	ids := []streamid.ID{{}, {Seq: 1}, {Seq: MaxSeq}, {Ms: 1}, {Ms: 255, Seq: 256}, {Ms: 256, Seq: 255}, {Ms: 1 << 32}, {Ms: newYear}, {Ms: newYear, Seq: 10}, {Ms: math.MaxUint64, Seq: MaxSeq}}
	var texts []string
	for _, id := range ids {
		text := string(AppendID(nil, id, "z"))
		if back, item, err := SplitID(text); back != id || item != "z" || err != nil {
			t.Errorf("%v comes back from %q as %v, %q, %v", id, text, back, item, err)
		}
		if k, err := record.SplitKey("41~" + text); err != nil || k.ID != text {
			t.Errorf("the key of %q is split into %+v, %v", text, k, err)
		}
		texts = append(texts, text)
	}
	if !slices.IsSorted(texts) {
		t.Errorf("%q", texts)
	}
}

func TestWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	id, it := someEntries[0].item()
	for _, bad := range []string{
		"", "1 cd 1 0", "1 cd 1 0 1f", "1 ad 1 0 1f {}", "1  1 0 1f {}", "1 ce 1 0 1f {}", "1 cd- 1 0 1f {}", "1 c 1 0 1f {}", "1 d 1 0 1f {}",
		"1 cd+ 1 0 1f {}", "1 cdp 1 0 1f {}", "01 cd 1 0 1f {}", "+1 cd 1 0 1f {}", "1 cd 1 -0 1f {}", "1 cd 1 0 1F {}", "1 cd 1 1 1f {}", "1 cd 1 -2 1f {}",
		"1 cd 1 ++1 1f {}", "1 cd 1 + 1f {}", "1 cd 1 0 g {}", "9223372036854775808 cd 1 0 1f {}", "1 cd 1 0 10000000000000000 {}",
	} {
		if e, err := ReadEntry(id, record.Item{Kind: record.Entry, Body: bad}); err == nil {
			t.Errorf("%q is read as %+v", bad, e)
		}
	}
	for _, bad := range []string{"", "order-1", id[1:], "x" + id[1:], strings.Replace(id, ":", "-", 1), StateID(0, 1)} {
		if e, err := ReadEntry(bad, it); err == nil {
			t.Errorf("under %q: %+v", bad, e)
		}
	}
	drill.Report(t, CheckEntry(id, it))
	if err := CheckEntry(StateID(0, 1), it); err == nil {
		t.Error("an entry passes for a state")
	}
	it.Kind = record.Document
	if e, err := ReadEntry(id, it); err == nil || CheckEntry(id, it) == nil {
		t.Errorf("a document is read as %+v", e)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	id, it := someEntries[0].item()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ReadEntry(id, it); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRead(f *testing.F) {
	for _, e := range someEntries {
		id, it := e.item()
		f.Add(id, it.Body, it.Version)
	}
	f.Add("000000000000000000000001:a", "1 xp- 1 -1 0 ", uint64(1))
	f.Fuzz(func(t *testing.T, id, body string, version uint64) {
		it := record.Item{Kind: record.Entry, Body: body, TS: newYear, Version: version}
		e, err := ReadEntry(id, it)
		if err != nil {
			return
		}
		if again, is := e.item(); again != id || is != it {
			t.Fatalf("%q, %+v is read as %+v, which is %q, %+v", id, it, e, again, is)
		}
	})
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, s := range []State{
		{},
		{Added: 1, Last: streamid.ID{Ms: 5, Seq: 1}},
		{Added: math.MaxInt64, Last: streamid.Max, MaxDeleted: streamid.Max},
	} {
		it := s.Item(7, 9)
		back, err := ReadState(StateID(2, 3), it)
		if err != nil || back != s || it.TS != 7 || it.Version != 9 || it.ExpireAt != expiry.Never {
			t.Errorf("%+v comes back from %+v as %+v, %v", s, it, back, err)
		}
	}
	entry, _ := someEntries[0].item()
	it := (&State{}).Item(1, 1)
	if s, err := ReadState(entry, it); err == nil {
		t.Errorf("an entry is read as %+v", s)
	}
	for _, bad := range []string{"", "1", "1 1-1", "-1 0-0 0-0", "+1 0-0 0-0", "1 0 0-0", "1 0-0 0-00", "1 0-0 0-0 ", "x 0-0 0-0"} {
		it.Body = bad
		if s, err := ReadState(StateID(0, 1), it); err == nil {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}

func FuzzReadState(f *testing.F) {
	f.Add("0 0-0 0-0")
	f.Add("12 1767225610001-3 18446744073709551615-18446744073709551615")
	f.Fuzz(func(t *testing.T, body string) {
		it := record.Item{Kind: record.Entry, Body: body, ExpireAt: expiry.Never}
		if s, err := ReadState(StateID(0, 1), it); err == nil && s.Item(0, 0) != it {
			t.Fatalf("%q is read as %+v", body, s)
		}
	})
}

// TestStateIDs: the item of the state belongs to its partition, and is no entry.
func TestStateIDs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 16, record.MaxPartitions} {
		for p := range n {
			id := StateID(p, n)
			k, err := record.SplitKey("41~" + id)
			if err != nil || k.Partition(n) != p || !IsStateID(id) {
				t.Errorf("partition %d of %d: %q, %+v, %v", p, n, id, k, err)
			}
		}
	}
	if id, _ := someEntries[0].item(); IsStateID(id) {
		t.Errorf("%q is taken for the state", id)
	}
}

// TestLoadedState: entries beyond the stored state count as added since, in any order, and partitions add up.
func TestLoadedState(t *testing.T) {
	t.Parallel()
	stored := State{Added: 10, Last: streamid.ID{Ms: 5}, MaxDeleted: streamid.ID{Ms: 3}}
	entries := []uint64{4, 9, 5, 7}
	want := State{Length: 4, Added: 12, First: streamid.ID{Ms: 4}, Last: streamid.ID{Ms: 9}, MaxDeleted: streamid.ID{Ms: 3}, Oldest: 104}
	for range entries {
		entries = append(entries[1:], entries[0])
		s := stored
		for _, ms := range entries {
			s.Load(stored, streamid.ID{Ms: ms}, int64(100+ms))
		}
		if s != want {
			t.Errorf("%v: %+v, want %+v", entries, s, want)
		}
	}
	for _, tt := range []struct{ a, b, want State }{
		{State{}, want, want},
		{want, State{}, want},
		{want, State{Length: 1, Bytes: 9, Added: 1, First: streamid.ID{Ms: 2}, Last: streamid.ID{Ms: 2}, MaxDeleted: streamid.ID{Ms: 8}, Oldest: 102},
			State{Length: 5, Bytes: 9, Added: 13, First: streamid.ID{Ms: 2}, Last: streamid.ID{Ms: 9}, MaxDeleted: streamid.ID{Ms: 8}, Oldest: 102}},
	} {
		s := tt.a
		if s.Merge(tt.b); s != tt.want {
			t.Errorf("%+v and %+v: %+v, want %+v", tt.a, tt.b, s, tt.want)
		}
		s = tt.b
		if s.Merge(tt.a); s != tt.want {
			t.Errorf("%+v and %+v: %+v, want %+v", tt.b, tt.a, s, tt.want)
		}
	}
}
