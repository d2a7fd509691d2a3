package keyspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestArrange: deletes come before what may bring the same key back, and what a tree has already in its
// order; nothing is lost.
func TestArrange(t *testing.T) {
	var ops []op
	kind := func(o op) int {
		switch {
		case o.del:
			return 0
		case !o.known:
			return 1
		}
		return 2
	}
	var before, after [3][]string
	for i := range 1000 {
		o := op{key: fmt.Sprintf("1:%03d", (i*7919)%1000), del: i%3 == 0, known: i%3 != 1}
		ops = append(ops, o)
		before[kind(o)] = append(before[kind(o)], o.key)
	}
	new(arranger).arrange(ops)
	for _, o := range ops {
		after[kind(o)] = append(after[kind(o)], o.key)
	}
	if !slices.IsSortedFunc(ops, func(a, b op) int { return kind(a) - kind(b) }) {
		t.Error("kinds of operations are mixed")
	}
	if slices.IsSorted(after[1]) {
		t.Error("what is new comes in the order of its keys")
	}
	if !slices.IsSorted(after[0]) || !slices.IsSorted(after[2]) {
		t.Error("what is there already does not come in the order of its keys")
	}
	for kind := range before {
		if !slices.Equal(slices.Sorted(slices.Values(before[kind])), slices.Sorted(slices.Values(after[kind]))) {
			t.Errorf("of kind %d there is something else than before", kind)
		}
	}
	new(arranger).arrange(nil)
}

// TestSortByKeys sorts keys that have much in common, and such as differ only in their length.
func TestSortByKeys(t *testing.T) {
	letters := []string{"", "a", "b", "\x00", "\xff", "aaaaaaaa", "\x00\x00\x00\x00\x00\x00\x00\x00", "1:"}
	var a arranger
	for range 2000 {
		prefix := strings.Repeat("p", rand.IntN(20))
		ops := make([]op, rand.IntN(30))
		for i := range ops {
			ops[i].key = prefix
			for range rand.IntN(6) {
				ops[i].key += letters[rand.IntN(len(letters))]
			}
			ops[i].rec = ops[i].key
		}
		want := slices.Clone(ops)
		slices.SortFunc(want, func(x, y op) int { return strings.Compare(x.key, y.key) })
		got := slices.Clone(ops)
		a.sort(got, 0)
		if !slices.Equal(got, want) {
			t.Fatalf("%+q is sorted as %+q", keysOf(ops), keysOf(got))
		}
	}
}

func keysOf(ops []op) (keys []string) {
	for _, o := range ops {
		keys = append(keys, o.key)
	}
	return keys
}
