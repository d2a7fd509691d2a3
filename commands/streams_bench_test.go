package commands

import (
	"fmt"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// BenchmarkXRead reads the last 100 of 100,000 entries with documents of 285 bytes, and the first 100.
func BenchmarkXRead(b *testing.B) {
	e := newBenchEngine(b)
	s := engine.NewSession(1, "", "", 0)
	do := func(args ...string) engine.Reply {
		out := e.Execute(s, args)
		if err := e.Keyspace().Wait(out.LSN); err != nil || out.Reply.Kind == engine.KindError {
			b.Fatalf("%q: %s, %v", args, out.Reply.Str, err)
		}
		return out.Reply
	}
	do("CONTAINER.SET", "c", "TTL", "off")
	var tx keyspace.Tx
	e.Keyspace().BeginAll(&tx)
	drill.Check(b, tx.SetLog(tx.Container("c"), keyspace.LogSettings{Seconds: 1e6, MaxLen: 1e6, Bodies: true}))
	drill.Check(b, e.Keyspace().Wait(tx.Close()))
	const entries = 100_000
	for i := range entries {
		do("DOC.PUT", "c", fmt.Sprint(i), benchDocument)
	}
	do("CONTAINER.SET", "c", "TTL", "1")
	for do("XLEN", streamKey).Int < entries {
		e.Keyspace().PurgeOnce()
	}
	from := do("XREVRANGE", streamKey, "+", "-", "COUNT", "101").Elems[100].Elems[0].Str
	for name, after := range map[string]string{"first": "0", "last": from} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := do("XREAD", "COUNT", "100", "STREAMS", streamKey, after); len(r.Elems[0].Elems[1].Elems) != 100 {
					b.Fatal("not 100 entries")
				}
			}
		})
	}
}
