package waste

import (
	"maps"
	"testing"
	"time"

	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

func TestAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  Rule
		bytes int64
		want  time.Duration
		never bool
	}{
		{Rule{}, 0, minAge, false},
		{Rule{}, 64 << 20, minAge, false},
		{Rule{}, 1 << 30, 4097 * time.Second, false},
		{Rule{}, 10 << 30, 40961 * time.Second, false},
		{Rule{}, 1 << 50, maxAge, false},
		{Rule{Never: true}, 0, 0, true},
		{Rule{Within: MinWithin}, 0, MinWithin / 2, false},
		{Rule{Within: time.Hour, Never: true}, 1 << 50, time.Hour / 2, false},
	} {
		if age, ok := c.rule.Age(c.bytes); age != c.want || ok == c.never {
			t.Errorf("%+v with %d bytes: %v, %t; want %v", c.rule, c.bytes, age, ok, c.want)
		}
	}
}

// Compactions by age rewrite at most bytesPerSecond on average, however large the stores are, up to the longest age.
func TestCompactionsByAgeAreBounded(t *testing.T) {
	t.Parallel()
	for bytes := int64(1); bytes < bytesPerSecond*int64(maxAge/time.Second); bytes = bytes*3 + 1 {
		age, _ := Rule{}.Age(bytes)
		if rate := bytes / int64(age/time.Second); rate > bytesPerSecond {
			t.Errorf("%d bytes each %v: %d bytes a second", bytes, age, rate)
		}
	}
}

func TestLateAndOverdue(t *testing.T) {
	t.Parallel()
	r := Rule{Within: time.Hour}
	if r.Late(45*time.Minute) || !r.Late(46*time.Minute) || (Rule{}).Late(1000*time.Hour) {
		t.Error("late is wrong")
	}
	if r.Overdue(time.Hour) != nil || (Rule{}).Overdue(1000*time.Hour) != nil {
		t.Error("waste that is not overdue counts as overdue")
	}
	if err := r.Overdue(time.Hour + time.Second); err == nil ||
		err.Error() != "the data folder holds waste of 3601 seconds ago; erase-within is 3600" {
		t.Error(err)
	}
	if r.EndAge() != time.Hour/2 || (Rule{}).EndAge() != ends {
		t.Error("the age of ends is wrong")
	}
}

func TestMomentsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, m := range []Moments{{}, {"catalogue.db": 1, "partition-003.db": 1_700_000_000_000}} {
		rec := string(m.Append(nil, 5))
		it, _, err := record.Decode(record.WasteKey, rec)
		if err != nil || it.Kind != record.WasteKind || it.TS != 5 {
			t.Fatalf("%q: %+v, %v", rec, it, err)
		}
		back, err := Read(it.Body)
		if err != nil || !maps.Equal(back, m) {
			t.Errorf("%q is read as %v, %v", it.Body, back, err)
		}
	}
	for _, body := range []string{"", "[]", `{"a":"b"}`, `{"a":1.5}`} {
		if m, err := Read(body); err == nil {
			t.Errorf("%q is read as %v", body, m)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"catalogue.db":1700000000000,"partition-003.db":1700000000001}`)
	f.Add(`{}`)
	f.Add(`null`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, body string) {
		m, err := Read(body)
		if err != nil {
			return
		}
		it, _, err := record.Decode(record.WasteKey, string(m.Append(nil, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Read(it.Body); err != nil || !maps.Equal(again, m) {
			t.Fatalf("%q is read as %v and comes back as %v, %v", body, m, again, err)
		}
	})
}
