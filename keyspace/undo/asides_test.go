package undo

import (
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

type container struct {
	name  string
	aside record.Aside
}

func (c *container) Name() string         { return c.name }
func (c *container) Aside() *record.Aside { return &c.aside }

func TestAsides(t *testing.T) {
	t.Parallel()
	var all Asides[*container]
	first := &container{"a", record.Aside{Order: 1, Until: 10}}
	second := &container{"a", record.Aside{Order: 2, Until: 20}}
	other := &container{"b", record.Aside{Order: 3, Until: 30}}
	for _, c := range []*container{other, second, first} {
		all.Add(c)
	}
	list := all.Of("a")
	if !slices.Equal(list, []*container{first, second}) || len(all.Of("c")) != 0 {
		t.Errorf("a has %v", list)
	}
	if ended := all.Ended(20); len(ended) != 2 || slices.Contains(ended, other) {
		t.Errorf("ended are %v", ended)
	}
	seen := 0
	for c := range all.All() {
		if seen++; !all.Remove(c) || all.Remove(c) {
			t.Errorf("%v cannot be removed once", c)
		}
	}
	if seen != 3 || len(slices.Collect(all.All())) != 0 {
		t.Errorf("%d were removed, %d are left", seen, len(slices.Collect(all.All())))
	}
	if list[0] != first || list[1] != second {
		t.Errorf("a list has changed after it was returned: %v", list)
	}
}

// TestAsidesFirst: the first end follows what is added, removed and changed.
func TestAsidesFirst(t *testing.T) {
	t.Parallel()
	var all Asides[*container]
	check := func(want int64) {
		t.Helper()
		if got := all.First(); got != want {
			t.Errorf("the first end is %d, want %d", got, want)
		}
	}
	check(expiry.NeverDue)
	a, b := &container{"a", record.Aside{Until: 20}}, &container{"b", record.Aside{Until: 10}}
	all.Add(a)
	check(20)
	all.Add(b)
	check(10)
	a.aside.Until = 5
	all.EndChanged()
	check(5)
	all.Remove(a)
	check(10)
}

func TestHorizon(t *testing.T) {
	t.Parallel()
	var h Horizon
	if h.Opens(false, false) || h.Any() || h.Open(0) {
		t.Error("the zero value has windows")
	}
	h.SetAuto()
	if h.Window() != AutoWindow || !h.Opens(false, false) || h.Opens(true, false) || h.Opens(false, true) {
		t.Error("an automatic window is for changes of containers with items")
	}
	h.SetWindow(2)
	if !h.Opens(true, true) {
		t.Error("a window that was set is for all changes")
	}
	if h.Window() != 2 || h.End(5) != 2005 || h.Any() {
		t.Errorf("the end is %d", h.End(5))
	}
	h.Extend(2005)
	h.Extend(0)
	h.Extend(2000)
	if !h.Any() || !h.Open(2004) || h.Open(2005) {
		t.Error("a window until 2005 is open at another time")
	}
	if h.Close(); h.Any() || h.Open(0) {
		t.Error("windows are open after Close")
	}
}
