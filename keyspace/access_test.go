package keyspace

import (
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

func (o *opened) idle(id string) (ms int64) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	defer tx.Close()
	a, ok := tx.Accesses(tx.Container("c"), id)
	if !ok || a.LFU {
		o.t.Fatalf("%s: %+v, %v", id, a, ok)
	}
	return a.Idle
}

func (o *opened) frequency(id string) (n int) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	defer tx.Close()
	a, ok := tx.Accesses(tx.Container("c"), id)
	if !ok || !a.LFU {
		o.t.Fatalf("%s: %+v, %v", id, a, ok)
	}
	return a.Frequency
}

func (o *opened) access(id string) uint32 {
	var tx Tx
	o.BeginKey(&tx, id)
	defer tx.Close()
	t := tx.Container("c").tables[tx.partition(id).Number]
	h, _ := t.Lookup(id)
	return t.Access(h)
}

// Nothing is kept that nobody needs: until then the last access is the last write.
func TestAccessesAreKeptOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.put("c", "a", "{}", expiry.Inherit)
	o.clock.Advance(5 * time.Second)
	o.get("c", "a")
	if got, word := o.idle("a"), o.access("a"); got != 5000 || word != 0 {
		t.Errorf("idle for %d ms, the word is %d", got, word)
	}
	o.TrackAccesses()
	o.get("c", "a")
	if got := o.idle("a"); got != 0 {
		t.Errorf("idle for %d ms after a read", got)
	}
	o.clock.Advance(3 * time.Second)
	var tx Tx
	tx.KeepAccesses = true
	o.BeginKey(&tx, "a")
	tx.Get(tx.Container("c"), "a")
	tx.Close()
	if got := o.idle("a"); got != 3000 {
		t.Errorf("idle for %d ms after a read that keeps accesses", got)
	}
	o.put("c", "a", "[]", expiry.Inherit)
	if got := o.idle("a"); got != 0 {
		t.Errorf("idle for %d ms after a write", got)
	}
	o.delete("c", "a")
	o.put("c", "b", "{}", expiry.Inherit) // may take the place
	if word := o.access("b"); word != 0 {
		t.Errorf("a new item has the word %d", word)
	}
}

func TestFrequency(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.put("c", "old", "{}", expiry.Inherit)
	o.clock.Advance(time.Hour)
	o.evictBy(eviction.AllKeysLFU)
	o.put("c", "a", "{}", expiry.Inherit)
	if a, old := o.frequency("a"), o.frequency("old"); a != 5 || old != 5 {
		t.Errorf("new items have %d, old ones %d", a, old)
	}
	o.get("c", "a") // from the initial count the next is certain
	if got := o.frequency("a"); got != 6 {
		t.Errorf("%d after a read", got)
	}
	var tx Tx
	o.BeginKey(&tx, "old")
	tx.Get(tx.Container("c"), "old")
	tx.Put(tx.Container("c"), "old", Document, "[]", expiry.Inherit)
	o.commit(&tx)
	if got := o.frequency("old"); got != 6 {
		t.Errorf("%d after one command that reads and writes", got)
	}
	o.clock.Advance(2 * time.Minute)
	if got := o.frequency("a"); got != 4 {
		t.Errorf("%d two minutes later", got)
	}
	o.clock.Advance(time.Hour)
	if got := o.frequency("a"); got != 0 {
		t.Errorf("%d an hour later", got)
	}
}

// The accesses of one kind of policy mean nothing to another.
func TestAnotherPolicyForgetsAccesses(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.put("c", "a", "{}", expiry.Inherit)
	o.evictBy(eviction.VolatileLRU)
	o.clock.Advance(time.Hour)
	o.get("c", "a")
	o.evictBy(eviction.AllKeysLRU)
	if o.access("a") == 0 || o.idle("a") != 0 {
		t.Error("a policy of the same kind has forgotten the access")
	}
	o.evictBy(eviction.AllKeysLFU)
	if word, got := o.access("a"), o.frequency("a"); word != 0 || got != 5 {
		t.Errorf("LFU begins with the word %d and the frequency %d", word, got)
	}
	o.get("c", "a")
	o.evictBy(eviction.VolatileTTL)
	if word, got := o.access("a"), o.idle("a"); word != 0 || got != time.Hour.Milliseconds() {
		t.Errorf("without need the word is %d, idle for %d ms", word, got)
	}
}
