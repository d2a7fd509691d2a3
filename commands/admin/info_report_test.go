package admin

import "testing"

func TestHumanBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1.00K", 991032: "967.80K", 6782976: "6.47M", 25276502016: "23.54G",
		1 << 40: "1.00T", 1 << 50: "1.00P", 1 << 60: "1024.00P",
	} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
