package record

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestHistoryRoundTrip writes and reads a record with every field of a history, from cached texts and
// without.
func TestHistoryRoundTrip(t *testing.T) {
	t.Parallel()
	h := &History{}
	for _, e := range []expiry.HistoryEntry{
		{At: 1, What: expiry.Created, Policy: expiry.Policy{Default: 60}, Etag: 1, Kills: -1},
		{At: 2, What: expiry.Set, Policy: expiry.Policy{Default: expiry.Forever, Mode: expiry.Lenient, InheritDeadTo: 7, Deadline: "é\n"}, Etag: 1 << 63, By: `127.0.0.1:5001 ("ops"\)`, Kills: 0, Undo: 9, Undone: true},
		{At: 3, What: expiry.Held, Policy: expiry.Policy{OwnDeadTo: 8, Hold: "case 4711"}, Etag: 3, Kills: 5, Reason: "case 4711"},
	} {
		h = h.With(e)
	}
	c := Container{Number: 12, Name: "orders", Created: 1, Policy: h.Entries[2].Policy}.WithHistory(h)
	rec := string(c.Append([]byte("before")))[len("before"):]
	plain := c
	plain.text = ""
	if text := string(plain.Append(nil)); text != rec {
		t.Errorf("without texts the record is\n%s, not\n%s", text, rec)
	}
	it, _, err := Decode(ContainerKey(12), rec)
	drill.Check(t, err)
	read, err := ReadContainer(ContainerKey(12), it)
	if err != nil || read.Etag != 3 || !reflect.DeepEqual(read.History, h.Entries) || read.Policy != c.Policy {
		t.Errorf("%v: %+v, not %+v", err, read, c)
	}
	for _, wrong := range []string{`"etag":"x"`, `"etag":1`, `"ttl":"soon"`, `"dead_to":7`} {
		it.Body = `{"name":"c","ttl":"60","history":[{"ttl":"60","etag":"1"},{"ttl":"60","etag":"1",` + wrong + `}]}`
		if _, err := ReadContainer(ContainerKey(12), it); err == nil || !strings.Contains(err.Error(), "container/12") {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

// TestFullHistory: the oldest entry goes, unless it has set what still rules.
func TestFullHistory(t *testing.T) {
	t.Parallel()
	h := &History{}
	for at := range int64(expiry.MostHistory + 8) {
		h = h.With(expiry.HistoryEntry{At: at, What: expiry.Set, Etag: uint64(at), By: "ops"})
	}
	before := *h
	if len(h.Entries) != expiry.MostHistory || h.Entries[0].At != 8 || h.Etag != uint64(expiry.MostHistory+7) {
		t.Errorf("the history is %+v", h)
	}
	for at := range int64(expiry.MostHistory + 8) {
		h = h.With(expiry.HistoryEntry{At: 100 + at, What: expiry.Flushed, Etag: before.Etag})
	}
	if len(h.Entries) != expiry.MostHistory || h.Entries[0].At != int64(expiry.MostHistory+7) || h.Entries[1].What != expiry.Flushed {
		t.Errorf("the history is %+v", h)
	}
	if before.Entries[0].At != 8 || len(before.Entries) != expiry.MostHistory {
		t.Error("a former history has changed")
	}
	if set := expiry.SetBy(h.Entries); set.By != "ops" || set.What != expiry.Set {
		t.Errorf("the settings are of %+v", set)
	}
}

// TestHistoriesShareMemory extends histories at random, also former ones: those that a rollback has restored.
// Each keeps its entries, and its record is that of a history which shares nothing.
func TestHistoriesShareMemory(t *testing.T) {
	t.Parallel()
	type kept struct {
		h       *History
		entries []expiry.HistoryEntry
	}
	rng := rand.New(rand.NewPCG(13, 1))
	list := []kept{{h: NewHistory(7, nil)}}
	for at := range drill.Pick[int64](800, 800, 3000) {
		from := list[max(0, len(list)-1-rng.IntN(2)*rng.IntN(8))]
		e := expiry.HistoryEntry{At: at, What: expiry.Set, Etag: uint64(at), Kills: rng.Int64N(3) - 1, By: strings.Repeat("b", rng.IntN(9))}
		want := slices.Clone(from.entries)
		switch full := len(want) == expiry.MostHistory; {
		case full && rng.IntN(4) == 0:
			e.What, e.Etag = expiry.Flushed, want[0].Etag
			want = slices.Delete(want, 1, 2)
		case full:
			want = want[1:]
		case rng.IntN(40) == 0: // a window was closed: a history that shares nothing
			from.h = NewHistory(from.h.Etag, slices.Clone(from.h.Entries))
		}
		list = append(list, kept{from.h.With(e), append(slices.Clip(want), e)})
		if len(list) > 40 {
			list = list[1:]
		}
		for _, k := range list {
			if len(k.entries) == 0 {
				continue
			}
			shared := string(Container{Name: "c"}.WithHistory(k.h).Append(nil))
			alone := string(Container{Name: "c"}.WithHistory(NewHistory(k.h.Etag, k.entries)).Append(nil))
			if !slices.Equal(k.h.Entries, k.entries) || shared != alone {
				t.Fatalf("step %d: the history is\n%s, not\n%s", at, shared, alone)
			}
		}
	}
}

// TestFullHistoryIsCheap: a changed rule encodes and copies its own entry, not the 31 before it.
func TestFullHistoryIsCheap(t *testing.T) {
	h := NewHistory(0, nil)
	c := Container{Number: 12, Name: "orders", Created: 1}
	at, buf := int64(0), make([]byte, 0, 64<<10)
	change := func() {
		at++
		h = h.With(expiry.HistoryEntry{At: at, What: expiry.Set, Etag: uint64(at), By: "127.0.0.1:5001"})
		buf = c.WithHistory(h).Append(buf[:0])
	}
	for range expiry.MostHistory {
		change()
	}
	if n := testing.AllocsPerRun(100*mostSpare, change); n > 3 {
		t.Errorf("a change allocates %v times", n)
	}
}
