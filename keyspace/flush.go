package keyspace

import "math"

// DefaultMaxContainers is the limit on containers until [Keyspace.SetMaxContainers].
const DefaultMaxContainers = 100_000

// SetMaxContainers limits the containers besides the databases 0 to 15; 0: no limit. It concerns new ones only.
func (ks *Keyspace) SetMaxContainers(n int) { ks.maxContainers.Store(int64(n)) }

// ContainersFull reports whether no more containers may be made, and the limit.
func (tx *Tx) ContainersFull() (limit int, full bool) {
	limit = int(tx.ks.maxContainers.Load())
	tx.readCatalogue(func(cat *catalogue) { full = limit > 0 && len(cat.List())-Databases >= limit })
	return limit, full
}

// FlushAll empties all containers. Empty ones cost nothing; each of the others costs some microseconds, however many
// items it has. All change at one moment, so the locks are held until the last one. It needs BeginAll.
func (tx *Tx) FlushAll() {
	for _, t := range tx.ks.tables.Some(nil, 0, math.MaxInt) {
		if !t.Gone() && t.C.hidden == nil {
			tx.Flush(t.C) // which detaches its other tables too
		}
	}
}
