package replica

import (
	"errors"
	"testing"
)

// TestDurable: an index is durable once the journal is on disk up to its commit, and never before.
func TestDurable(t *testing.T) {
	t.Parallel()
	r := NewRole(nil)
	r.Begin(Tail{Position: Position{Index: 10}})
	if r.Durable(0) != 10 {
		t.Errorf("%d is durable", r.Durable(0))
	}
	synced := uint64(0)
	for lsn := uint64(1); lsn <= 100; lsn++ {
		r.Settled(lsn, Tail{Position: Position{Index: 10 + 2*lsn}}, synced)
		if lsn%7 == 0 {
			synced = lsn - 3
		}
		if d := r.Durable(synced); d > 10+2*synced || d < 10 {
			t.Fatalf("commit %d is on disk, index %d of %d is durable", synced, d, 10+2*lsn)
		}
	}
	if d := r.Durable(100); d != 210 {
		t.Errorf("all is on disk, %d is durable", d)
	}
	if d := r.Durable(0); d != 210 {
		t.Errorf("%d is durable after 210", d)
	}
}

// TestConfirmOfEachRole: replies of a follower need no confirmation, those of a former leader get none.
func TestConfirmOfEachRole(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	r := NewRole(confirms(func() error { return lost }))
	if err := r.ConfirmLSN(5, 0); err != nil {
		t.Error("a follower's:", err)
	}
	r.Lead(1)
	if err := r.ConfirmLSN(5, 0); err != lost {
		t.Error("a leader's:", err)
	}
	r.Follow()
	if err := r.ConfirmLSN(6, 0); err != ErrNoMajority {
		t.Error("while it begins to follow:", err)
	}
	r.EndLed(5)
	if err := r.ConfirmLSN(5, 0); err != ErrNoMajority {
		t.Error("of a former leader:", err)
	}
	if err := r.ConfirmLSN(6, 0); err != nil {
		t.Error("a follower's:", err)
	}
	r.Lead(2)
	if err := r.ConfirmLSN(5, 0); err != ErrNoMajority {
		t.Error("of the leader that it was:", err)
	}
	if err := r.ConfirmLSN(6, 0); err != lost {
		t.Error("a leader's:", err)
	}
}

// TestMomentsAscend: a sweep that ends late does not take a moment back.
func TestMomentsAscend(t *testing.T) {
	t.Parallel()
	r := NewRole(nil)
	r.Lead(10)
	r.Swept(7)
	if r.Moment() != 10 {
		t.Error(r.Moment())
	}
	r.Settled(1, Tail{Position: Position{Index: 5, Term: 1, Moment: 9}, State: []byte("s")}, 0)
	r.Settled(2, Tail{Position: Position{Index: 6, Term: 1, Moment: 3}}, 0)
	if got := r.Tail(); got.Moment != 9 || got.Index != 6 || string(got.State) != "s" {
		t.Errorf("%+v", got)
	}
}
