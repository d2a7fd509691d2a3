package memtable

// Prefetcher loads what several look-ups will read into the processor's cache. In a large table each look-up
// waits for memory four or five times in sequence: for the index, the entry, the key, the body. Walked step
// by step together, the look-ups wait side by side.
//
// The zero value is ready. A prefetcher is not safe for concurrent use.
type Prefetcher struct {
	lookups []lookup
	seen    uint64 // keeps the reads from being optimised away
}

// lookup is an id on its way through a table.
type lookup struct {
	t    *Table
	hash uint32
	h    Handle
	e    *Entry

	known bool // h, not the hash
}

// cacheLine is the size of a line of the processor's cache in bytes.
const cacheLine = 64

// Add adds the look-up of an id in a table.
func (p *Prefetcher) Add(t *Table, id string) {
	if t.index.n > 0 {
		p.lookups = append(p.lookups, lookup{t: t, hash: t.seed.hash(id)})
	}
}

// AddEntry adds an entry of a table.
func (p *Prefetcher) AddEntry(t *Table, h Handle) {
	p.lookups = append(p.lookups, lookup{t: t, h: h, known: true})
}

// Len returns the number of look-ups.
func (p *Prefetcher) Len() int { return len(p.lookups) }

// Found returns the entry that Run has found for a look-up, most likely that of its id; nil: there is none.
func (p *Prefetcher) Found(i int) *Entry { return p.lookups[i].e }

// Reset drops all look-ups.
func (p *Prefetcher) Reset() {
	clear(p.lookups)
	p.lookups = p.lookups[:0]
}

// Run does all look-ups step by step and reads that many bytes of each key and record. No step depends on
// what memory answers for another id, so the processor asks for all at once.
func (p *Prefetcher) Run(bytes int) {
	for i := range p.lookups {
		if l := &p.lookups[i]; !l.known {
			l.h = *l.t.index.bucket(l.hash)
		}
	}
	for i := range p.lookups {
		if l := &p.lookups[i]; l.h != 0 {
			l.e = l.t.slab.at(l.h)
			p.seen += uint64(l.e.hash)
		}
	}
	for i := range p.lookups {
		l := &p.lookups[i]
		for l.e != nil && l.e.hash != l.hash && !l.known {
			if l.e.next == 0 {
				l.e = nil
			} else {
				l.e = l.t.slab.at(l.e.next)
			}
		}
	}
	for i := range p.lookups {
		if l := &p.lookups[i]; l.e != nil {
			text := l.t.arena.view(l.e.data, l.e.allocated())
			for at := 0; at < len(text) && at < bytes; at += cacheLine {
				p.seen += uint64(text[at])
			}
		}
	}
}
