package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
)

// BenchmarkApply applies batches of 800 puts of 285 bytes among 200,000 items. A put is an operation.
func BenchmarkApply(b *testing.B) {
	ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true, noCheckpoints: true, noSweeps: true, Replicator: newFakeLog().seat()})
	drill.Check(b, err)
	defer ks.Close()
	const size, items = 800, 200_000
	body := `{"text":"` + strings.Repeat("x", 285-len(`{"text":""}`)) + `"}`
	text := []string{string(aof.AppendSet(nil, record.ContainerKey(0), string(record.Container{Name: "0"}.Append(nil))))}
	version := uint64(1 << 41)
	for range 2 * items / size {
		var batch []byte
		for range size {
			key := fmt.Sprintf("0:item-%d", rand.IntN(items))
			version += record.MaxPartitions
			batch = aof.AppendSet(batch, key, string(record.Append(nil, key, Item{Kind: Document, Body: body, TS: epoch, ExpireAt: 0, Version: version})))
		}
		text = append(text, string(batch))
	}
	index := uint64(0)
	apply := func() {
		next := text[int(index)%len(text)]
		index++
		drill.Check(b, ks.Apply(next, replica.Tail{Position: replica.Position{Index: index, Term: 1, Moment: epoch}}))
	}
	for range text {
		apply()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += size {
		apply()
	}
}
