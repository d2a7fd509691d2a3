package storage

import (
	"slices"

	"mayfly/keyspace/aof"
)

// Captured returns the number of a partition's captured changes that are not confirmed in its store. The
// engine must be locked.
func (e *Engine) Captured(partition int) int {
	if e.checkpoint.captured == nil {
		return 0
	}
	return len(e.checkpoint.captured[partition])
}

// capturePartition returns the changes that the store lacks, in order. live is the number of bytes that the
// items take in the store. Each piece is the state of one moment.
func (e *Engine) capturePartition(p Partition) (ops []aof.Op, live int64) {
	p.Lock.Lock()
	ops = make([]aof.Op, 0, p.Shard.BeginCapture())
	live = p.Shard.LiveBytes()
	p.Lock.Unlock()
	for more := true; more; {
		ops, more = p.capturePiece(ops, e.Options.Piece)
		e.Options.Between()
	}
	return ops, live
}

// capturePiece appends the deletes and then the sets of some items.
func (p Partition) capturePiece(ops []aof.Op, n int) (_ []aof.Op, more bool) {
	p.Lock.Lock()
	defer p.Lock.Unlock()
	before := len(ops)
	deleted, more := p.Shard.Capture(n, func(key, rec, body string) { ops = append(ops, aof.Op{Key: key, Rec: rec, Body: body}) })
	if len(deleted) > 0 {
		deletes := make([]aof.Op, len(deleted))
		for i, key := range deleted {
			deletes[i] = aof.Op{Key: key, Del: true}
		}
		ops = slices.Insert(ops, before, deletes...)
	}
	return ops, more
}

// captureDropped appends the deletes of all stored items of a table whose container is dropped.
func (e *Engine) captureDropped(t Dropped, ops []aof.Op) []aof.Op {
	lock := e.partitions[t.Partition].Lock
	for cursor, more := 0, true; more; e.Options.Between() {
		lock.Lock()
		cursor, more = t.Table.EachStored(cursor, e.Options.Piece, func(key, _, _ string) { ops = append(ops, aof.Op{Key: key, Del: true}) })
		lock.Unlock()
	}
	return ops
}

// eachStored visits the items that the store has in their present state. It locks the partition for each
// piece.
func (e *Engine) eachStored(p Partition, visit func(aof.Op)) {
	p.Lock.Lock()
	tables := p.Shard.Tables()
	p.Lock.Unlock()
	var ops []aof.Op
	for _, t := range tables {
		for cursor, more := 0, true; more; e.Options.Between() {
			p.Lock.Lock()
			cursor, more = t.EachStored(cursor, e.Options.Piece, func(key, rec, body string) {
				ops = append(ops, aof.Op{Key: key, Rec: rec, Body: body})
			})
			p.Lock.Unlock()
			for _, o := range ops {
				visit(o)
			}
			ops = ops[:0]
		}
	}
}
