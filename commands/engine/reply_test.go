package engine

import "testing"

// TestListIsCharged: a long list is an array of blocks. Its client is charged for it until then, and without
// memory for it the array is an error.
func TestListIsCharged(t *testing.T) {
	t.Parallel()
	var limit ClientMemoryLimit
	limit.SetLimit(1 << 20)
	memory := limit.Open(&Session{})
	for _, tt := range []struct {
		n    int
		long bool
		kind Kind
	}{{0, false, KindArray}, {blockLen, false, KindArray}, {3*blockLen + 1, true, KindArray}, {100 * blockLen, false, KindError}} {
		list := List{Memory: memory}
		for i := range tt.n {
			list.Add(Count(i))
		}
		if held := memory.Size(); tt.n > blockLen && held < min(tt.n*48, 900<<10) {
			t.Errorf("%d elements: %d bytes are charged", tt.n, held)
		}
		r := list.Array()
		if r.Kind != tt.kind || memory.Size() != 0 {
			t.Fatalf("%d elements: kind %d, %d bytes are held", tt.n, r.Kind, memory.Size())
		}
		i := 0
		for _, e := range r.Elems {
			block := []Reply{e}
			if tt.long {
				block = e.Elems
			}
			for _, e := range block {
				if e.Int != int64(i) {
					t.Fatalf("element %d is %d", i, e.Int)
				}
				i++
			}
		}
		if r.Kind == KindArray && (i != tt.n || tt.long && r.Int != int64(i)) {
			t.Errorf("%d elements of %d, counted %d", i, tt.n, r.Int)
		}
	}
}
