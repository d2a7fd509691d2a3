package lease

import (
	"errors"
	"testing"

	_ "mayfly/test/drill" // its flags
)

// recorder is the ends of leases that were recorded, ms.
type recorder []int64

func (r *recorder) record(until int64) uint64 {
	*r = append(*r, until)
	return uint64(len(*r))
}

func TestLease(t *testing.T) {
	t.Parallel()
	var l Lease
	var records recorder
	yes, no := func() error { return nil }, func() error { return errors.New("refused") }
	l.Set(1000)
	if !l.Covers(1000) || l.Covers(1001) || l.LSN() != 0 {
		t.Error("the first lease")
	}
	l.Extend(1000, yes, records.record) // covered
	l.Extend(1001, no, records.record)
	if l.End() != 1000 || len(records) > 0 {
		t.Errorf("the lease ends at %d after a refused extension, records %d", l.End(), records)
	}
	l.Extend(1001, yes, records.record)
	if want := 1001 + Time.Milliseconds(); l.End() != want || !l.Covers(want) || l.LSN() != 1 || records[0] != want {
		t.Errorf("the lease ends at %d by LSN %d, records %d", l.End(), l.LSN(), records)
	}
	l.Extend(1500, yes, records.record)
	if len(records) != 1 {
		t.Errorf("records %d", records)
	}
}

// TestClose: a lease ends at the time that it is closed, and no later one was in use.
func TestClose(t *testing.T) {
	t.Parallel()
	var l Lease
	var records recorder
	l.Renew(1000, records.record)
	at := l.Close(func() int64 {
		if l.Covers(1001) {
			t.Error("the lease covers a time while it is closed: that may be later than the one that is read then")
		}
		return 1100
	}, records.record)
	if at != 1100 || l.End() != 1100 || l.Covers(1101) || !l.Covers(1100) || l.LSN() != 2 || records[1] != 1100 {
		t.Errorf("closed at %d, the lease ends at %d, records %d", at, l.End(), records)
	}
}
