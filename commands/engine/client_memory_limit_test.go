package engine

import (
	"slices"
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
