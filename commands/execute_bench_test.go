package commands

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// BenchmarkExecute measures one command in the engine, without sockets. Sixteen commands share a commit.
func BenchmarkExecute(b *testing.B) {
	document := benchDocument
	for _, c := range []struct {
		name string
		args []string
	}{
		{"PING", []string{"PING"}},
		{"GET", []string{"GET", benchKey}},
		{"GET of nothing", []string{"GET", "nobody"}},
		{"SET", []string{"SET", benchKey, document}},
		{"SET EX", []string{"SET", benchKey, document, "EX", "3600"}},
		{"INCR", []string{"INCR", "counter"}},
		{"DOC.PUT", []string{"DOC.PUT", "orders", benchDoc, document}},
		{"DOC.PUT of a ttl", []string{"DOC.PUT", "orders", benchDoc, `{"ttl":3600,` + document[1:]}},
		{"DOC.PUT NX", []string{"DOC.PUT", "orders", benchDoc, document, "NX"}},
		{"DOC.GET", []string{"DOC.GET", "orders", benchDoc}},
		{"DOC.GET WITHMETA", []string{"DOC.GET", "orders", benchDoc, "WITHMETA"}},
		{"DOC.TTL", []string{"DOC.TTL", "orders", benchDoc}},
		{"DOC.PATCH", []string{"DOC.PATCH", "orders", benchDoc, "INCR", "/total", "1"}},
		{"DOC.GET of 285 bytes", []string{"DOC.GET", "0", benchDoc}},
		{"JSON.GET", []string{"JSON.GET", benchDoc}},
		{"JSON.GET $", []string{"JSON.GET", benchDoc, "$"}},
		{"JSON.GET $.total", []string{"JSON.GET", benchDoc, "$.total"}},
		{"JSON.SET", []string{"JSON.SET", benchDoc, "$", document}},
		{"DOC.PATCH of 285 bytes", []string{"DOC.PATCH", "0", benchDoc, "INCR", "/id", "1"}},
		{"LPUSH", []string{"LPUSH", "queue", "a value of 20 bytes."}},
		{"RPOP of nothing", []string{"RPOP", "nobody"}},
		{"HSET", []string{"HSET", "hash", "element:500", "a value of 20 bytes."}},
		{"HGET", []string{"HGET", "hash", "element:500"}},
		{"HINCRBY", []string{"HINCRBY", "hash", "counter", "1"}},
		{"SADD", []string{"SADD", "set", "element:500"}},
		{"ZADD", []string{"ZADD", "zset", "INCR", "1", "element:500"}},
		{"ZADD GT", []string{"ZADD", "zset", "GT", "1", "element:500"}},
		{"JSON.NUMINCRBY", []string{"JSON.NUMINCRBY", benchDoc, "$.id", "1"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newBenchEngine(b)
			s, lsn := engine.NewSession(1, "", "", 0), keyspace.LSN(0)
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				lsn = max(lsn, e.Execute(s, c.args).LSN)
				if n%16 == 0 {
					drill.Check(b, e.CommitNow(lsn, 0))
				}
			}
		})
	}
	b.Run("GET by several sessions", func(b *testing.B) {
		e := newBenchEngine(b)
		var last atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			s := engine.NewSession(last.Add(1), "", "", 0)
			args := []string{"GET", benchKey}
			for pb.Next() {
				e.Execute(s, args)
			}
		})
	})
}

// benchDocument has 285 bytes.
var benchDocument = `{"id":123,"customer":"c-00123","total":123.23,"note":"` + strings.Repeat("lorem ipsum ", 19) + `"}`

// The keys of the benchmarks.
const (
	benchKey = "key:000000123456"
	benchDoc = "doc:000000123456"
)

// quickHost replies to frequent questions without locks.
type quickHost struct{ *testHost }

func (quickHost) MaxValueSize() int { return 16 << 20 }

// newBenchEngine returns an engine on a keyspace with the system's clock. It holds the plain key benchKey
// and, in the containers orders and 0, the document benchDoc.
func newBenchEngine(b *testing.B) *engine.Engine {
	ks, err := keyspace.Open(keyspace.Options{Dir: b.TempDir(), Fsync: keyspace.No, NoPurge: true})
	drill.Check(b, err)
	e := engine.NewEngine(ks, quickHost{&testHost{users: access.NewUsers(engine.Catalogue)}}, zerolog.Nop())
	b.Cleanup(func() {
		drill.Report(b, ks.Close())
	})
	for _, args := range [][]string{
		{"SET", benchKey, strings.Repeat("v", 285)},
		{"CONTAINER.SET", "orders", "TTL", "3600"},
		{"DOC.PUT", "orders", benchDoc, `{"id":"order-000123","total":149.95}`},
		{"DOC.PUT", "0", benchDoc, benchDocument},
	} {
		if reply := e.Execute(engine.NewSession(1, "", "", 0), args).Reply; reply.Kind != engine.KindStatus {
			b.Fatal(args, reply)
		}
	}
	for i := range 1000 {
		element := fmt.Sprint("element:", i)
		for _, args := range [][]string{
			{"HSET", "hash", element, "a value of 20 bytes."}, {"SADD", "set", element}, {"ZADD", "zset", fmt.Sprint(i), element},
		} {
			if reply := e.Execute(engine.NewSession(1, "", "", 0), args).Reply; reply.Int != 1 {
				b.Fatal(args, reply)
			}
		}
	}
	return e
}

// BenchmarkRestricted is GET of a user with ten prefix patterns and two containers, beside one who may do
// everything.
func BenchmarkRestricted(b *testing.B) {
	for _, rules := range []string{"~* &* +@all", "+@all db=0,orders ~a* ~b* ~c* ~d* ~e* ~f* ~g* ~h* ~i* ~key:*"} {
		b.Run(rules, func(b *testing.B) {
			e := newBenchEngine(b)
			if _, _, err := e.Host.Users().Set("u", strings.Fields("on nopass "+rules)); err != nil {
				b.Fatal(err)
			}
			s := engine.NewSession(1, "", "", 0)
			e.Execute(s, []string{"AUTH", "u", "x"})
			args := []string{"GET", benchKey}
			if out := e.Execute(s, args); out.Reply.Kind == engine.KindError {
				b.Fatal(out.Reply.Str)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Execute(s, args)
			}
		})
	}
}

// BenchmarkTracked is GET of a client that caches, beside one that does not: of ids that are noted already,
// and of ids that are not.
func BenchmarkTracked(b *testing.B) {
	for _, mode := range []string{"OFF", "ON"} {
		for _, ids := range []int{1, 100_000, 1 << 30} {
			b.Run(fmt.Sprintf("%s/ids=%d", mode, ids), func(b *testing.B) {
				e := newBenchEngine(b)
				e.Keyspace().SetMostNoted(1_000_000)
				s := engine.NewSession(1, "", "", 0)
				s.Receiver = new(inbox)
				e.Execute(s, []string{"HELLO", "3"})
				e.Execute(s, []string{"CLIENT", "TRACKING", mode})
				var list []string
				for i := range min(ids, 2_000_000) {
					list = append(list, fmt.Sprintf("key:%012d", i))
				}
				args := []string{"GET", ""}
				for n := 0; n < 100_000 && ids == 100_000; n++ {
					args[1] = list[n]
					e.Execute(s, args)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for n := range b.N {
					args[1] = list[n%len(list)]
					e.Execute(s, args)
				}
			})
		}
	}
}
