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
	store  *store       // has its own locking; only the checkpoint and the start use it
	used   atomic.Int64 // bytes of memory that its items take, an estimate

	mu          sync.Mutex
	version     uint64   // of the last write; see nextVersion
	dirty       []*entry // what the store has to learn, in order; entries gone for good among them
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
func (p *partition) touch(e *entry) {
	if !e.dirty {
		e.dirty = true
		p.dirty = append(p.dirty, e)
	}
}

// forget notes that an entry has been removed from its table. What never reached the store need not
// be deleted there: documents that die young cost it nothing.
func (p *partition) forget(e *entry) {
	e.gone = true
	p.lastRemoval = max(p.lastRemoval, e.ticket)
	if e.stored {
		e.key = strings.Clone(e.key) // the record's memory can go
		p.touch(e)
	} else {
		e.key = ""
	}
	e.rec = ""
}

// capture takes over what the store has to learn, as operations to be applied in order.
func (p *partition) capture() []op {
	p.mu.Lock()
	defer p.mu.Unlock()
	ops := make([]op, 0, len(p.dirty))
	for _, e := range p.dirty {
		e.dirty = false
		switch {
		case !e.gone:
			ops = append(ops, op{key: e.key, rec: e.rec})
			e.stored = true
		case e.stored:
			ops = append(ops, op{key: e.key, del: true})
		}
	}
	p.dirty = nil
	return ops
}
