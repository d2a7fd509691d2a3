package keyspace

import (
	"slices"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/replica"
)

// Digest returns the digest of the living items and of all containers at the time of the position, the number
// of items of listed containers, and the position. Nodes at the same position have the same digest. It is
// that of one moment only if nothing is written meanwhile.
func (ks *Keyspace) Digest() (sum [32]byte, items int64, at replica.Position) {
	at = ks.Position()
	sum, items = ks.DigestAt(at.Moment)
	return sum, items, at
}

// DigestAt is [Keyspace.Digest] of what lives at a time in ms that has not passed on any node: so it does not
// tell how far their purges are.
func (ks *Keyspace) DigestAt(now int64) (sum [32]byte, items int64) {
	var d replica.Digest
	for _, c := range ks.containers() {
		p := ks.partitions[0]
		p.Mu.Lock()
		rec := c.record()
		listed := c.aside == nil && c.hidden == nil
		p.Mu.Unlock()
		d.Add(string(rec.Append(nil)))
		for _, p := range ks.partitions {
			n := addTo(&d, p, c, now)
			if listed {
				items += n
			}
		}
	}
	return d.Sum(), items
}

// containers returns all containers.
func (ks *Keyspace) containers() []*Container {
	p := ks.partitions[0]
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Collect(ks.catalogue.All())
}

// addTo adds the items of a container in the partition that live at a moment to a digest, and returns their
// number. It locks the partition for some items at a time.
func addTo(d *replica.Digest, p *partition, c *Container, now int64) (n int64) {
	for below, more := uint64(0), true; more; {
		more = false
		p.Mu.Lock()
		if t := c.tables[p.Number]; t != nil {
			left := 256
			t.Descend(below, func(seq uint64, e *memtable.Entry) bool {
				below, more = seq, true
				if dead := c.Policy().DeadLimits(now); !e.Within(dead) && !(e.Collection() && t.IsHollow(e, dead)) {
					d.Add(t.KeyAndRecord(e))
					n++
					left -= addPages(d, t, e)
				}
				left--
				return left > 0
			})
		}
		p.Mu.Unlock()
	}
	return n
}

// addPages adds the pages of a key to a digest, and returns their number.
func addPages(d *replica.Digest, t *table, e *memtable.Entry) (n int) {
	c := collectionOf(t, e)
	if c == nil {
		return 0
	}
	for page := range t.Pages.Collections.Pages(c) {
		d.Add(t.Pages.KeyAndRecord(page))
		n++
	}
	return n
}
