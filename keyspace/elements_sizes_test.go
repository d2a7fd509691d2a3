package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/foresight"
	"mayfly/test/drill"
)

// TestSizesOfElements: what a rule kills, what is left out of the dead, and what UNDO can bring back have the
// sizes of the elements in pages too.
func TestSizesOfElements(t *testing.T) {
	t.Parallel()
	ks := open(t)
	drill.Check(t, ks.SetUndoWindow(60))
	all := func(f func(tx *Tx, c *Container)) {
		var tx Tx
		ks.BeginAll(&tx)
		defer tx.Close()
		f(&tx, tx.Container("0"))
	}
	all(func(tx *Tx, c *Container) {
		e, _ := tx.EditElements(c, "big", HashKind)
		for i := range 5000 {
			e.Set(Element{Field: fmt.Sprint("field", i), Value: "value"})
		}
		e.Close()
	})
	var whole ContainerStats
	all(func(tx *Tx, c *Container) {
		whole = tx.Stats(c)
		f := foresight.NewForecast(ks.clock.Now(), 1000, 1)
		if tx.Tally(c, f, func(int) bool { return true }); f.Never.Bytes != whole.Bytes || whole.Bytes < 50_000 {
			t.Errorf("a forecast has %d bytes, the container %d", f.Never.Bytes, whole.Bytes)
		}
	})
	ks.clock.Advance(2 * time.Second)
	all(func(tx *Tx, c *Container) { tx.SetPolicy(c, 1, expiry.Lenient) })
	all(func(tx *Tx, c *Container) {
		if s := tx.Stats(c); s.Bytes != 0 || s.Plain != 0 {
			t.Errorf("%d bytes live, of %d keys", s.Bytes, s.Plain)
		}
	})
	all(func(tx *Tx, c *Container) {
		if n := tx.UndoMemory(); n < whole.Memory*4/5 || n > whole.Memory { // tables have memory of their own
			t.Errorf("%d bytes can be brought back after the change of the default, of %d", n, whole.Memory)
		}
	})
	all(func(tx *Tx, c *Container) { tx.SetPolicy(c, expiry.Forever, expiry.Lenient); tx.Drop(c) })
	all(func(tx *Tx, _ *Container) {
		if n := tx.UndoMemory(); n < whole.Memory*4/5 {
			t.Errorf("%d bytes can be brought back after the drop, of %d", n, whole.Memory)
		}
	})
}
