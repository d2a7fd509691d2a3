package keyspace

import (
	"mayfly/expiry"
)

// pool is what the active purge draws samples from: a container's part in a partition.
type pool struct {
	ks *Keyspace
	p  *partition
	c  *Container
}

// Sample draws up to n random items that could be dead and removes those that are. It holds the
// partition's lock for that long.
func (o pool) Sample(n int) (drawn, dead int) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	if t == nil {
		return 0, 0
	}
	return t.sample(o.c.Policy(), o.ks.Now(), n, o.p.forget)
}

// PurgeOnce runs one slow cycle of the active purge; tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() { ks.purge.Slow() }

// pools lists what may hold dead items now.
func (ks *Keyspace) pools() []expiry.Pool {
	var tx Tx
	ks.BeginSweep(&tx)
	var list []expiry.Pool
	for _, c := range tx.Containers() {
		for _, p := range ks.partitions {
			list = append(list, pool{ks, p, c})
		}
	}
	tx.Close()
	return list
}
