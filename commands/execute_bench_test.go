package commands

import (
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/keyspace"
)

// BenchmarkExecute is the way of one command through the engine, without sockets and commits. Its
// allocation is the closure that Parse returns, and what SET keeps.
func BenchmarkExecute(b *testing.B) {
	document := `{"id":"order-000123","total":149.95,"note":"` + strings.Repeat("x", 230) + `"}`
	for _, line := range []string{
		"PING", "GET k", "SET k v", "GET nobody",
		"DOC.PUT 0 d " + document, "DOC.GET 0 d", "DOC.GET 0 d WITHMETA", "DOC.TTL 0 d", "DOC.PATCH 0 d INCR /total 1",
	} {
		args := strings.Fields(line)
		b.Run(strings.TrimSuffix(line, document), func(b *testing.B) {
			e := newBenchEngine(b)
			s := NewSession(1, "", "", 0)
			b.ReportAllocs()
			for b.Loop() {
				e.Execute(s, args)
			}
		})
	}
	b.Run("GET k by several sessions", func(b *testing.B) {
		e := newBenchEngine(b)
		var last atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			s := NewSession(last.Add(1), "", "", 0)
			args := []string{"GET", "k"}
			for pb.Next() {
				e.Execute(s, args)
			}
		})
	})
}

// quickHost answers at once what every command asks of it.
type quickHost struct{ *testHost }

func (quickHost) PasswordSet() bool { return false }
func (quickHost) MaxValueSize() int { return 16 << 20 }

// newBenchEngine gives an engine on a keyspace with the system's clock, which holds the plain key k and the document d.
func newBenchEngine(b *testing.B) *Engine {
	ks, err := keyspace.Open(keyspace.Options{Dir: b.TempDir(), Fsync: keyspace.No, NoPurge: true})
	if err != nil {
		b.Fatal(err)
	}
	e := &Engine{Host: quickHost{}, Keyspace: ks}
	b.Cleanup(func() {
		if err := ks.Close(); err != nil {
			b.Error(err)
		}
	})
	e.Execute(NewSession(1, "", "", 0), []string{"SET", "k", strings.Repeat("v", 285)})
	e.Execute(NewSession(1, "", "", 0), []string{"DOC.PUT", "0", "d", `{"id":"order-000123","total":149.95}`})
	return e
}
