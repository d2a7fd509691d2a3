package frameworks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// TestRueidisNeverStale plays $MAYFLY_STEPS random writes, deaths and changes of containers, beside reads
// through the cache of rueidis, from the seed $MAYFLY_SEED. The server's clock stands still until the test
// moves it. Once the messages are in, the cache has what the server has.
func TestRueidisNeverStale(t *testing.T) {
	steps, seed := number(t, "MAYFLY_STEPS"), number(t, "MAYFLY_SEED")
	m := cacheModel{T: t, random: rand.New(rand.NewPCG(seed, 0)), writer: connect(t)}
	m.cached = must[rueidis.Client](t)(rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{address(t)},
		PipelineMultiplex: -1, // one connection: the message that is waited for is the last
	}))
	defer m.cached.Close()
	m.write("CONTAINER.SET", "x", "TTL", "5")
	m.write("CONTAINER.SET", "y", "TTL", "-1")
	for step := range steps {
		switch n := m.random.IntN(20); {
		case n < 10:
			m.read(m.anyRead())
		case n < 18:
			m.change()
		default:
			m.write("CLOCK", "ADVANCE", m.pick("0.001", "0.1", "0.5", "1", "3"))
		}
		if step%8 == 0 {
			m.check(step)
		}
	}
	if m.hits == 0 || m.kept == 0 {
		t.Errorf("%d reads found what they look for in the cache, %d of those that were compared", m.hits, m.kept)
	}
	t.Logf("%d reads found what they look for in the cache, %d of those that were compared", m.hits, m.kept)
}

func number(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		t.Skip("NOT TESTED: TestRueidisModel in test/clients runs this test, with $" + name)
	}
	return must[uint64](t)(strconv.ParseUint(text, 10, 64))
}

// cacheModel is a client with a cache, and one that writes.
type cacheModel struct {
	*testing.T
	random     *rand.Rand
	cached     rueidis.Client
	writer     *redis.Client
	hits, kept int
}

func (m *cacheModel) pick(list ...string) string { return list[m.random.IntN(len(list))] }

func (m *cacheModel) id() string { return m.pick("a", "b", "c", "d") }

func (m *cacheModel) anyRead() []string {
	if m.random.IntN(2) == 0 {
		return []string{"GET", m.id()}
	}
	return []string{"DOC.GET", m.pick("x", "y"), m.id()}
}

// read reads through the cache. hit says whether that needed no reply of the server.
func (m *cacheModel) read(words []string) (value string, hit bool) {
	m.Helper()
	command := rueidis.Cacheable(m.cached.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).ReadOnly())
	result := m.cached.DoCache(m.Context(), command, time.Hour)
	value, err := result.ToString()
	if hit = result.IsCacheHit(); hit {
		m.hits++
	}
	if err != nil && !rueidis.IsRedisNil(err) {
		m.Fatal(words, err)
	}
	return value, hit
}

func (m *cacheModel) write(words ...any) {
	m.Helper()
	err := m.writer.Do(m.Context(), words...).Err()
	if err != nil && err != redis.Nil && words[0] != "CONTAINER.UNDO" { // there may be nothing to take back
		m.Fatal(words, err)
	}
}

// change changes something that is read.
func (m *cacheModel) change() {
	m.Helper()
	n := m.random.IntN(1_000_000)
	switch m.random.IntN(14) {
	case 0, 1, 2:
		m.write("SET", m.id(), n)
	case 3:
		m.write("SET", m.id(), n, "PX", 1+m.random.IntN(3000))
	case 4:
		m.write("PEXPIRE", m.id(), 1+m.random.IntN(3000))
	case 5:
		m.write("DEL", m.id(), m.id())
	case 6, 7, 8:
		m.write("DOC.PUT", m.pick("x", "y"), m.id(), fmt.Sprintf(`{"n":%d}`, n), "TTL", m.pick("null", "1", "3", "-1"))
	case 9:
		m.write("DOC.DEL", m.pick("x", "y"), m.id())
	case 10:
		m.write("CONTAINER.SET", m.pick("0", "x", "y"), "TTL", m.pick("-1", "1", "2", "60"))
	case 11:
		m.write("CONTAINER.UNDO", m.pick("0", "x", "y"))
	case 12:
		m.write("SWAPDB", 0, 1)
	default:
		name := m.pick("x", "y")
		m.write("CONTAINER.DROP", name)
		m.write("CONTAINER.SET", name, "TTL", m.pick("-1", "2"))
	}
}

// check compares the cache with the server, once the client has heard of a change that follows all others.
func (m *cacheModel) check(step uint64) {
	m.Helper()
	last := fmt.Sprint(step + 1)
	m.read([]string{"GET", "last"})
	m.write("SET", "last", last)
	until(m.T, "the last message", func() bool { value, _ := m.read([]string{"GET", "last"}); return value == last })
	for _, id := range []string{"a", "b", "c", "d"} {
		for _, words := range [][]string{{"GET", id}, {"DOC.GET", "x", id}, {"DOC.GET", "y", id}} {
			value, hit := m.read(words)
			if hit {
				m.kept++
			}
			var arguments []any
			for _, word := range words {
				arguments = append(arguments, word)
			}
			now, err := m.writer.Do(m.Context(), arguments...).Text()
			if err != nil && err != redis.Nil {
				m.Fatal(words, err)
			}
			if value != now {
				m.Fatalf("step %d: %q keeps %q, it is %q", step, words, value, now)
			}
		}
	}
}
