package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// idsLike are ids of one kind each, besides what else a container may hold.
var idsLike = map[string]func(r *rand.Rand) string{
	"numbers of a fixed width": func(r *rand.Rand) string { return fmt.Sprintf("order:%012d", r.IntN(1_000_000)) },
	"numbers of any width":     func(r *rand.Rand) string { return fmt.Sprint("order:", r.IntN(1_000_000)) },
	"digits":                   func(r *rand.Rand) string { return strings.Repeat("0", r.IntN(20)) + fmt.Sprint(r.IntN(20)) },
	"hexadecimal":              func(r *rand.Rand) string { return fmt.Sprintf("%016x", r.Uint64()) },
	"several numbers":          func(r *rand.Rand) string { return fmt.Sprintf("%d:%d", r.IntN(20), r.IntN(20)) },
	"any bytes": func(r *rand.Rand) string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "\x00/0019:ab\xff"[r.IntN(10)]
		}
		return string(b)
	},
}

// TestIDOrder: whatever ids an order was chosen for, the numbers of ids never fall as ids grow.
func TestIDOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var all []string
	for _, like := range idsLike {
		for range 2000 {
			all = append(all, like(r))
		}
	}
	slices.Sort(all)
	for name, like := range idsLike {
		o := idOrderOf(func(visit func(string)) {
			same := rand.New(rand.NewPCG(3, 4))
			for range 100 {
				visit(like(same))
			}
		})
		for i := 1; i < len(all); i++ {
			if a, b := o.of(all[i-1]), o.of(all[i]); a > b || b > lastOrder {
				t.Fatalf("%s: the order %+v gives %q the number %d and %q %d", name, o, all[i-1], a, all[i], b)
			}
		}
	}
}

// TestIDOrderTellsApart: the order tells most ids of the usual kinds apart, also those that follow later.
func TestIDOrderTellsApart(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"order:%012d", "%08d", "key:%d"} {
		o := idOrderOf(func(visit func(string)) {
			for i := range 100 {
				visit(fmt.Sprintf(format, i*7))
			}
		})
		different := make(map[uint32]bool)
		for i := range 100_000 {
			different[o.of(fmt.Sprintf(format, i))] = true
		}
		if len(different) < 99_000 {
			t.Errorf("%s: 100,000 ids have %d numbers", format, len(different))
		}
	}
}

// FuzzIDOrder: the numbers of two ids are in their order, whatever begins and follows the ids of a tree.
func FuzzIDOrder(f *testing.F) {
	f.Add("order:", true, "order:000012", "order:00002")
	f.Add("", true, "00", "001")
	f.Add("", true, "0-", "00")
	f.Add("a", false, "a\x00", "a")
	f.Add("b", false, "a", "c")
	f.Fuzz(func(t *testing.T, common string, digits bool, a, b string) {
		if a > b {
			a, b = b, a
		}
		o := idOrder{common: common, digits: digits}
		if x, y := o.of(a), o.of(b); x > y || y > lastOrder {
			t.Errorf("%+v gives %q the number %d and %q %d", o, a, x, b, y)
		}
	})
}
