package streamid

import (
	"math"
	"testing"

	_ "mayfly/test/drill" // its flags
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want ID
		ok   bool
	}{
		{"0-0", ID{}, true},
		{"5", ID{5, 9}, true},
		{"1767225610000-3", ID{1767225610000, 3}, true},
		{"18446744073709551615-18446744073709551615", Max, true},
		{"18446744073709551616-0", ID{}, false},
		{"", ID{}, false},
		{"-", ID{}, false},
		{"1-", ID{}, false},
		{"-1", ID{}, false},
		{"+1-1", ID{1, 1}, true}, // as strtoull has it
		{"0012- 07", ID{12, 7}, true},
		{"1--1", ID{}, false},
		{"1--01", ID{1, math.MaxUint64}, true},
		{"1_0-1", ID{}, false},
		{"1-1-1", ID{}, false},
		{"a-1", ID{}, false},
	} {
		got, ok := Parse(c.text, 9)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("Parse(%q) = %v, %v, want %v, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1-2")
	f.Add("0-0")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := Parse(s, 7)
		if again, same := Parse(id.String(), 0); ok && (!same || again != id) {
			t.Errorf("Parse(%q) = %v, which reads as %v", s, id, again)
		}
	})
}

func TestNextAndPrev(t *testing.T) {
	t.Parallel()
	for _, id := range []ID{{}, {1, 5}, {1, math.MaxUint64}, {math.MaxUint64, 3}} {
		next, ok := id.Next()
		if prev, back := next.Prev(); !ok || !back || prev != id || !id.Less(next) {
			t.Errorf("the id after %v is %v, and the one before that is %v", id, next, prev)
		}
	}
	if _, ok := Max.Next(); ok {
		t.Error("an id follows the greatest")
	}
	if _, ok := (ID{}).Prev(); ok {
		t.Error("an id precedes 0-0")
	}
}
