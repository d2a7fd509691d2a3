package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
)

// BenchmarkUndo changes a container of 1,000,000 documents and takes that back: a default that kills all, and
// a flush, which it compares with one that cannot be taken back. Count counts while all that died can come
// back.
func BenchmarkUndo(b *testing.B) {
	const n = 1_000_000
	manual := clock.NewManual(epoch)
	ks, err := Open(Options{Dir: b.TempDir(), Clock: manual, NoPurge: true})
	drill.Check(b, err)
	b.Cleanup(func() { ks.Close() })
	drill.Check(b, ks.SetUndoWindow(undo.MaxWindow))
	all := func(f func(tx *Tx, c *Container)) {
		var tx Tx
		ks.BeginAll(&tx)
		f(&tx, tx.Container("c"))
		tx.Close()
	}
	all(func(tx *Tx, _ *Container) { tx.CreateContainer("c", 86400, expiry.Strict) })
	fill := func() {
		var tx Tx
		for i := range n {
			id := fmt.Sprint("document-", i)
			ks.BeginKey(&tx, id)
			tx.Put(tx.Container("c"), id, Document, `{"some":"text"}`, expiry.Inherit)
			tx.Close()
			ks.Throttle(0)
		}
	}
	fill()
	manual.Advance(time.Hour)
	undo := func(b *testing.B) {
		all(func(tx *Tx, _ *Container) {
			if done, err := tx.Undo("c", ""); done == nil || err != nil {
				b.Fatal(done, err)
			}
		})
	}
	kill := func() { all(func(tx *Tx, c *Container) { tx.SetPolicy(c, 60, expiry.Strict) }) }
	b.Run("rule", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			kill()
			b.StartTimer()
			undo(b)
		}
	})
	b.Run("count", func(b *testing.B) {
		kill()
		for b.Loop() {
			all(func(tx *Tx, c *Container) {
				if tx.Count(c) != 0 {
					b.Fatal("not all are dead")
				}
			})
		}
		undo(b)
	})
	b.Run("undo-flush", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			all(func(tx *Tx, _ *Container) { tx.FlushAll() })
			b.StartTimer()
			undo(b)
		}
	})
	b.Run("flush", func(b *testing.B) {
		for b.Loop() {
			all(func(tx *Tx, _ *Container) { tx.FlushAll() })
			b.StopTimer()
			undo(b)
			b.StartTimer()
		}
	})
	b.Run("flush-for-good", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			drill.Check(b, ks.SetUndoWindow(0))
			b.StartTimer()
			all(func(tx *Tx, _ *Container) { tx.FlushAll() })
			b.StopTimer()
			fill()
			b.StartTimer()
		}
	})
}
