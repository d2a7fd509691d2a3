package keyspace

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/keyspace/watch"
)

// partition has a share of all containers' items: those with ids of its slots.
//
// Locks: mu protects everything below it, and every table and entry of the partition. The catalogue of containers
// is read while any partition's mu is held and changed while all are. Partitions are locked in ascending order of
// number.
type partition struct {
	number int
	store  *store.Store // used by the start, checkpoints and compactions only

	long atomic.Bool // the holder of mu may keep it for long: see Tx.MarkLong

	mu          sync.Mutex
	shard       memtable.Shard // its Memory and Garbage need no lock
	version     uint64         // of the last write; see nextVersionLocked
	lastWrite   LSN            // covers every write
	lastRemoval LSN            // covers every removal
	watchers    watch.Lists[*Container]
}

func newPartition(number int) *partition {
	p := &partition{number: number, version: uint64(number)}
	p.shard.SetSize = aof.SetSize
	return p
}

// versionLeap is the distance between the versions of two epochs. Each partition counts versions, with its number in
// the low byte. So they are unique without a shared counter. Every start begins a new epoch, which is on disk before
// anything is written. So no version is used again, even if a power cut took it back after a client had seen it.
const versionLeap = 1 << 40

// nextVersionLocked returns a new version. mu must be held.
func (p *partition) nextVersionLocked() uint64 {
	p.version += record.MaxPartitions
	return p.version
}

func (p *partition) begin(epoch uint64) { p.version = epoch*versionLeap + uint64(p.number) }

// releaseLocked releases an entry that was removed from its table. mu must be held.
func (p *partition) releaseLocked(t *table, e *memtable.Entry) {
	p.lastRemoval = max(p.lastRemoval, LSN(e.LSN()))
	t.Release(e)
}

// capturing controls how a checkpoint captures, so that others wait for a partition only briefly.
type capturing struct {
	piece   int    // items captured while a partition stays locked
	between func() // called between two pieces: lets others run
}

// captureInPieces is the usual way: a piece takes a fraction of a ms.
var captureInPieces = capturing{piece: 256, between: runtime.Gosched}

// capture returns the changes that the store lacks, in order. live is the number of bytes that the items take in
// the store. Each piece is the state of one moment.
func (p *partition) capture(in capturing) (ops []aof.Op, live int64) {
	p.mu.Lock()
	p.shard.BeginCapture()
	live = p.shard.LiveBytes()
	p.mu.Unlock()
	sets := make([]aof.Op, 0, in.piece)
	for more := true; more; {
		var deleted []string
		deleted, sets, more = p.capturePiece(sets[:0], in.piece)
		ops = slices.Grow(ops, len(deleted)+len(sets))
		for _, key := range deleted {
			ops = append(ops, aof.Op{Key: key, Del: true})
		}
		ops = append(ops, sets...)
		in.between()
	}
	return ops, live
}

// capturePiece returns the deletes and appends the sets of some items.
func (p *partition) capturePiece(sets []aof.Op, n int) (deleted []string, _ []aof.Op, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deleted, more = p.shard.Capture(n, func(key, rec, body string) { sets = append(sets, aof.Op{Key: key, Rec: rec, Body: body}) })
	return deleted, sets, more
}

// captureDropped appends the deletes of all stored items of a table whose container is dropped.
func (t *table) captureDropped(in capturing, ops []aof.Op) []aof.Op {
	for cursor, more := 0, true; more; in.between() {
		t.p.mu.Lock()
		cursor, more = t.EachStored(cursor, in.piece, func(key, _, _ string) { ops = append(ops, aof.Op{Key: key, Del: true}) })
		t.p.mu.Unlock()
	}
	return ops
}
