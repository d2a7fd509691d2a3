package keyspace

import (
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/storage"
)

// TestThrottle: while much waits to be committed, Throttle commits; otherwise it does nothing.
func TestThrottle(t *testing.T) {
	t.Parallel()
	o := open(t)
	// No checkpoint commits meanwhile.
	o.stopBackground()
	value := strings.Repeat("x", 4<<20)
	most := int64(0)
	for range 3 * storage.MaxWaiting / len(value) {
		o.Throttle(0)
		var tx Tx
		o.BeginKey(&tx, "k")
		tx.Put(tx.Container("0"), "k", Plain, value, expiry.Inherit)
		tx.Close() // without a wait
		most = max(most, o.journal.Waiting())
	}
	if limit := int64(storage.MaxWaiting + len(value) + 1<<10); most > limit || most < storage.MaxWaiting {
		t.Errorf("up to %d bytes waited, want about %d", most, storage.MaxWaiting)
	}
}

// TestHaltWhileATransactionRuns: Halt keeps all writes although a transaction runs and never ends.
func TestHaltWhileATransactionRuns(t *testing.T) {
	t.Parallel()
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
