package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestNotes compares notes with a list: who has read what, what dies first, and the figures.
func TestNotes(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	type place struct {
		c  int
		id string
	}
	type item struct {
		readers      map[int64]bool // by client: with the container
		ts, expireAt int64
		found        bool
	}
	var counts Counts
	notes, model := Notes[int]{Counts: &counts}, map[place]*item{}
	dead := func(it *item, l expiry.Limits) bool { return it.found && l.Select(it.ts, it.expireAt) }
	for range drill.Pick(3000, 10_000, 1_000_000) {
		p := place{random.IntN(3), fmt.Sprint(random.IntN(20))}
		switch random.IntN(8) {
		case 0, 1, 2, 3:
			it, client, document := model[p], int64(random.IntN(4)), random.IntN(2) == 0
			if it == nil {
				it = &item{map[int64]bool{}, 1 + random.Int64N(100), randomEnd(random), random.IntN(3) > 0}
				model[p] = it
			}
			it.readers[client] = it.readers[client] || document
			notes.Add(p.c, p.id, ReaderOf(client, document), it.found, it.ts, it.expireAt)
		case 4, 5:
			checkReaders(t, notes.Take(p.c, p.id), model[p] != nil, func() map[int64]bool { return model[p].readers })
			delete(model, p)
		case 6:
			l := expiry.Limits{ByDefault: random.Int64N(100), ByOwnTTL: random.Int64N(100)}
			id, readers := notes.TakeDead(p.c, l)
			p.id = id
			if readers == nil {
				for q, it := range model {
					if q.c == p.c && dead(it, l) {
						t.Fatalf("%v is dead and was not found", q)
					}
				}
				continue
			}
			if !dead(model[p], l) {
				t.Fatalf("%v is not dead", p)
			}
			checkReaders(t, readers, true, func() map[int64]bool { return model[p].readers })
			delete(model, p)
		case 7:
			if random.IntN(20) > 0 {
				continue
			}
			clients := map[int64]bool{}
			notes.Drop(p.c, func(client int64) { clients[client] = true })
			for q, it := range model {
				if q.c != p.c {
					continue
				}
				for client := range it.readers {
					if !clients[client] {
						t.Fatalf("client %d has read %v and was not told", client, q)
					}
				}
				delete(model, q)
			}
		}
		items := 0
		for _, it := range model {
			items += len(it.readers)
		}
		if counts.Keys.Load() != int64(len(model)) || counts.Items.Load() != int64(items) || (counts.Bytes.Load() > 0) != (len(model) > 0) {
			t.Fatalf("%d keys, %d items, %d bytes; want %d and %d", counts.Keys.Load(), counts.Items.Load(), counts.Bytes.Load(), len(model), items)
		}
	}
	for len(model) > 0 {
		c, id, readers := notes.TakeAny()
		checkReaders(t, readers, true, func() map[int64]bool { return model[place{c, id}].readers })
		delete(model, place{c, id})
	}
	if notes.DropAll(); counts.Bytes.Load() != 0 || len(notes.groups) > 0 {
		t.Errorf("%d bytes and %d groups are left", counts.Bytes.Load(), len(notes.groups))
	}
}

// TestNotesForgetClientsThatHaveGone: an id that never changes has not all clients that have ever read it.
func TestNotesForgetClientsThatHaveGone(t *testing.T) {
	t.Parallel()
	const stay, looks = 50, 100_000
	var counts Counts
	looked := 0
	notes := Notes[int]{Counts: &counts, Caches: func(client int64) bool {
		looked++
		return client <= stay || client == int64(looks)
	}}
	for client := range int64(looks) {
		notes.Add(1, "id", ReaderOf(client+1, false), false, 0, 0)
		if items := counts.Items.Load(); items > 4*stay {
			t.Fatalf("%d readers are noted after %d", items, client+1)
		}
	}
	if len(notes.Group(1).clients) != int(counts.Items.Load()) || looked > 4*looks {
		t.Errorf("%d clients, %d readers, %d looks", len(notes.Group(1).clients), counts.Items.Load(), looked)
	}
	readers := notes.Take(1, "id")
	for client := range int64(stay) {
		if !slices.Contains(readers, ReaderOf(client+1, false)) {
			t.Errorf("client %d is forgotten", client+1)
		}
	}
	if counts.Items.Load() != 0 || counts.Bytes.Load() != 0 {
		t.Errorf("%d items, %d bytes are left", counts.Items.Load(), counts.Bytes.Load())
	}
}

// randomEnd returns any kind of expireAt.
func randomEnd(random *rand.Rand) int64 {
	switch random.IntN(4) {
	case 0:
		return expiry.Never
	case 1:
		return 1 + random.Int64N(100)
	case 2:
		return expiry.CapAt(2 + random.Int64N(100))
	}
	return expiry.Inherit
}

func checkReaders(t *testing.T, got []Reader, there bool, want func() map[int64]bool) {
	t.Helper()
	if !there {
		if got != nil {
			t.Fatalf("readers of nothing: %v", got)
		}
		return
	}
	for client, document := range want() {
		if !slices.Contains(got, ReaderOf(client, document)) {
			t.Fatalf("readers %v, want %v", got, want())
		}
	}
	if len(got) != len(want()) {
		t.Fatalf("readers %v, want %v", got, want())
	}
}
