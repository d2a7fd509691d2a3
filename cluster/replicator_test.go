package cluster

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mayfly/cluster/entry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
)

// proposed is what the loop of a test gets.
type proposed struct {
	session, lsn uint64
	batch        string
}

// testReplicator is a replicator with a loop that the test plays.
type testReplicator struct {
	*replicator
	proposals chan proposed
	barriers  chan uint64
}

func newTestReplicator() *testReplicator {
	t := &testReplicator{proposals: make(chan proposed, 16), barriers: make(chan uint64, 16)}
	t.replicator = newReplicator(clock.Monotonic)
	t.patience = drill.Patience
	t.propose = func(session, lsn uint64, batch *proposal) {
		e, err := entry.Decode(batch.data)
		if err != nil || e.Session != session || e.LSN != lsn {
			panic(fmt.Sprintf("a proposal of session %d, lsn %d: %v, %v", session, lsn, e, err))
		}
		t.proposals <- proposed{session, lsn, string(e.Batch)}
		batch.free()
	}
	t.barrier = func(number uint64) { t.barriers <- number }
	return t
}

// replicated is what Replicate has returned.
type replicated struct {
	tail replica.Tail
	err  error
}

// start calls Replicate, and spoils the batch afterwards.
func (r *testReplicator) start(lsn uint64, batch string) <-chan replicated {
	result := make(chan replicated, 1)
	go func() {
		text := []byte(batch)
		tail, err := r.Replicate(lsn, 1, text, 0)
		clear(text)
		result <- replicated{tail, err}
	}()
	return result
}

func tailAt(index uint64) replica.Tail { return replica.Tail{Position: replica.Position{Index: index}} }

func TestReplicateReturnsTheTail(t *testing.T) {
	t.Parallel()
	r := newTestReplicator()
	r.open(7)
	result := r.start(1, "set a")
	if got, want := receive(t, r.proposals), (proposed{7, 1, "set a"}); got != want {
		t.Fatalf("proposed %v, want %v", got, want)
	}
	for _, other := range []proposed{{session: 6, lsn: 1}, {session: 7, lsn: 2}} {
		if r.committed(other.session, other.lsn, tailAt(9)) {
			t.Errorf("%v counts as the batch in flight", other)
		}
	}
	if !r.committed(7, 1, tailAt(5)) {
		t.Error("the batch in flight is not recognised")
	}
	if got := receive(t, result); got.err != nil || got.tail.Index != 5 {
		t.Errorf("got %v", got)
	}
}

// A call that has failed for want of a majority is repeated. The batch is proposed once, and a commit between
// the calls is found.
func TestReplicateProposesOnce(t *testing.T) {
	t.Parallel()
	r := newTestReplicator()
	r.open(7)
	r.patience = time.Millisecond
	for range 3 {
		if got := receive(t, r.start(1, "set a")); !errors.Is(got.err, replica.ErrNoMajority) {
			t.Fatalf("without a majority: %v", got)
		}
	}
	receive(t, r.proposals)
	if !r.committed(7, 1, tailAt(5)) {
		t.Error("the batch is not recognised between two calls")
	}
	r.patience = drill.Patience
	if got := receive(t, r.start(1, "set a")); got.err != nil || got.tail.Index != 5 {
		t.Errorf("got %v", got)
	}
	if len(r.proposals) != 0 {
		t.Errorf("proposed again: %v", <-r.proposals)
	}
}

// An attempt ends at the time that its command has, and the batch stays in flight with the rest of its
// patience.
func TestReplicateUntil(t *testing.T) { inBubble(t, testReplicateUntil) }

func testReplicateUntil(t *testing.T) {
	r := newTestReplicator()
	r.open(7)
	for _, until := range []time.Duration{clock.Monotonic(), clock.Monotonic() + r.patience/2} {
		if _, err := r.Replicate(1, 1, []byte("set a"), until); !errors.Is(err, replica.ErrNoMajority) {
			t.Fatalf("until %v: %v", until, err)
		}
		if err := r.Confirm(until); !errors.Is(err, replica.ErrNoMajority) {
			t.Fatalf("until %v: %v", until, err)
		}
	}
	result := r.start(1, "set a")
	drill.Pass(r.patience/2 - 1)
	if len(result) > 0 {
		t.Fatalf("the next attempt: %v", <-result)
	}
	r.committed(7, 1, tailAt(5))
	if got := receive(t, result); got.err != nil || got.tail.Index != 5 {
		t.Errorf("got %v", got)
	}
	if len(r.proposals) != 1 {
		t.Errorf("proposed %d times", len(r.proposals))
	}
}

// An attempt that follows one in vain does not wait as long again, until another session has begun: a client
// that came during the first attempt has its reply soon after that.
func TestReplicateLate(t *testing.T) { inBubble(t, testReplicateLate) }

func testReplicateLate(t *testing.T) {
	r := newTestReplicator()
	r.patience = patience
	r.open(7)
	late := func(when string) {
		t.Helper()
		begin := time.Now()
		if got := receive(t, r.start(1, "set a")); !errors.Is(got.err, replica.ErrNoMajority) {
			t.Fatalf("%s: %v", when, got)
		}
		if took := time.Since(begin); took != r.patience/lateShare {
			t.Errorf("%s: the next attempt waits for %v", when, took)
		}
	}
	if got := receive(t, r.start(1, "set a")); !errors.Is(got.err, replica.ErrNoMajority) {
		t.Fatalf("without a majority: %v", got)
	}
	late("in the session")
	r.shut()
	late("without a session")
	r.open(9)
	result := r.start(1, "set a")
	drill.Pass(r.patience - 1)
	if len(result) > 0 {
		t.Fatalf("in another session: %v before its patience has ended", <-result)
	}
	r.committed(9, 1, tailAt(6))
	if got := receive(t, result); got.err != nil || got.tail.Index != 6 {
		t.Errorf("got %v", got)
	}
}

// The next session of the node proposes a batch again that the one before has not committed.
func TestReplicateInTheNextSession(t *testing.T) {
	t.Parallel()
	r := newTestReplicator()
	r.open(7)
	result := r.start(1, "set a")
	receive(t, r.proposals)
	r.shut()
	r.open(9)
	if got, want := receive(t, r.proposals), (proposed{9, 1, "set a"}); got != want {
		t.Fatalf("proposed %v, want %v", got, want)
	}
	if r.committed(7, 1, tailAt(5)) {
		t.Error("the void batch counts as committed")
	}
	r.committed(9, 1, tailAt(6))
	if got := receive(t, result); got.err != nil || got.tail.Index != 6 {
		t.Errorf("got %v", got)
	}
}

func TestReplicateAfterRetract(t *testing.T) {
	t.Parallel()
	r := newTestReplicator()
	r.open(7)
	result := r.start(1, "set a")
	first := receive(t, r.proposals)
	r.retract(7, 1)
	if second := receive(t, r.proposals); second != first {
		t.Errorf("proposed %v, then %v", first, second)
	}
	r.end()
	if got := receive(t, result); !errors.Is(got.err, replica.ErrVoid) {
		t.Errorf("at the end of the incarnation: %v", got)
	}
	if got := receive(t, r.start(1, "set a")); !errors.Is(got.err, replica.ErrVoid) {
		t.Errorf("after the end of the incarnation: %v", got)
	}
}

func TestConfirmByLease(t *testing.T) { inBubble(t, testConfirmByLease) }

func testConfirmByLease(t *testing.T) {
	r := newTestReplicator()
	confirm := func() <-chan error {
		result := make(chan error, 1)
		go func() { result <- r.Confirm(0) }()
		return result
	}
	if err := r.Confirm(0); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("without a session: %v", err)
	}
	r.open(7)
	r.extend(clock.Monotonic() + 100)
	drill.Report(t, r.Confirm(0))
	drill.Pass(100)
	late := confirm()
	synctest.Wait()
	select {
	case err := <-late:
		t.Errorf("after the end of the lease: %v", err)
	default:
	}
	r.extend(clock.Monotonic() + 100)
	drill.Report(t, receive(t, late))
	drill.Pass(100)
	late = confirm()
	r.shut()
	if err := receive(t, late); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("a deposed leader: %v", err)
	}
}

// eachWithoutLease runs a test with a replicator that uses no leases, and with one whose term has none.
func eachWithoutLease(t *testing.T, test func(t *testing.T, r *testReplicator)) {
	for _, readIndex := range []bool{true, false} {
		t.Run(fmt.Sprint("read index ", readIndex), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newTestReplicator()
				r.readIndex = readIndex
				test(t, r)
			})
		})
	}
}

// A read is confirmed by a barrier that began after it. Reads during a barrier share the next one.
func TestConfirmByBarrier(t *testing.T) { eachWithoutLease(t, testConfirmByBarrier) }

func testConfirmByBarrier(t *testing.T, r *testReplicator) {
	r.open(7)
	results := make(chan error, 10)
	confirm := func() { results <- r.Confirm(0) }
	go confirm()
	first := receive(t, r.barriers)
	var group sync.WaitGroup
	for range 5 {
		group.Go(confirm)
	}
	synctest.Wait()
	r.answered(first)
	drill.Check(t, receive(t, results))
	second := receive(t, r.barriers)
	if second == first || len(results) != 0 {
		t.Fatalf("barriers %d and %d, %d reads are confirmed too early", first, second, len(results))
	}
	r.answered(second)
	group.Wait()
	for range 5 {
		drill.Report(t, <-results)
	}
	if len(r.barriers) > 0 {
		t.Errorf("barrier %d serves no read", <-r.barriers)
	}
}

// The answer to a barrier of an earlier session confirms nothing.
func TestConfirmAcrossSessions(t *testing.T) { eachWithoutLease(t, testConfirmAcrossSessions) }

func testConfirmAcrossSessions(t *testing.T, r *testReplicator) {
	r.open(7)
	early := make(chan error, 1)
	go func() { early <- r.Confirm(0) }()
	stale := receive(t, r.barriers)
	r.shut()
	r.open(9)
	if err := receive(t, early); err == nil {
		t.Error("a read of the session before is confirmed")
	}
	late := make(chan error, 1)
	go func() { late <- r.Confirm(0) }()
	fresh := receive(t, r.barriers)
	r.answered(stale)
	synctest.Wait()
	select {
	case err := <-late:
		t.Errorf("confirmed by the barrier of the session before: %v", err)
	default:
	}
	r.answered(fresh)
	drill.Report(t, receive(t, late))
}
