package aof

import (
	"slices"
	"testing"
)

func TestLastSets(t *testing.T) {
	t.Parallel()
	set := func(key string) Op { return Op{Key: key, Rec: "r"} }
	del := func(key string) Op { return Op{Key: key, Del: true} }
	got := LastSets([]Op{del("a"), set("a"), set("b"), del("c"), set("d"), set("d"), del("b")})
	if want := []Op{set("a"), set("d")}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
