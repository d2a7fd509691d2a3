package keyspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

func newCatalogue() *catalogue {
	cat := new(catalogue)
	cat.init()
	return cat
}

// TestListing: containers come and go at random, and the catalogue has those that are there.
func TestListing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	cat := newCatalogue()
	there := make(map[*Container]bool)
	memory := int64(0)
	for i := range 2000 {
		if c := anyOf(there, random); c != nil && random.IntN(2) == 0 {
			delete(there, c)
			memory -= c.memory()
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
			c := newContainer(record.Container{Number: cat.Number(), Name: fmt.Sprint("c", i), DB: uint32(16 + i), Etag: 1}, 0)
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
			memory += c.memory()
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

func anyOf(there map[*Container]bool, random *rand.Rand) (found *Container) {
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
	cat := newCatalogue()
	var lock sync.Mutex
	named := func(name string, number uint32) *Container {
		return newContainer(record.Container{Name: name, Number: number, DB: number + Databases, Etag: 1}, 0)
	}
	stays, renumbered, goes := named("a", 1), named("b", 2), named("c", 3)
	for _, c := range []*Container{stays, renumbered, goes} {
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
