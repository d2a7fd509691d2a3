package keyspace

import (
	"errors"
	"testing"
)

func TestOfName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"0": 0, "9": 9, "16": 16, "2025": 2025, "1048575": MaxDB,
		"": -1, "00": -1, "016": -1, "-1": -1, "+1": -1, "1048576": -1, "4294967296": -1, "1e3": -1, "x": -1, "1_000": -1,
	} {
		got := -1
		if n, ok := numberOfName(name); ok {
			got = int(n)
		}
		if got != want {
			t.Errorf("the number of %q is %d, want %d", name, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	all := numberTable{}
	for n, name := range map[uint32]string{0: "0", 16: "a", 17: "17", 19: "b", MaxDB: "c"} {
		all[n] = &Container{name: name}
	}
	for _, c := range []struct {
		name         string
		wanted, last uint32
		number       uint32
		next         bool
		err          error
	}{
		{"x", 0, 0, 18, true, nil},
		{"x", 0, 17, 18, true, nil},
		{"x", 0, 18, 20, true, nil},
		{"x", 0, MaxDB, 18, true, nil},
		{"x", 0, MaxDB - 1, 18, true, nil},
		{"x", 40, 17, 40, false, nil},
		{"x", 16, 17, 0, false, &TakenError{16, "a"}},
		{"25", 0, 17, 25, false, nil},
		{"25", 25, 17, 25, false, nil},
		{"25", 26, 17, 0, false, &ownError{25}},
		{"19", 0, 17, 0, false, &TakenError{19, "b"}},
		{"1048576", 0, 17, 18, true, nil},
		{"1048576", 18, 17, 18, false, nil},
	} {
		number, next, err := all.Choose(c.name, c.wanted, c.last)
		if number != c.number || next != c.next || (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%+v: %d, %v, %v", c, number, next, err)
		}
	}
	if all.Highest() != MaxDB {
		t.Errorf("the highest is %d", all.Highest())
	}
}

func TestAllNumbersTaken(t *testing.T) {
	t.Parallel()
	all := make(numberTable)
	for n := range uint32(MaxDB + 1) {
		if n != 500 {
			all[n] = new(Container)
		}
	}
	for _, last := range []uint32{0, 499, 500, MaxDB} {
		if n, _, err := all.Choose("x", 0, last); n != 500 || err != nil {
			t.Errorf("after %d comes %d, %v", last, n, err)
		}
	}
	all[500] = new(Container)
	if _, _, err := all.Choose("x", 0, 0); !errors.Is(err, errUsedUp) {
		t.Errorf("the error is %v", err)
	}
}
