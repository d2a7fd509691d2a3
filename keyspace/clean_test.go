package keyspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestClean: overwritten items take little memory, and next to none after Clean. A transaction that has
// locked something does not clean.
func TestClean(t *testing.T) {
	t.Parallel()
	ks := open(t)
	var tx Tx
	put := func(round int) {
		for i := range 4000 {
			id := fmt.Sprint(i * 7919 % 4000)
			ks.BeginKey(&tx, id)
			tx.Put(tx.Container("plain"), id, Plain, strings.Repeat(string(rune('a'+round)), 100), expiry.Never)
			ks.Wait(tx.Close())
		}
	}
	ks.BeginAll(&tx)
	tx.CreateContainer("plain", expiry.Off, 0)
	tx.Close()
	for round := range 5 {
		put(round)
	}
	before := ks.Garbage()
	if before == 0 {
		t.Fatal("no garbage although all items were overwritten")
	}
	ks.BeginAll(&tx)
	tx.Clean()
	if now := ks.Garbage(); now != before {
		t.Errorf("%d bytes of garbage were %d: a locked partition was cleaned", now, before)
	}
	tx.Close()
	ks.Clean()
	if now := ks.Garbage(); now > before/4 {
		t.Errorf("%d bytes of garbage were %d", now, before)
	}
	drill.Report(t, ks.Check())
	ks.BeginSweep(&tx)
	cursor, n := uint64(0), 0
	for more := true; more; more = cursor != 0 {
		cursor = tx.Scan(tx.Container("plain"), cursor, 100, func(id string, it Item) {
			if n++; it.Body != strings.Repeat("e", 100) {
				t.Errorf("%q is %q", id, it.Body)
			}
		})
	}
	tx.Close()
	if n != 4000 {
		t.Errorf("%d items", n)
	}
}

// TestCleanDoesNotWait: a transaction that holds a partition does not wait for another to clean it.
func TestCleanDoesNotWait(t *testing.T) {
	t.Parallel()
	ks := open(t)
	for i := range 100 {
		ks.put("0", fmt.Sprint(i), "x", expiry.Never)
	}
	first, last := idIn(ks, 0), idIn(ks, len(ks.partitions)-1)
	var holder, cleaner Tx
	ks.BeginKey(&holder, first)
	ks.BeginKey(&cleaner, last)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cleaner.Clean()
		cleaner.Close()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("waits for a partition while it holds another")
	}
	holder.Close()
	<-done
}

// idIn returns an id of a partition.
func idIn(ks *opened, number int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint(i); ks.partitionOf(id).Number == number {
			return id
		}
	}
}
