package commands

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// openClients opens n clients with a common limit, and notes which are disconnected.
func openClients(limit int64, n int) (m *ClientMemoryLimit, list []*ClientMemory, evicted *[]int64) {
	evicted = new([]int64)
	m = &ClientMemoryLimit{Evicted: func(s *Session, _ int) { *evicted = append(*evicted, s.ID) }}
	m.SetLimit(limit)
	for i := range n {
		list = append(list, m.Open(NewSession(int64(i+1), "", "", 0)))
	}
	return m, list, evicted
}

// The largest clients are disconnected, and no more than needed.
func TestClientMemoryDisconnectsTheLargest(t *testing.T) {
	t.Parallel()
	m, list, evicted := openClients(1<<20, 6)
	for i, size := range []int{100 << 10, 300 << 10, 200 << 10, 250 << 10, 64 << 10} {
		if !list[i].Reserve(size) {
			t.Fatalf("%d bytes are refused to client %d", size, i+1)
		}
	}
	if !list[5].Reserve(170 << 10) {
		t.Error("the least is refused while others hold more")
	}
	if want := []int64{2}; !slices.Equal(*evicted, want) {
		t.Errorf("disconnected: %v, want %v", *evicted, want)
	}
	if list[1].Reserve(1) || list[1].Size() != 0 {
		t.Error("who is disconnected may go on taking")
	}
	list[1].Release(300 << 10) // on its way out
	if m.Disconnected() != 1 {
		t.Errorf("%d disconnected are counted", m.Disconnected())
	}
	for _, a := range list {
		a.Close()
	}
	if m.Used() != 0 || len(m.clients) != 0 {
		t.Errorf("%d bytes and %d clients are left", m.Used(), len(m.clients))
	}
}

// The largest client itself is refused, and no other is disconnected.
func TestClientMemoryRefusesTheLargest(t *testing.T) {
	t.Parallel()
	m, list, evicted := openClients(1<<20, 2)
	if !list[0].Reserve(300<<10) || !list[1].Reserve(600<<10) || list[1].Reserve(600<<10) {
		t.Error("want two grants and a refusal")
	}
	if len(*evicted) > 0 || list[1].Size() != 600<<10 {
		t.Errorf("disconnected: %v; the refused holds %d", *evicted, list[1].Size())
	}
	list[1].Release(600 << 10)
	if !list[1].Reserve(700 << 10) {
		t.Error("what was given back is gone")
	}
	m.SetLimit(0)
	if !list[1].Reserve(1 << 40) {
		t.Error("refused without a limit")
	}
}

// CLIENT NO-EVICT ON protects a client.
func TestClientNoEvict(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	m, list, evicted := openClients(1<<20, 3)
	w.session(1).Memory = list[0]
	w.expect("OK", "CLIENT", "NO-EVICT", "on")
	if !list[0].Reserve(600<<10) || !list[1].Reserve(300<<10) || !list[2].Reserve(260<<10) || !slices.Equal(*evicted, []int64{2}) {
		t.Errorf("disconnected: %v", *evicted)
	}
	w.expect("OK", "CLIENT", "NO-EVICT", "off")
	if !list[2].Reserve(200<<10) || !slices.Equal(*evicted, []int64{2, 1}) {
		t.Errorf("disconnected: %v", *evicted)
	}
	w.session(1).Memory = nil
	if m.Disconnected() != 2 {
		t.Error(m.Disconnected())
	}
}

// Under concurrent use the sum equals the parts.
func TestClientMemoryConcurrently(t *testing.T) {
	t.Parallel()
	m := new(ClientMemoryLimit)
	m.SetLimit(4 << 20)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				a := m.Open(NewSession(int64(i), "", "", 0))
				for n := range 100 {
					if size := n*i*173%(1<<17) + 1; a.Reserve(size) && n%3 > 0 {
						a.Release(size)
					}
				}
				a.Close()
			}
		})
	}
	wg.Wait()
	if m.Used() != 0 || len(m.clients) != 0 {
		t.Errorf("%d bytes and %d clients are left", m.Used(), len(m.clients))
	}
}

// A session reserves memory for what it keeps and releases it, whatever its end.
func TestSessionsReserveMemory(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("v", 100<<10)
	keep := map[string][]string{
		"queue":         {"MULTI", "SET k " + big},
		"watch":         {"WATCH " + strings.Repeat("k", 60<<10)},
		"subscriptions": {"SUBSCRIBE " + strings.Repeat("c", 60<<10)},
		"patterns":      {"PSUBSCRIBE " + strings.Repeat("p", 60<<10)},
		"shards":        {"SSUBSCRIBE " + strings.Repeat("s", 60<<10)},
	}
	end := map[string][]string{
		"queue":         {"EXEC", "DISCARD", "RESET", ""},
		"watch":         {"UNWATCH", "RESET", ""},
		"subscriptions": {"UNSUBSCRIBE", "RESET", ""},
		"patterns":      {"PUNSUBSCRIBE", "RESET", ""},
		"shards":        {"SUNSUBSCRIBE", "RESET", ""},
	}
	for what, lines := range keep {
		for _, ending := range end[what] {
			t.Run(fmt.Sprint(what, "/", ending), func(t *testing.T) {
				w := newHarness(t)
				var m ClientMemoryLimit
				s := w.session(1)
				s.Memory = m.Open(s)
				for _, line := range append(lines, lines[1:]...) {
					if r := w.do(1, strings.Fields(line)...); r.Kind == KindError {
						t.Fatal(r.Str)
					}
				}
				if held := s.Memory.Size(); held < 60<<10 || held > 250<<10 {
					t.Errorf("%d bytes are accounted for", held)
				}
				if ending != "" {
					w.do(1, ending)
				} else {
					w.engine.CloseSession(s)
				}
				if held := s.Memory.Size(); held != 0 {
					t.Errorf("%d bytes are left after %q", held, ending)
				}
			})
		}
	}
}

// Over the limit the error says so, and the session keeps its state.
func TestClientMemoryErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var m ClientMemoryLimit
	m.SetLimit(256 << 10)
	s := w.session(1)
	s.Memory = m.Open(s)
	big := strings.Repeat("v", 60<<10)
	const full = "(error) ERR all clients together hold too much memory: try again later, or raise maxmemory-clients"
	w.do(1, "HELLO", "3")
	w.do(1, "SUBSCRIBE", big)
	w.do(1, "WATCH", big)
	w.expect(full, "SUBSCRIBE", "1"+big, "2"+big, "3"+big)
	w.expect(full, "WATCH", "1"+big, "2"+big, "3"+big)
	w.do(1, "MULTI")
	w.expect(full, "SET", "k", strings.Repeat(big, 3))
	w.expect("(error) EXECABORT Transaction discarded because of previous errors.", "EXEC")
	w.expect("(integer) 1", "PUBLISH", big, "x")
	w.expect("(integer) 0", "PUBLISH", "1"+big, "x")
	w.do(1, "UNSUBSCRIBE")
	if held := s.Memory.Size(); held != 0 {
		t.Errorf("%d bytes are left", held)
	}
}
