package watch

import (
	"testing"

	"mayfly/expiry"
	_ "mayfly/test/drill" // its flags
)

// TestSet: a set has changed if its mark is set, an item dies, or the rules or the items of a container are
// replaced so that an item does not live any more, or lives that did not.
func TestSet(t *testing.T) {
	t.Parallel()
	type key = Key[int, string]
	before := State{Policy: &expiry.Policy{}, Replaced: 1}
	other := State{Policy: &expiry.Policy{}, Replaced: 1}
	for _, tt := range []struct {
		name        string
		lived       bool
		change      func(s *Set[int, string], v *View[int, string])
		wantChanged bool
	}{
		{"nothing", true, func(*Set[int, string], *View[int, string]) {}, false},
		{"the mark", false, func(s *Set[int, string], _ *View[int, string]) { s.Mark.Set() }, true},
		{"the item dies", true, func(_ *Set[int, string], v *View[int, string]) { v.Now = 100 }, true},
		{"an absent item does not die", false, func(_ *Set[int, string], v *View[int, string]) { v.Now = 100 }, false},
		{"a policy under which it lives", true, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return other }
		}, false},
		{"a policy under which it lives longer", true, func(_ *Set[int, string], v *View[int, string]) {
			v.Now = 100
			v.State = func(string) State { return other }
		}, false},
		{"a policy under which it is dead", true, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return other }
			v.Lives = func(key) bool { return false }
		}, true},
		{"all items are replaced", true, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return State{Policy: before.Policy, Replaced: 2} }
		}, true},
		{"all items are replaced and none is brought", false, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return State{Policy: before.Policy, Replaced: 2} }
			v.Brought = func(key) bool { return false }
		}, false},
		{"the item is brought", false, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return State{Policy: before.Policy, Replaced: 2} }
		}, true},
		{"the container is dropped", false, func(_ *Set[int, string], v *View[int, string]) {
			v.State = func(string) State { return State{Policy: before.Policy, Replaced: 1, Dropped: true} }
		}, true},
	} {
		var s Set[int, string]
		s.Add(key{Partition: 1, Container: "c", ID: "k", Lived: tt.lived}, before, 100)
		yes := func(key) bool { return true }
		v := View[int, string]{Now: 99, State: func(string) State { return before }, Lives: yes, Brought: yes}
		tt.change(&s, &v)
		if got := s.Changed(v); got != tt.wantChanged {
			t.Errorf("%s: changed is %t", tt.name, got)
		}
	}
}
