package keyspace

import (
	"strings"
	"sync"
	"sync/atomic"
)

// partition is a share of all containers' items: those whose ids fall into its slots.
//
// Locks: mu protects all that is below it, and every table and entry of the partition. The
// catalogue of containers may be read while any partition's mu is held and changed while all are.
// Several are locked in ascending order of number.
type partition struct {
	number int
	store  *store       // only the start, checkpoints and compactions use it
	used   atomic.Int64 // bytes of memory that its items take, an estimate

	mu          sync.Mutex
	version     uint64   // of the last write; see nextVersion
	live        int64    // bytes that its items would take in a store of nothing else
	dirty       []*table // those with items that the store has to learn
	deleted     []string // keys of items that the store has and must not have; those of dropped containers among them
	lastWrite   Ticket   // covers all that was written
	lastRemoval Ticket   // covers all that is no longer there
	watchers    map[watchPoint][]*Watcher
}

// Versions are counted in each partition, the low byte being its number: unique in the keyspace
// without a shared counter. Every start begins at another multiple of versionLeap, its epoch, which is
// on disk before anything is written: so a version is never used again, whether its item is gone or a
// power cut took it back after a client had seen it.
const (
	maxPartitions = 256
	versionLeap   = 1 << 40
)

func (p *partition) nextVersion() uint64 {
	p.version += maxPartitions
	return p.version
}

func (p *partition) begin(epoch uint64) { p.version = epoch*versionLeap + uint64(p.number) }

// touch notes that the store has to learn the state of an entry of a table.
func (p *partition) touch(t *table, e *entry) {
	if e.has(dirty) {
		return
	}
	e.mark(dirty)
	t.dirty = append(t.dirty, t.handle(e))
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
		p.deleted = append(p.deleted, strings.Clone(e.key())) // the record's memory can go
	}
	t.slab.release(e.next)
}

// capture takes over what the store has to learn, as operations to be applied in order: deletes come
// first, for what is in a table now is newer than what was removed from it. live is p.live.
func (p *partition) capture() (ops []op, live int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.deleted)
	for _, t := range p.dirty {
		n += len(t.dirty)
	}
	ops = make([]op, 0, n)
	for _, key := range p.deleted {
		ops = append(ops, op{key: key, del: true})
	}
	for _, t := range p.dirty {
		if t.gone {
			t.dirty, t.listed = nil, false
			continue
		}
		t.stored = true
		for _, h := range t.dirty {
			// The entry may be another than the one that was put on the list, or nobody's: its own mark
			// counts. If it is on the list twice, it has lost the mark by the second time.
			e := t.slab.stale(h)
			if e == nil || !e.has(dirty) {
				continue
			}
			e.unmark(dirty)
			e.mark(stored)
			ops = append(ops, op{key: e.key(), rec: e.rec()})
		}
		t.dirty, t.listed = nil, false
	}
	p.dirty, p.deleted = nil, nil
	return ops, p.live
}
