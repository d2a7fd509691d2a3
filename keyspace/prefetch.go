package keyspace

import (
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
)

// A Prefetcher loads the memory that coming look-ups read into the processor's cache; see
// [memtable.Prefetcher]. It changes nothing and skips locked partitions. The zero value is ready. Not safe
// for concurrent use.
type Prefetcher struct {
	lookups memtable.Prefetcher
	pages   memtable.Prefetcher
	fields  []fieldLookup
	locked  locks.Some
}

// Lookup is an item that a command will look up in a container, with a field if it is a collection; "": with
// none, or that is not known.
type Lookup struct{ Container, ID, Field string }

// fieldLookup is a field of an item that may be a collection.
type fieldLookup struct {
	lookup int // of the item
	t      *table
	field  string
}

// Prefetch reads prefetchBytes of a key and its record. The processor itself prefetches the rest of longer
// ones.
const prefetchBytes = 384

// BeyondCache reports whether the items take more memory than a processor's caches hold.
func (ks *Keyspace) BeyondCache() bool {
	left := int64(16 << 20) // bytes
	for _, p := range ks.partitions {
		if left -= p.Shard.Memory(); left < 0 {
			return true
		}
	}
	return false
}

// Prefetch prepares look-ups. The caller holds no lock.
func (w *Prefetcher) Prefetch(ks *Keyspace, list []Lookup) {
	defer w.reset()
	defer w.locked.Release()
	var c *Container
	for i := range list {
		l := &list[i]
		p := ks.partitionOf(l.ID)
		if !w.locked.Try(&p.Mu) {
			continue
		}
		if c == nil || c.name != l.Container {
			if c = ks.catalogue.ByName[l.Container]; c == nil {
				continue
			}
		}
		if t := c.tables[p.Number]; t != nil && t.Len() > 0 {
			w.lookups.Add(&t.Table, l.ID)
			if t.Pages != nil && l.Field != "" {
				w.fields = append(w.fields, fieldLookup{w.lookups.Len() - 1, t, l.Field})
			}
		}
	}
	w.lookups.Run(prefetchBytes)
	for _, f := range w.fields {
		if e := w.lookups.Found(f.lookup); e != nil && e.Collection() {
			f.t.Pages.Collections.Prefetch(&w.pages, f.t.Item(e).Body, f.field)
		}
	}
	w.pages.Run(prefetchBytes)
}

func (w *Prefetcher) reset() {
	w.lookups.Reset()
	w.pages.Reset()
	clear(w.fields)
	w.fields = w.fields[:0]
}
