package journal

import (
	"errors"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// openReplicated opens a journal whose batches a test commits: each waits for a value of answers.
func openReplicated(t *testing.T) (j *Journal, asked chan time.Duration, answers chan error) {
	t.Helper()
	asked, answers = make(chan time.Duration, 16), make(chan error)
	index := uint64(0)
	j, err := Open(Options{FS: vfstest.New(), Dir: vfstest.Dir, First: 1, Log: zerolog.Nop(), Replication: &Replication{
		Replicate: func(_ uint64, _ int64, _ []byte, until time.Duration) (replica.Tail, error) {
			asked <- until
			err := <-answers
			index++
			return replica.Tail{Position: replica.Position{Index: index, Term: 1}}, err
		},
		Moment:  func() int64 { return 1 },
		Settled: func(LSN, replica.Tail, LSN) {},
	}})
	drill.Check(t, err)
	return j, asked, answers
}

// received returns a value of a channel, soon.
func received[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing arrives")
	}
	return v
}

// TestWaitUntil: a goroutine that waits for another's commit gives up at its time, and the batch is committed
// all the same. The lead is passed on, even if it was offered to one that gave up.
func TestWaitUntil(t *testing.T) {
	t.Parallel()
	j, asked, answers := openReplicated(t)
	leader := make(chan error, 1)
	first := j.Append(set("1:a", "1"))
	until := clock.Monotonic() + time.Hour
	go func() { leader <- j.WaitUntil(first, until, true) }()
	if got := received(t, asked); got != until {
		t.Errorf("the log is asked until %v, want %v", got, until)
	}
	second := j.Append(set("1:b", "2"))
	for _, lsn := range []LSN{first, second} { // of the batch in flight, and of the next
		began := clock.Monotonic()
		if err := j.WaitUntil(lsn, began+20*time.Millisecond, false); !errors.Is(err, replica.ErrNoMajority) {
			t.Errorf("commit %d: %v", lsn, err)
		}
		if took := clock.Monotonic() - began; took < 20*time.Millisecond || took > 10*time.Second {
			t.Errorf("commit %d gives up after %v", lsn, took)
		}
	}
	answers <- nil
	drill.Report(t, received(t, leader))
	go func() { leader <- j.Wait(second) }()
	received(t, asked)
	answers <- nil
	drill.Report(t, received(t, leader))
	drill.Report(t, j.Close())
}

// TestLeadIsOfferedToNone: the last waiter of a batch that gives up takes the lead with it that it was
// offered.
func TestLeadIsOfferedToNone(t *testing.T) {
	t.Parallel()
	j, asked, answers := openReplicated(t)
	lsn := j.Append(set("1:a", "1"))
	j.lead()
	j.mu.Lock()
	b := j.pending
	w, other := b.wait(), b.wait()
	j.mu.Unlock()
	j.resign()
	if len(w.lead) != 1 {
		t.Fatal("the lead was not offered")
	}
	if err := j.giveUp(b, w); err == nil || len(other.lead) != 1 {
		t.Fatalf("the other waiter is not offered the lead any more: %v", err)
	}
	if err := j.giveUp(b, other); err == nil {
		t.Fatal("no error")
	}
	done := make(chan error, 1)
	go func() { done <- j.Wait(lsn) }()
	received(t, asked)
	answers <- nil
	drill.Report(t, received(t, done))
	drill.Report(t, j.Close())
}
