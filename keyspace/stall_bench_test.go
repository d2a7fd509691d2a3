package keyspace

import (
	"fmt"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// BenchmarkManyContainers changes 100,000 of them under all locks: a drop of a container with that many
// groups, and a FlushAll, which can be taken back or not.
func BenchmarkManyContainers(b *testing.B) {
	const n = 100_000
	for _, window := range []int64{0, 300} {
		open := func(b *testing.B) *Keyspace {
			ks, err := Open(Options{Dir: b.TempDir(), Clock: clock.NewManual(epoch), NoPurge: true})
			drill.Check(b, err)
			b.Cleanup(func() { ks.Close() })
			drill.Check(b, ks.SetUndoWindow(window))
			return ks
		}
		b.Run(fmt.Sprint("drop-groups/window=", window), func(b *testing.B) {
			ks := open(b)
			for b.Loop() {
				b.StopTimer()
				var tx Tx
				ks.BeginAll(&tx)
				c := tx.CreateContainer("c", 86400, expiry.Strict)
				drill.Check(b, tx.SetLog(c, LogSettings{Seconds: 60, MaxLen: 1000}))
				for i := range n {
					tx.CreateGroup(c, fmt.Sprint("group-", i), streamid.ID{}, groups.Unknown)
				}
				tx.Close()
				ks.BeginAll(&tx)
				b.StartTimer()
				tx.Drop(tx.Container("c"))
				tx.Close()
			}
		})
		b.Run(fmt.Sprint("flush-all/window=", window), func(b *testing.B) {
			ks := open(b)
			for b.Loop() {
				b.StopTimer()
				for i := range n {
					name, id := fmt.Sprint("c", i), "id"
					var tx Tx
					ks.BeginAll(&tx)
					if tx.Container(name) == nil {
						tx.CreateContainer(name, 86400, expiry.Strict)
					}
					tx.Put(tx.Container(name), id, Document, `{}`, expiry.Inherit)
					tx.Close()
				}
				ks.Throttle(0)
				var tx Tx
				ks.BeginAll(&tx)
				b.StartTimer()
				tx.FlushAll()
				tx.Close()
			}
		})
	}
}
