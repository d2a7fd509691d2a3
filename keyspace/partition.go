package keyspace

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mayfly/keyspace/record"
)

// partition is a share of all containers' items: those whose ids fall into its slots.
//
// Locks: mu protects all that is below it, and every table and entry of the partition. The
// catalogue of containers may be read while any partition's mu is held and changed while all are.
// Several are locked in ascending order of number.
type partition struct {
	number  int
	store   *store       // only the start, checkpoints and compactions use it
	used    atomic.Int64 // bytes of memory that its items take, an estimate
	garbage atomic.Int64 // bytes of the dead texts in the arenas of its tables

	mu          sync.Mutex
	tables      map[uint32]*table // by the numbers of their containers
	version     uint64            // of the last write; see nextVersion
	live        int64             // bytes that its items would take in a store of nothing else
	dirty       []*table          // those with items that the store has to learn
	taken       []*table          // those of them that capture has taken over and not come to, or not done with
	deleted     []string          // keys of items that the store has and must not have; see also catalogue.dropped
	lastWrite   LSN               // covers all that was written
	lastRemoval LSN               // covers all that is no longer there
	watchers    map[watchPoint][]*Watcher
	untidy      []*table // those with arenas that are wasteful
}

// Versions are counted in each partition, the low byte being its number: unique in the keyspace
// without a shared counter. Every start begins at another multiple of versionLeap, its epoch, which is
// on disk before anything is written: so a version is never used again, whether its item is gone or a
// power cut took it back after a client had seen it.
const versionLeap = 1 << 40

func (p *partition) nextVersion() uint64 {
	p.version += record.MaxPartitions
	return p.version
}

func (p *partition) begin(epoch uint64) { p.version = epoch*versionLeap + uint64(p.number) }

// adopt makes a table one of the partition's.
func (p *partition) adopt(t *table) {
	if p.tables == nil {
		p.tables = make(map[uint32]*table)
	}
	p.tables[t.number] = t
}

// touch notes that the store has to learn the state of an entry of a table.
func (p *partition) touch(t *table, h handle, e *entry) {
	if e.has(dirty) {
		return
	}
	e.mark(dirty)
	t.dirty = append(t.dirty, h)
	if !t.listed {
		t.listed = true
		p.dirty = append(p.dirty, t)
	}
}

// forget notes that an entry has been removed from its table, and releases it. What never reached the
// store need not be deleted there: documents that die young cost it nothing.
func (p *partition) forget(t *table, e *entry) {
	p.lastRemoval = max(p.lastRemoval, e.ticket)
	if e.has(stored) {
		p.deleted = append(p.deleted, strings.Clone(t.key(e))) // the record's memory can go
	}
	t.drop(e.text)
	t.slab.release(e.next)
}

// pieces are what a checkpoint captures in, lest others wait long for a partition.
type pieces struct {
	size    int    // how much is captured while a partition stays locked
	between func() // called between two pieces: lets others run
}

// capturePieces are the usual ones: they take a fraction of a ms.
var capturePieces = pieces{size: 256, between: runtime.Gosched}

// capture takes over what the store has to learn, as operations to be applied in order; live is p.live.
//
// Each piece is of one moment: first all deletes there are, for what is in a table now is newer than what has
// been removed from it; then the sets of some items. A delete that waited longer, until its item has come back
// and been captured, would be applied after that.
//
// Of what is written meanwhile only that counts whose place on a list is still to come: so there is an end.
func (p *partition) capture(in pieces) (ops []op, live int64) {
	p.mu.Lock()
	p.taken, p.dirty = p.dirty, nil
	live = p.live
	p.mu.Unlock()
	sets := make([]op, 0, in.size)
	for more := true; more; {
		var deleted []string
		deleted, sets, more = p.capturePiece(sets[:0], in.size)
		ops = slices.Grow(ops, len(deleted)+len(sets))
		for _, key := range deleted {
			ops = append(ops, op{key: key, del: true})
		}
		ops = append(ops, sets...)
		in.between()
	}
	return ops, live
}

// capturePiece takes over the deletes, and appends the sets of some items. more tells whether there are others.
func (p *partition) capturePiece(sets []op, size int) (deleted []string, _ []op, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deleted, p.deleted = p.deleted, nil
	for room := size; room > 0 && len(p.taken) > 0; room-- {
		t := p.taken[0]
		if t.taken == nil {
			t.taken, t.dirty, t.listed = t.dirty, nil, false
		}
		if t.gone {
			t.taken = nil
		}
		n := min(room, len(t.taken))
		sets = t.capture(t.taken[:n], sets)
		room -= n
		if t.taken = t.taken[n:]; len(t.taken) == 0 {
			t.taken, p.taken = nil, p.taken[1:]
		}
	}
	return deleted, sets, len(p.taken) > 0
}

// capture appends the sets of those entries that are still to be stored.
func (t *table) capture(list []handle, sets []op) []op {
	for _, h := range list {
		// The entry may be another than the one that was put on the list, or nobody's: its own mark
		// counts. If it is on the list twice, it has lost the mark by the second time.
		e := t.slab.stale(h)
		if e == nil || !e.has(dirty) {
			continue
		}
		e.unmark(dirty)
		e.mark(stored)
		t.stored = true
		sets = append(sets, op{key: t.key(e), rec: t.rec(e)})
	}
	return sets
}

// captureGone appends the deletes of all that the store has, or is being given, of a table whose container is
// gone.
func (t *table) captureGone(in pieces, ops []op) []op {
	for chunk, more := 0, true; more; in.between() {
		t.p.mu.Lock()
		for room := in.size; room > 0 && chunk < len(t.slab.chunks); chunk++ {
			entries := t.slab.chunks[chunk].entries
			for i := range entries {
				if e := &entries[i]; e.has(stored) {
					ops = append(ops, op{key: t.key(e), del: true})
				}
			}
			room -= 1 + len(entries)
		}
		more = chunk < len(t.slab.chunks)
		t.p.mu.Unlock()
	}
	return ops
}
