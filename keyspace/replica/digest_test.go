package replica

import "testing"

func TestDigest(t *testing.T) {
	t.Parallel()
	sum := func(texts ...[]string) [32]byte {
		var d Digest
		for _, parts := range texts {
			d.Add(parts...)
		}
		return d.Sum()
	}
	a, b := []string{"a", "1"}, []string{"b", "2"}
	if sum(a, b) != sum(b, a) {
		t.Error("the order counts")
	}
	seen := map[[32]byte]bool{}
	for _, texts := range [][][]string{{}, {a}, {b}, {a, b}, {a, a}, {{"a1"}}, {{"a", "1", ""}}, {{"b", "1"}, {"a", "2"}}} {
		if s := sum(texts...); seen[s] {
			t.Errorf("%q has the sum of another", texts)
		} else {
			seen[s] = true
		}
	}
}
