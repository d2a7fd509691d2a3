package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
)

// The purge does not wait for a transaction that takes long: others die meanwhile, and what it has locked
// soon afterwards.
func TestPurgePassesLongTransactions(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 1)
	const items = 64
	for i := range items {
		o.put("c", fmt.Sprint("id-", i), "{}", expiry.Inherit)
	}
	var long Tx
	o.BeginKey(&long, "id-0")
	long.MarkLong(true)
	o.clock.Advance(10 * time.Second)
	locked := 0
	for i := range items {
		if long.Covers(fmt.Sprint("id-", i)) {
			locked++
		}
	}
	removed := func() int { return int(o.Stats().Expiry.RemovedActively) }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 100 {
			o.PurgeOnce()
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the purge waits for a transaction")
	}
	if got := removed(); got != items-locked || locked == items {
		t.Errorf("%d of %d dead items are removed beside a transaction that has locked %d", got, items, locked)
	}
	long.Close()
	<-ended
	for i := 0; i < 100 && removed() < items; i++ {
		o.clock.Advance(20 * time.Millisecond)
		o.PurgeOnce()
	}
	if got := removed(); got != items {
		t.Errorf("%d of %d dead items are removed", got, items)
	}
}
