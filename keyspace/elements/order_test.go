package elements

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// orderModel is an order, and what it must have.
type orderModel struct {
	*Order
	is []Scored
}

func (m *orderModel) place(s Scored) (i int, found bool) {
	return slices.BinarySearchFunc(m.is, s, Scored.Compare)
}

func (m *orderModel) add(s Scored) {
	if i, found := m.place(s); !found {
		m.Order.add(s)
		m.is = slices.Insert(m.is, i, s)
	}
}

func (m *orderModel) remove(s Scored) {
	m.Order.remove(s)
	if i, found := m.place(s); found {
		m.is = slices.Delete(m.is, i, i+1)
	}
}

// check compares an order with its model, and what it knows of its parts and chunks with what they have.
func (m *orderModel) check(t *testing.T) {
	t.Helper()
	if got := slices.Collect(m.Ascend(0)); !slices.Equal(got, m.is) {
		t.Fatalf("%d members, want %d:\n%.2000v\n%.2000v", len(got), len(m.is), got, m.is)
	}
	bytes, count := 0, 0
	for _, s := range m.is {
		bytes += len(s.Member)
	}
	for p, part := range m.parts {
		inPart := 0
		for k, r := range part.chunks {
			if len(r.scores) == 0 || len(r.scores) != int(r.count) || len(r.starts) != len(r.scores) || r.first != r.scores[0] || len(r.scores) > mostMembers {
				t.Fatalf("chunk %d of part %d: %d scores, %d starts, known are %d from %v on", k, p, len(r.scores), len(r.starts), r.count, r.first)
			}
			live := 0
			for i := range r.scores {
				live += textSize(r.member(i))
			}
			if live != len(r.text)-r.gone || live > mostText && len(r.scores) > 1 {
				t.Fatalf("chunk %d of part %d has %d bytes, and %d of %d are gone", k, p, live, r.gone, len(r.text))
			}
			inPart += len(r.scores)
		}
		if inPart == 0 || inPart != part.count || len(part.chunks) > mostChunks {
			t.Fatalf("part %d has %d members in %d chunks, known are %d", p, inPart, len(part.chunks), part.count)
		}
		count += inPart
	}
	if count != m.Len() || count != len(m.is) || int64(bytes) != m.bytes {
		t.Fatalf("%d members with %d bytes, known are %d with %d", count, bytes, m.Len(), m.bytes)
	}
}

// probe compares what is found by ranks and members.
func (m *orderModel) probe(t *testing.T, r *rand.Rand, s Scored) {
	t.Helper()
	want, _ := m.place(s)
	if got := m.RankOf(s); got != want {
		t.Fatalf("RankOf(%.40v) = %d, want %d", s, got, want)
	}
	if got := m.Rank(func(other Scored) bool { return !other.Before(s) }); got != want {
		t.Fatalf("Rank of %.40v = %d, want %d", s, got, want)
	}
	if len(m.is) == 0 {
		return
	}
	at := r.IntN(len(m.is))
	if m.At(at) != m.is[at] {
		t.Fatalf("At(%d) = %.40v, want %.40v", at, m.At(at), m.is[at])
	}
	few := func(walk func(func(Scored) bool)) (list []Scored) {
		for s := range walk {
			if list = append(list, s); len(list) == 300 {
				break
			}
		}
		return list
	}
	if got := few(m.Ascend(at)); !slices.Equal(got, m.is[at:min(at+300, len(m.is))]) {
		t.Fatalf("Ascend(%d): %.200v", at, got)
	}
	want300 := slices.Clone(m.is[max(at-299, 0) : at+1])
	slices.Reverse(want300)
	if got := few(m.Descend(at)); !slices.Equal(got, want300) {
		t.Fatalf("Descend(%d): %.200v", at, got)
	}
}

// TestOrderModel: an order is what a sorted slice is, whatever comes and goes, and so are its copies, each of
// which changes for itself. Members that were yielded stay as they were.
func TestOrderModel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(drill.Seed(t), 1))
	random := func() Scored {
		s := Scored{float64(r.IntN(20)), fmt.Sprint("member:", r.IntN(3000))}
		switch r.IntN(500) {
		case 0:
			s.Member = strings.Repeat(s.Member, r.IntN(200))
		case 1:
			s.Member = strings.Repeat(s.Member, 5000)
		}
		return s
	}
	models := []*orderModel{{Order: NewOrder()}}
	var views, texts []string
	for range drill.Pick(20_000, 60_000, 2_000_000) {
		at := r.IntN(len(models))
		m := models[at]
		switch n := r.IntN(1000); {
		case n == 0 && len(models) < 4:
			models = append(models, &orderModel{m.Copy(), slices.Clone(m.is)})
		case n == 1 && len(models) > 1:
			m.check(t)
			models = slices.Delete(models, at, at+1)
		case n == 2: // most go
			for len(m.is) > 50 {
				m.remove(m.is[r.IntN(len(m.is))])
			}
			m.check(t)
		case n < 10:
			s := random()
			if m.probe(t, r, s); len(m.is) > 0 {
				views = append(views, m.At(r.IntN(len(m.is))).Member)
				texts = append(texts, strings.Clone(views[len(views)-1]))
			}
		case n < 350 && len(m.is) > 0:
			m.remove(m.is[r.IntN(len(m.is))])
		case n < 400:
			m.remove(random()) // it need not be there
		default:
			m.add(random())
		}
	}
	for _, m := range models {
		m.check(t)
	}
	if !slices.Equal(views, texts) {
		t.Error("a member that was yielded has changed")
	}
}

// TestOrderOfMany fills orders of several parts, from either end and at random, and empties them.
func TestOrderOfMany(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // there are many
	const many = 2*mostChunks*mostMembers + 1
	r := rand.New(rand.NewPCG(drill.Seed(t), 2))
	for name, score := range map[string]func(i int) int{
		"ascending": func(i int) int { return i }, "descending": func(i int) int { return -i }, "random": func(int) int { return r.IntN(1 << 40) },
	} {
		m := &orderModel{Order: NewOrder()}
		for i := range many {
			s := Scored{float64(score(i)), "m"}
			m.Order.add(s)
			m.is = append(m.is, s)
		}
		slices.SortFunc(m.is, Scored.Compare)
		m.is = slices.Compact(m.is)
		m.twice = nil // the same number at random
		m.check(t)
		if len(m.parts) < 2 {
			t.Errorf("%s: %d parts", name, len(m.parts))
		}
		m.probe(t, r, m.is[r.IntN(len(m.is))])
		still := m.Copy()
		for _, s := range m.is {
			m.Order.remove(s)
		}
		(&orderModel{still, m.is}).check(t)
		m.is = nil
		m.check(t)
	}
}

// room returns the bytes that an order has for its parts and chunks.
func (o *Order) room() (bytes int) {
	for _, part := range o.parts {
		bytes += 48 + cap(part.chunks)*24
		for _, r := range part.chunks {
			bytes += 96 + cap(r.scores)*8 + cap(r.starts)*2 + cap(r.text)
		}
	}
	return bytes
}

// TestOrderRoom: whatever members come and go, an order takes about the memory that it tells.
func TestOrderRoom(t *testing.T) {
	t.Parallel()
	many := drill.Pick(1<<13, 2*mostChunks*mostMembers, 1<<20)
	member := func(i int) string { return strconv.Itoa(i) }
	up := func(i int) Scored { return Scored{float64(i), member(i)} }
	down := func(i int) Scored { return Scored{float64(-i), member(i)} }
	across := func(i int) Scored { return Scored{float64(i * 7919 % many), member(i)} }
	before := func(size int) []Scored { return []Scored{{math.Inf(-1), strings.Repeat("x", size)}} }
	for name, test := range map[string]struct {
		first []Scored
		of    func(i int) Scored
		leave func(i int) bool // of those in the order in which they came
	}{
		"ascending": {of: up}, "descending": {of: down}, "across": {of: across},
		"descending to a large one":  {first: before(32 << 10), of: down},
		"descending to a larger one": {first: before(31 << 10), of: down},
		"one in four stays":          {of: up, leave: func(i int) bool { return i%4 == 0 }},
		"one in 128 stays":           {of: up, leave: func(i int) bool { return i%128 == 0 }},
		"one in 128 stays, down":     {of: down, leave: func(i int) bool { return i%128 == 0 }},
		"one in 65536 stays":         {of: up, leave: func(i int) bool { return i%65536 == 0 }},
		"half of those across stay":  {of: across, leave: func(i int) bool { return i%2 == 0 }},
	} {
		m := &orderModel{Order: NewOrder()}
		for _, s := range test.first {
			m.Order.add(s)
		}
		for i := range many {
			m.Order.add(test.of(i))
		}
		for i := range many {
			if test.leave != nil && !test.leave(i) {
				m.Order.remove(test.of(i))
			}
		}
		m.is = slices.Collect(m.Ascend(0))
		m.check(t)
		if told := m.Bytes(); int64(m.room()) > 3*told+1000 {
			t.Errorf("%s: %d members take %d bytes, told are %d", name, m.Len(), m.room(), told)
		}
	}
}

// TestOrderOfLargeCopies: a copy of a large member is made only if that is to be changed.
func TestOrderOfLargeCopies(t *testing.T) {
	o := NewOrder()
	large := Scored{1, strings.Repeat("x", 1<<20)}
	o.add(large)
	still := o.Copy()
	for name, change := range map[string]func(){
		"a member behind it": func() { o.add(Scored{2, "b"}) }, "its end": func() { o.remove(large) },
	} {
		if n := allocated(change); n > 1<<16 {
			t.Errorf("%s allocates %d bytes", name, n)
		}
	}
	if o.Len() != 1 || still.Len() != 1 || still.At(0) != large {
		t.Errorf("%d members, %d in the copy", o.Len(), still.Len())
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestOrderOf: the order of a body is that of its members.
func TestOrderOf(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100, 300, 10_000} {
		var body []byte
		m := orderModel{Order: NewOrder()}
		for i := range n {
			s := Scored{float64(i * 7919 % 13), fmt.Sprint("m", i)}
			body = Append(body, s.Element())
			m.add(s)
		}
		m.check(t)
		m.Order = OrderOf(string(body))
		m.bytes = 0
		if got := slices.Collect(m.Ascend(0)); !slices.Equal(got, m.is) {
			t.Errorf("%d members: %.200v", n, got)
		}
	}
}
