package storage

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/keyspace/store"
	_ "mayfly/test/drill" // its flags
)

// A compaction does not rest while it delays a checkpoint.
func TestNoRestsWhileTheJournalWaits(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.Options.Pace = 1 << 20
	start := time.Now()
	e.compactionPacer(e.catalogue, store.DefaultCompaction).Wrote(store.StepBytes)
	if rested := time.Since(start); rested < time.Second*store.StepBytes/(1<<20) {
		t.Errorf("it rests for %v although the journal is small", rested)
	}
	e.Journal.SetLimit(e.Journal.Size() / 2)
	start = time.Now()
	e.compactionPacer(e.catalogue, store.DefaultCompaction).Wrote(10 << 20)
	if rested := time.Since(start); rested > 5*time.Second {
		t.Errorf("it rests for %v although the journal waits", rested)
	}
}

// A compaction that begins is under way at every moment: a client that waits for its end does not stop
// waiting.
func TestCompactionIsUnderWay(t *testing.T) {
	t.Parallel()
	var state compactionState
	var asked, begun atomic.Int64
	var other sync.WaitGroup
	other.Go(func() {
		for n := int64(1); ; {
			switch asked.Load() {
			case n:
				state.begin()
				begun.Store(n)
				n++
			case -1:
				return
			}
		}
	})
	rounds, missed := int64(0), 0
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		rounds++
		state.running.Store(false)
		state.all.Store(true)
		asked.Store(rounds)
		for begun.Load() < rounds {
			if !state.underWay() {
				missed++
			}
		}
	}
	asked.Store(-1)
	other.Wait()
	if missed > 0 {
		t.Errorf("%d times in %d rounds a compaction was not under way while it began", missed, rounds)
	}
}
