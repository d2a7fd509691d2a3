package keyspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// read applies the records of containers.
func (v *inventory) read(t *testing.T, containers ...record.Container) {
	t.Helper()
	for _, c := range containers {
		got, err := v.Read(record.ContainerKey(c.Number), string(c.Append(nil)), false)
		if err != nil || got == nil || got.Number != c.Number || got.Name != c.Name {
			t.Fatalf("container %d is read as %+v, %v", c.Number, got, err)
		}
	}
}

func TestListed(t *testing.T) {
	t.Parallel()
	var v inventory
	v.read(t,
		record.Container{Number: 1, Name: "free", DB: 40},
		record.Container{Number: 2, Name: "0"},
		record.Container{Number: 3, Name: "none"},
		record.Container{Number: 4, Name: "40", DB: 7}, // its name is a number
		record.Container{Number: 5, Name: "low", DB: 3},
		record.Container{Number: 6, Name: "high", DB: 1 << 20},
		record.Container{Number: 7, Name: "second", DB: 17},
		record.Container{Number: 8, Name: "first", DB: 17},
		record.Container{Number: 9, Name: "gone", DB: 50, Aside: &record.Aside{What: expiry.Dropped}},
		record.Container{Number: 10, Name: "old", DB: 18},
		record.Container{Number: 10, Name: "new", DB: 18},
		record.Container{Number: 11, Name: "removed", DB: 19},
	)
	if c, err := v.Read(record.ContainerKey(11), "", true); err != nil || c.Number != 11 {
		t.Fatal(c, err)
	}
	text := func(list []record.Container) string {
		var names []string
		for _, c := range list {
			names = append(names, fmt.Sprintf("%s:%d", c.Name, c.DB))
		}
		return strings.Join(names, " ")
	}
	list, rest := v.Listed()
	if got, want := text(list), "0:0 40:40 second:17 new:18"; got != want {
		t.Errorf("listed are %q, want %q", got, want)
	}
	if got, want := text(rest), "free:40 low:3 high:1048576 first:17 none:0"; got != want {
		t.Errorf("the rest is %q, want %q", got, want)
	}
	for number, want := range map[uint32]bool{1: true, 9: true, 10: true, 11: false, 12: false} {
		if _, ok := v.Container(number); ok != want {
			t.Errorf("container %d exists: %v", number, ok)
		}
	}
}

// TestHidden: a log exists while a container says that it is its own, a group while its log does.
func TestHidden(t *testing.T) {
	t.Parallel()
	var v inventory
	owner := record.Container{Number: 16, Name: "orders", DB: 16, Log: &record.Log{Number: 20}}
	v.read(t, owner,
		record.Container{Number: 20, Hidden: &record.Hidden{LogOf: 16}},
		record.Container{Number: 21, Hidden: &record.Hidden{LogOf: 16, GroupOf: 20, Group: "g"}},
		record.Container{Number: 22, Hidden: &record.Hidden{LogOf: 16}},
		record.Container{Number: 23, Hidden: &record.Hidden{LogOf: 16, GroupOf: 22, Group: "g"}},
		record.Container{Number: 24, Hidden: &record.Hidden{LogOf: 16, GroupOf: 24, Group: "of itself"}},
		record.Container{Number: 25, Hidden: &record.Hidden{LogOf: 16, GroupOf: 99, Group: "of nothing"}},
	)
	exist := func() (list []uint32) {
		for number := range uint32(30) {
			if _, ok := v.Container(number); ok {
				list = append(list, number)
			}
		}
		return list
	}
	if got := exist(); !slices.Equal(got, []uint32{16, 20, 21}) {
		t.Errorf("there are %v", got)
	}
	owner.Log = &record.Log{Number: 22}
	v.read(t, owner)
	if got := exist(); !slices.Equal(got, []uint32{16, 22, 23}) {
		t.Errorf("after the owner has another log, there are %v", got)
	}
	if list, rest := v.Listed(); len(list) != 1 || len(rest) != 0 {
		t.Errorf("listed are %v and %v", list, rest)
	}
}

// TestLatest: the clock, the epoch and the version are the latest of all records, also of what is gone.
func TestLatest(t *testing.T) {
	t.Parallel()
	var v inventory
	clock := record.AppendHeader(nil, record.Item{Kind: record.ClockKind, TS: 500, Version: 7})
	record.PutSum(record.ClockKey, clock)
	if c, err := v.Read(record.ClockKey, string(clock), false); c != nil || err != nil {
		t.Fatal(c, err)
	}
	entry := expiry.HistoryEntry{At: 900, What: expiry.Created, Kills: -1}
	v.read(t,
		record.Container{Number: 1, Name: "a", Created: 400, Etag: 11, Policy: expiry.Policy{OwnDeadTo: 700}, History: []expiry.HistoryEntry{entry}},
		record.Container{Number: 2, Name: "b", Created: 400, Etag: 12, Aside: &record.Aside{What: expiry.Dropped, Order: 99}},
	)
	if _, err := v.Read(record.ContainerKey(2), "", true); err != nil {
		t.Fatal(err)
	}
	if v.Clock != 900 || v.Epoch != 7 || v.Version != 99 {
		t.Errorf("clock %d, epoch %d, version %d", v.Clock, v.Epoch, v.Version)
	}
	for _, key := range []string{"1:x", ""} {
		if _, err := v.Read(key, "", true); err == nil {
			t.Errorf("%q is read as a record of the catalogue", key)
		}
	}
}
