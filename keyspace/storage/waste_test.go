package storage

import (
	"maps"
	"testing"
	"time"

	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  wasteRule
		bytes int64
		want  time.Duration
		never bool
	}{
		{wasteRule{}, 0, minAge, false},
		{wasteRule{}, 64 << 20, minAge, false},
		{wasteRule{}, 1 << 30, 4097 * time.Second, false},
		{wasteRule{}, 10 << 30, 40961 * time.Second, false},
		{wasteRule{}, 1 << 50, maxAge, false},
		{wasteRule{never: true}, 0, 0, true},
		{wasteRule{within: 10 * time.Minute}, 0, 5 * time.Minute, false},
		{wasteRule{within: time.Hour, never: true}, 1 << 50, time.Hour / 2, false},
	} {
		if age, ok := c.rule.age(c.bytes); age != c.want || ok == c.never {
			t.Errorf("%+v with %d bytes: %v, %t; want %v", c.rule, c.bytes, age, ok, c.want)
		}
	}
}

// Compactions by age rewrite at most bytesPerSecond on average, however large the stores are, up to the
// longest age.
func TestCompactionsByAgeAreBounded(t *testing.T) {
	t.Parallel()
	for bytes := int64(1); bytes < bytesPerSecond*int64(maxAge/time.Second); bytes = bytes*3 + 1 {
		age, _ := wasteRule{}.age(bytes)
		if rate := bytes / int64(age/time.Second); rate > bytesPerSecond {
			t.Errorf("%d bytes each %v: %d bytes a second", bytes, age, rate)
		}
	}
}

func TestLateAndOverdue(t *testing.T) {
	t.Parallel()
	r := wasteRule{within: time.Hour}
	if r.late(45*time.Minute) || !r.late(46*time.Minute) || (wasteRule{}).late(1000*time.Hour) {
		t.Error("late is wrong")
	}
	if r.overdue(time.Hour) != nil || (wasteRule{}).overdue(1000*time.Hour) != nil {
		t.Error("waste that is not overdue counts as overdue")
	}
	if err := r.overdue(time.Hour + time.Second); err == nil ||
		err.Error() != "the data folder holds waste of 3601 seconds ago; erase-within is 3600" {
		t.Error(err)
	}
	if r.endAge() != time.Hour/2 || (wasteRule{}).endAge() != keptEnds {
		t.Error("the age of ends is wrong")
	}
}

func TestMomentsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, m := range []wasteMoments{{}, {"catalogue.db": 1, "partition-003.db": 1_700_000_000_000}} {
		rec := string(m.append(nil, 5))
		it, _, err := record.Decode(record.WasteKey, rec)
		if err != nil || it.Kind != record.WasteKind || it.TS != 5 {
			t.Fatalf("%q: %+v, %v", rec, it, err)
		}
		back, err := readWaste(it.Body)
		if err != nil || !maps.Equal(back, m) {
			t.Errorf("%q is read as %v, %v", it.Body, back, err)
		}
	}
	for _, body := range []string{"", "[]", `{"a":"b"}`, `{"a":1.5}`} {
		if m, err := readWaste(body); err == nil {
			t.Errorf("%q is read as %v", body, m)
		}
	}
}

func FuzzReadWaste(f *testing.F) {
	f.Add(`{"catalogue.db":1700000000000,"partition-003.db":1700000000001}`)
	f.Add(`{}`)
	f.Add(`null`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, body string) {
		m, err := readWaste(body)
		if err != nil {
			return
		}
		it, _, err := record.Decode(record.WasteKey, string(m.append(nil, 1)))
		drill.Check(t, err)
		if again, err := readWaste(it.Body); err != nil || !maps.Equal(again, m) {
			t.Fatalf("%q is read as %v and comes back as %v, %v", body, m, again, err)
		}
	})
}
