package keyspace

import (
	"fmt"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

func TestEvictDeletesTheNearestToDeath(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	o.policy("c", 500)
	const n = 400
	for i := range n {
		o.putFor("c", fmt.Sprint("soon-", i), expiry.TTL(10+i))
		o.put("c", fmt.Sprint("default-", i), "{}", expiry.Inherit) // in 500 s
		o.put("c", fmt.Sprint("never-", i), "{}", expiry.Never)
	}
	full := o.Used()
	nearest := 0
	_, ok := o.Evict(full*5/6, func(c *Container, id string) {
		if c.Name() != "c" || id[:4] == "neve" {
			t.Fatalf("%s/%s was evicted", c.Name(), id)
		}
		var number int
		if _, err := fmt.Sscanf(id, "soon-%d", &number); err == nil && number < n*3/4 {
			nearest++
		}
	})
	evicted := 3*n - o.count("c")
	if !ok || o.Used() > full*5/6 || evicted < n/3 || evicted > n {
		t.Fatalf("%v: %d of %d bytes are used, %d were evicted", ok, o.Used(), full, evicted)
	}
	if nearest < evicted*3/4 {
		t.Errorf("of %d evicted only %d were among the nearest to death", evicted, nearest)
	}
	if _, ok := o.Evict(0, func(*Container, string) {}); ok || o.count("c") != n {
		t.Errorf("%v: %d are left of the %d that never die", ok, o.count("c"), n)
	}
}

func TestUsed(t *testing.T) {
	o := open(t)
	if o.Used() != 0 {
		t.Fatalf("an empty keyspace uses %d bytes", o.Used())
	}
	o.policy("c", expiry.Forever)
	empty := o.Used()
	if empty < containerOverhead {
		t.Fatalf("an empty container takes %d bytes", empty)
	}
	o.put("c", "a", `{"some":"thing"}`, expiry.Inherit)
	one := o.Used()
	if one < empty+memtable.TableOverhead+memtable.ItemOverhead {
		t.Fatalf("%d bytes", one)
	}
	o.put("c", "{a}b", "{}", expiry.Inherit)
	o.delete("c", "{a}b")
	if o.Used() != one {
		t.Fatalf("%d bytes after a put and a delete, %d before", o.Used(), one)
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	if o.Used() != 0 {
		t.Fatalf("%d bytes after the drop", o.Used())
	}
}
