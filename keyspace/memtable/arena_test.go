package memtable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// putBody puts a plain key that never dies.
func putBody(t *Table, id, body string) *Entry {
	return put(t, id, record.Item{Kind: record.Plain, Body: body, TS: 1, ExpireAt: expiry.Never})
}

// TestArena writes items of all sizes over and over. It compares the items and the memory they take with a
// model. Views stay as they were.
func TestArena(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	table, shard := newTestTable()
	bodies, kept := make(map[string]string), make(map[string]string) // views, and what they should be
	most := int64(0)
	for step := range 60_000 {
		id := fmt.Sprint(r.IntN(2000))
		if r.IntN(4) == 0 {
			remove(table, shard, id)
			delete(bodies, id)
			continue
		}
		size := r.IntN(300)
		switch r.IntN(400) {
		case 0:
			size = r.IntN(3 * segmentSize) // mostly has a segment of its own
		case 1:
			size = largeAlloc + r.IntN(3) - 60
		}
		body := strings.Repeat(string(rune('a'+step%26)), size)
		e := putBody(table, id, body)
		shard.Clean()
		bodies[id] = body
		if step%100 == 0 {
			kept[table.Item(e).Body] = strings.Clone(body)
		}
		most = max(most, table.arena.used-table.arena.dead)
		if over := table.arena.used - (most*deadShare/(deadShare-1) + 2*deadSlack); over > 2*segmentSize {
			t.Fatalf("step %d: the arena has %d bytes, %d of them dead", step, table.arena.used, table.arena.dead)
		}
	}
	drill.Check(t, shard.Check())
	if table.Len() != len(bodies) {
		t.Fatalf("%d items, want %d", table.Len(), len(bodies))
	}
	for id, body := range bodies {
		if e := table.Find(id); e == nil || table.Item(e).Body != body {
			t.Fatalf("%q is not what was written last", id)
		}
	}
	for view, want := range kept {
		if view != want {
			t.Fatalf("a view has changed from %.20q to %.20q", want, view)
		}
	}
	for id := range bodies {
		remove(table, shard, id)
	}
	if a := &table.arena; a.used != 0 || a.dead != 0 || len(a.segments) != 0 || shard.Garbage() != 0 {
		t.Errorf("an empty arena has %d bytes in %d segments and %d of garbage", a.used, len(a.segments), shard.Garbage())
	}
}

// TestArenaOfOne: a table of one small item takes little, however often it is written.
func TestArenaOfOne(t *testing.T) {
	t.Parallel()
	table, shard := newTestTable()
	for range 1000 {
		putBody(table, "only", "1")
		shard.Clean()
		held := 0
		for _, s := range table.arena.segments {
			held += cap(s.data)
		}
		if held > deadSlack+256 {
			t.Fatalf("%d bytes for one small item", held)
		}
	}
}

// TestBriefItems: items that are removed at once, beside many that stay, share segments.
func TestBriefItems(t *testing.T) {
	t.Parallel()
	table, shard := newTestTable()
	for i := range 5000 {
		putBody(table, fmt.Sprint(i), strings.Repeat("x", 200))
	}
	opened, last := 0, (*byte)(nil)
	const brief = 10_000
	for range brief {
		putBody(table, "brief", "1")
		head := table.arena.segments[table.arena.head].data
		if at := &head[:cap(head)][cap(head)-1]; at != last {
			opened, last = opened+1, at
		}
		remove(table, shard, "brief")
		shard.Clean()
	}
	if most := brief * 100 / segmentSize; opened > most {
		t.Errorf("%d items have opened %d segments, want at most %d", brief, opened, most)
	}
	for i := range 5000 {
		remove(table, shard, fmt.Sprint(i))
	}
	if a := &table.arena; a.used != 0 || len(a.segments) != 0 {
		t.Errorf("an empty arena has %d bytes in %d segments", a.used, len(a.segments))
	}
	drill.Report(t, shard.Check())
}

// TestReleaseInOrder: a segment in which all is dead is released without copies.
func TestReleaseInOrder(t *testing.T) {
	t.Parallel()
	table, shard := newTestTable()
	var last *byte
	for i := range 5000 {
		e := putBody(table, fmt.Sprint(i), strings.Repeat("x", 200))
		last = unsafe.StringData(table.Key(e))
	}
	for i := range 3000 {
		remove(table, shard, fmt.Sprint(i))
	}
	if at := unsafe.StringData(table.Key(table.Find("4999"))); at != last {
		t.Error("the last item was copied")
	}
	if table.arena.dead > segmentSize {
		t.Errorf("%d bytes of dead items take memory", table.arena.dead)
	}
}

// TestCleanFurtherEnds: so much dies during a thorough cleaning that something is always left.
func TestCleanFurtherEnds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	table, shard := newTestTable()
	overwrite := func() {
		for range 1000 {
			putBody(table, fmt.Sprint(r.IntN(3000)), strings.Repeat("x", 100))
			shard.Clean()
		}
	}
	for range 10 {
		overwrite()
	}
	rounds := 0
	for done, more := 0, true; more; rounds++ {
		if rounds > 1000 {
			t.Fatal("it does not end")
		}
		overwrite()
		done, more = table.CleanFurther(done)
	}
	if rounds < 2 {
		t.Errorf("%d rounds: there was nothing to clean", rounds)
	}
}
