package keyspace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestAllStats compares AllStats with the figures of each container: those in which something lives, no
// others.
func TestAllStats(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 16} {
		o := open(t, func(opt *Options) { opt.Partitions = partitions })
		make := func(name string, ttl expiry.TTL) {
			var tx Tx
			o.BeginAll(&tx)
			tx.CreateContainer(name, ttl, expiry.Strict)
			o.commit(&tx)
		}
		for i := range 50 {
			make(fmt.Sprint("empty-", i), 10)
		}
		make("off", expiry.Off)
		make("soon", 10)
		make("later", 1000)
		make("gone", -1)
		for i := range 300 {
			id := fmt.Sprint(i)
			o.put("off", id, "{}", expiry.Inherit)
			o.put("soon", id, "{}", expiry.Inherit)
			if i < 100 {
				o.putFor("later", id, expiry.TTL(100+i))
				o.put("0", id, "{}", expiry.Never)
			}
			o.put("later", id+"x", "{}", expiry.Inherit)
			o.put("gone", id, "{}", expiry.Inherit)
		}
		var tx Tx
		o.BeginAll(&tx)
		tx.Drop(tx.Container("gone"))
		o.commit(&tx)
		check := func(want ...string) {
			t.Helper()
			o.BeginSweep(&tx)
			defer o.commit(&tx)
			var names []string
			all, _ := tx.AllStats()
			for _, c := range all {
				names = append(names, c.Container.Name())
				stats, got := tx.Stats(c.Container), *c
				got.InMemory, got.AverageTTL, got.left = stats.InMemory, 0, stats.left
				if got != stats {
					t.Errorf("%d partitions, %s: %+v, want %+v", partitions, c.Container.Name(), got, stats)
				}
				least, most := int64(0), int64(0)
				if c.Container.Name() == "later" {
					least, most = 95_000, 1_000_000
				} else if c.Container.Name() == "soon" {
					least, most = 10_000, 10_000
				}
				if c.AverageTTL < least || c.AverageTTL > most || (c.Expiring() > 0) != (c.AverageTTL > 0) {
					t.Errorf("%d partitions, %s: %d will die, in %d ms", partitions, c.Container.Name(), c.Expiring(), c.AverageTTL)
				}
			}
			if !reflect.DeepEqual(names, want) {
				t.Errorf("%d partitions: %q, want %q", partitions, names, want)
			}
		}
		check("0", "later", "off", "soon")
		o.clock.Advance(10 * time.Second)
		check("0", "later", "off")
	}
}

// BenchmarkAllStats counts 100,000 containers, of which a few or all have items.
func BenchmarkAllStats(b *testing.B) {
	for _, populated := range []int{10, 100_000} {
		b.Run(fmt.Sprint(populated), func(b *testing.B) {
			ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true})
			drill.Check(b, err)
			defer ks.Close()
			var tx Tx
			ks.BeginAll(&tx)
			for i := range 100_000 {
				tx.CreateContainer(strings.Repeat("c", 10)+fmt.Sprint(i), 1000, expiry.Strict)
			}
			for i := range populated {
				tx.Put(tx.Container(strings.Repeat("c", 10)+fmt.Sprint(i)), fmt.Sprint(i), Document, "{}", expiry.Inherit)
			}
			tx.Close()
			for b.Loop() {
				ks.BeginSweep(&tx)
				tx.AllStats()
				tx.Close()
			}
		})
	}
}
