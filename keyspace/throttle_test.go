package keyspace

import (
	"strings"
	"testing"

	"mayfly/expiry"
)

// TestThrottle: while much waits to be committed, Throttle commits; otherwise it does nothing.
func TestThrottle(t *testing.T) {
	o := open(t)
	// No checkpoint commits meanwhile.
	o.stopBackground()
	value := strings.Repeat("x", 4<<20)
	most := int64(0)
	for range 3 * maxWaiting / len(value) {
		o.Throttle()
		var tx Tx
		o.BeginKey(&tx, "k")
		tx.Put(tx.Container("0"), "k", Plain, value, expiry.Inherit)
		tx.Close() // without a wait
		most = max(most, o.journal.Waiting())
	}
	if limit := int64(maxWaiting + len(value) + 1<<10); most > limit || most < maxWaiting {
		t.Errorf("up to %d bytes waited, want about %d", most, maxWaiting)
	}
}

// TestHaltWhileATransactionRuns: Halt keeps all writes although a transaction runs and never ends.
func TestHaltWhileATransactionRuns(t *testing.T) {
	o := open(t)
	var tx, running Tx
	o.BeginKey(&tx, "k")
	tx.Put(tx.Container("0"), "k", Plain, "v", expiry.Inherit)
	lsn := tx.Close()
	o.BeginAll(&running)
	err := o.Halt()
	running.Close()
	if err != nil || !o.Committed(lsn) {
		t.Fatalf("%v; committed: %v", err, o.Committed(lsn))
	}
}
