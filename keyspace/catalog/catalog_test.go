package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// container is one with the memory of its name.
type container struct {
	name   string
	number uint32
	db     uint32
	aside  *record.Aside
	hidden *record.Hidden
	place  int
}

func (c *container) Name() string         { return c.name }
func (c *container) DB() uint32           { return c.db }
func (c *container) Aside() *record.Aside { return c.aside }

func newCatalog() *Catalog[*container] {
	cat := new(Catalog[*container])
	cat.Init(Accessors[*container]{
		Number: func(c *container) uint32 { return c.number },
		Memory: func(c *container) int64 { return int64(len(c.name)) },
		Record: func(c *container) record.Container {
			return record.Container{Number: c.number, Name: c.name, DB: c.db, Policy: expiry.Policy{Default: 1}, Aside: c.aside, Hidden: c.hidden, Etag: 1}
		},
		Place: func(c *container) *int { return &c.place },
	})
	return cat
}

// TestListing: containers come and go at random, and the catalogue has those that are there.
func TestListing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	cat := newCatalog()
	there := make(map[*container]bool)
	memory := int64(0)
	for i := range 2000 {
		if c := anyOf(there, random); c != nil && random.IntN(2) == 0 {
			delete(there, c)
			memory -= int64(len(c.name))
			switch {
			case c.hidden != nil:
				cat.Unhide(c)
			case c.aside != nil:
				cat.RemoveAside(c)
				cat.RemoveAside(c) // it is gone
			default:
				cat.Remove(c)
			}
		} else {
			c := &container{name: fmt.Sprint("c", i), number: cat.Number(), db: uint32(16 + i)}
			switch random.IntN(3) {
			case 0:
				c.name, c.hidden = "", &record.Hidden{LogOf: 1}
				cat.Hide(c)
			case 1:
				c.aside = &record.Aside{What: expiry.Dropped, Until: 1, Order: uint64(i)}
				cat.AddAside(c)
			default:
				cat.Add(c)
			}
			there[c] = true
			memory += int64(len(c.name))
		}
		if all := slices.Collect(cat.All()); len(all) != len(there) || cat.Memory() != memory || len(cat.ByName) != len(cat.List()) || len(cat.ByDB) != len(cat.List()) {
			t.Fatalf("step %d: %d containers of %d bytes; there are %d of %d", i, len(all), cat.Memory(), len(there), memory)
		}
		for number, c := range cat.ByNumber() {
			if !there[c] || c.number != number || number >= cat.Next() || cat.Listed(c) != (c.aside == nil && c.hidden == nil) {
				t.Fatalf("step %d: container %d is %+v", i, number, c)
			}
		}
	}
}

func anyOf(there map[*container]bool, random *rand.Rand) (found *container) {
	n := random.IntN(len(there) + 1)
	for c := range there {
		if n--; n < 0 {
			return c
		}
	}
	return nil
}

// TestChanges: what the files lack comes once, as of the moment at which it is captured.
func TestChanges(t *testing.T) {
	t.Parallel()
	cat := newCatalog()
	var lock sync.Mutex
	stays, renumbered, goes := &container{name: "a", number: 1}, &container{name: "b", number: 2}, &container{name: "c", number: 3}
	for _, c := range []*container{stays, renumbered, goes} {
		cat.Add(c)
		cat.Changed(c)
	}
	cat.Used(4)
	cat.Used(2)
	if n := cat.Number(); n != 4 {
		t.Errorf("the number is %d", n)
	}
	cat.Remove(goes)
	cat.Gone(3)
	if !cat.IsChanged(stays) || cat.IsChanged(goes) || !cat.NotesNumber(3) || cat.NotesNumber(4) {
		t.Error("the changes are wrong")
	}
	changes := cat.TakeChanged()
	renumbered.number = 9 // meanwhile
	deleted, set := 0, 0
	for _, op := range changes.Ops(&lock) {
		switch {
		case op.Del && (op.Key == record.ContainerKey(2) || op.Key == record.ContainerKey(3)):
			deleted++
		case !op.Del && op.Key == record.ContainerKey(1):
			set++
		default:
			t.Errorf("%+v", op)
		}
	}
	if deleted != 2 || set != 1 {
		t.Errorf("%d are deleted, %d set", deleted, set)
	}
	if ops := cat.TakeChanged().Ops(&lock); len(ops) != 0 {
		t.Errorf("again: %+v", ops)
	}
	if ops := cat.Everything().Ops(&lock); len(ops) != 2 {
		t.Errorf("everything: %+v", ops)
	}
}
