//go:build invariants || race

package memtable

import (
	"fmt"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestCheckFindsViolations breaks one invariant after the other.
func TestCheckFindsViolations(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *Table, s *Shard, e *Entry){
		"memory of the shard":  func(_ *Table, s *Shard, _ *Entry) { s.memory.Add(1) },
		"garbage of the shard": func(_ *Table, s *Shard, _ *Entry) { s.garbage.Add(1) },
		"store size":           func(t *Table, s *Shard, _ *Entry) { t.live++; s.live++ },
		"bytes":                func(t *Table, _ *Shard, _ *Entry) { t.bytes++ },
		"plain keys":           func(t *Table, _ *Shard, _ *Entry) { t.plain++ },
		"attachment":           func(t *Table, _ *Shard, _ *Entry) { t.number++ },
		"dirty list":           func(t *Table, _ *Shard, _ *Entry) { t.dirty = t.dirty[:1] },
		"dirty tables":         func(_ *Table, s *Shard, _ *Entry) { s.dirty = nil },
		"dirty mark":           func(_ *Table, _ *Shard, e *Entry) { e.clear(dirty) },
		"present mark":         func(_ *Table, _ *Shard, e *Entry) { e.clear(present) },
		"position":             func(_ *Table, _ *Shard, e *Entry) { e.pos++ },
		"insertion order":      func(t *Table, _ *Shard, _ *Entry) { t.order.slots.at(3).offset = 0 },
		"index":                func(t *Table, _ *Shard, e *Entry) { e.hash++ },
		"record":               func(t *Table, _ *Shard, e *Entry) { t.arena.segments[e.data.segment].data[e.data.offset+allocHeader]++ },
		"time":                 func(_ *Table, _ *Shard, e *Entry) { e.version++ },
		"queue position":       func(_ *Table, _ *Shard, e *Entry) { e.queuePos++ },
		"capped items":         func(t *Table, _ *Shard, _ *Entry) { t.capped++ },
		"queue":                func(t *Table, _ *Shard, _ *Entry) { t.byOwnTTL.n++ },
		"bucket":               func(t *Table, _ *Shard, _ *Entry) { t.byOwnTTL.buckets[0].earliest += 1000 },
		"segment":              func(t *Table, _ *Shard, e *Entry) { t.arena.segments[e.data.segment].dead++ },
		"arena":                func(t *Table, _ *Shard, _ *Entry) { t.arena.used++ },
		"slab":                 func(t *Table, _ *Shard, _ *Entry) { t.slab.blocks[1].used++ },
	} {
		t.Run(name, func(t *testing.T) {
			table, shard := newTestTable()
			for i := range 10 {
				ends := []int64{expiry.Inherit, expiry.Never, 5_000 + int64(i), expiry.CapAt(5_000)}
				putEnd(table, shard, fmt.Sprint(i), ends[(i-i/9)%3+i/9])
			}
			drill.Check(t, shard.Check())
			spoil(table, shard, table.Find("5"))
			if err := shard.Check(); err == nil {
				t.Error("the violation is not found")
			}
		})
	}
}
