package watch

import "testing"

func TestLists(t *testing.T) {
	t.Parallel()
	var l Lists[int]
	var a, b Mark
	if !l.Empty() || len(l.Of(1, "k")) > 0 {
		t.Error("the zero value is not empty")
	}
	if !l.Add(1, "k", &a) || l.Add(1, "k", &a) || !l.Add(1, "k", &b) || !l.Add(2, "k", &a) {
		t.Error("each mark is once in a list")
	}
	for _, m := range l.Of(1, "k") {
		m.Set()
	}
	if !a.IsSet() || !b.IsSet() || len(l.Of(1, "k")) != 2 || len(l.Of(2, "k")) != 1 || len(l.Of(2, "other")) != 0 {
		t.Error("the lists are not by container and id")
	}
	l.Remove(1, "k", &a)
	l.Remove(1, "other", &a)
	l.Remove(3, "k", &a)
	if got := l.Of(1, "k"); len(got) != 1 || got[0] != &b {
		t.Errorf("%d marks are left", len(got))
	}
	l.Remove(1, "k", &b)
	l.Remove(2, "k", &a)
	if !l.Empty() {
		t.Error("an empty list is left")
	}
}
