package keyspace

// A Prefetcher makes look-ups that are about to come cheaper. In a large keyspace each of them waits for
// memory four or five times, one after the other: for the index, the entry, the key, the body. Those
// of many ids wait side by side if they are walked step by step together, and the processor's cache
// then has what the look-ups themselves ask for.
//
// It is advice only: it changes nothing, tells nothing, and may leave out what somebody else has
// locked. Its zero value is ready. Not safe for concurrent use.
type Prefetcher struct {
	list   []sought
	locked []*partition
	seen   uint64 // keeps the reading from being optimised away
}

// sought is an id on its way through a table.
type sought struct {
	t    *table
	hash uint32
	h    handle
	e    *entry
}

// warmBytes of a key and its record are fetched: longer ones are read on by the processor by itself.
const warmBytes, cacheLine = 384, 64

// BeyondCache tells whether the items take more memory than a processor's caches hold.
func (ks *Keyspace) BeyondCache() bool {
	const cache = 16 << 20                                                // bytes
	return ks.partitions[0].used.Load()*int64(len(ks.partitions)) > cache // they share evenly
}

// Prefetch fetches what looking up these ids, each in the container of the name beside it, will read. No
// lock may be held.
func (w *Prefetcher) Prefetch(ks *Keyspace, containers, ids []string) {
	defer w.unlock()
	var c *Container
	for i, id := range ids {
		p := ks.partitionOf(id)
		if !w.lock(p) {
			continue
		}
		if c == nil || c.name != containers[i] {
			if c = ks.catalogue.byName[containers[i]]; c == nil {
				continue
			}
		}
		if t := c.tables[p.number]; t != nil && t.index.n > 0 {
			w.list = append(w.list, sought{t: t, hash: hashOf(id)})
		}
	}
	w.walk(warmBytes)
}

// lock makes sure that a partition is locked, unless that would have to be waited for.
func (w *Prefetcher) lock(p *partition) bool {
	for _, have := range w.locked {
		if have == p {
			return true
		}
	}
	if !p.mu.TryLock() {
		return false
	}
	w.locked = append(w.locked, p)
	return true
}

func (w *Prefetcher) unlock() {
	for _, p := range w.locked {
		p.mu.Unlock()
	}
	clear(w.locked)
	clear(w.list)
	w.locked, w.list = w.locked[:0], w.list[:0]
}

// walk takes all of the list one step after the other, as find does with one, and fetches so many bytes of the
// records. Nothing in a step depends on what memory has to say about another id: so all are asked for at once.
func (w *Prefetcher) walk(bytes int) {
	for i := range w.list {
		s := &w.list[i]
		s.h = *s.t.index.bucket(s.hash)
	}
	for i := range w.list {
		if s := &w.list[i]; s.h != 0 {
			s.e = s.t.slab.at(s.h)
			w.seen += uint64(s.e.hash)
		}
	}
	for i := range w.list {
		s := &w.list[i]
		for s.e != nil && s.e.hash != s.hash {
			if s.e.next == 0 {
				s.e = nil
			} else {
				s.e = s.t.slab.at(s.e.next)
			}
		}
	}
	for i := range w.list {
		if s := &w.list[i]; s.e != nil {
			text := s.t.text(s.e)
			for at := 0; at < len(text) && at < bytes; at += cacheLine {
				w.seen += uint64(text[at])
			}
		}
	}
}
