package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// putText gives a table an item whose record has a body.
func (t *table) putText(p *partition, id, body string) (handle, *entry) {
	key := string(record.AppendKey(nil, t.number, id))
	it := Item{Kind: Plain, Body: body, TS: 1, ExpireAt: expiry.Never, Version: p.nextVersion()}
	return t.put(id, key, string(record.Append(nil, key, it)), it)
}

// TestArena writes texts of all sizes over and over, and compares what is there, and what it takes, with what
// there should be. What has been read once stays as it was.
func TestArena(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table, p := newTestTable()
	bodies, kept := make(map[string]string), make(map[string]string) // kept: views, and what they should say
	most := int64(0)
	for step := range 60_000 {
		id := fmt.Sprint(r.IntN(2000))
		if r.IntN(4) == 0 {
			table.testRemove(p, id)
			delete(bodies, id)
			continue
		}
		size := r.IntN(300)
		switch r.IntN(400) {
		case 0:
			size = r.IntN(3 * segmentSize) // has a segment of its own, mostly
		case 1:
			size = largeText + r.IntN(3) - 60
		}
		body := strings.Repeat(string(rune('a'+step%26)), size)
		_, e := table.putText(p, id, body)
		p.tidy()
		bodies[id] = body
		if step%100 == 0 {
			kept[table.item(e).Body] = strings.Clone(body)
		}
		most = max(most, table.arena.used-table.arena.dead)
		if over := table.arena.used - (most*deadShare/(deadShare-1) + 2*deadSlack); over > 2*segmentSize {
			t.Fatalf("step %d: the arena has %d bytes, %d of them dead", step, table.arena.used, table.arena.dead)
		}
	}
	if err := table.arena.check(&table.slab); err != nil {
		t.Fatal(err)
	}
	if table.count() != len(bodies) {
		t.Fatalf("%d items, want %d", table.count(), len(bodies))
	}
	for id, body := range bodies {
		if e := table.find(id); e == nil || table.item(e).Body != body {
			t.Fatalf("%q is not what was written last", id)
		}
	}
	for view, want := range kept {
		if view != want {
			t.Fatalf("a view has changed from %.20q to %.20q", want, view)
		}
	}
	for id := range bodies {
		table.testRemove(p, id)
	}
	if a := &table.arena; a.used != 0 || a.dead != 0 || len(a.segments) != 0 || p.garbage.Load() != 0 {
		t.Errorf("an arena of nothing has %d bytes in %d segments, %d of garbage are counted", a.used, len(a.segments), p.garbage.Load())
	}
}

// TestArenaOfOne: a table of one small item takes little, however often it is written.
func TestArenaOfOne(t *testing.T) {
	table, p := newTestTable()
	for range 1000 {
		table.putText(p, "only", "1")
		p.tidy()
		held := 0
		for _, s := range table.arena.segments {
			held += cap(s.data)
		}
		if held > deadSlack+256 {
			t.Fatalf("%d bytes for one small item", held)
		}
	}
}

// TestTextsThatDieInOrder: a segment in which all are dead is let go without a copy of anything.
func TestTextsThatDieInOrder(t *testing.T) {
	table, p := newTestTable()
	var last *byte
	for i := range 5000 {
		_, e := table.putText(p, fmt.Sprint(i), strings.Repeat("x", 200))
		last = unsafe.StringData(table.text(e))
	}
	for i := range 3000 {
		table.testRemove(p, fmt.Sprint(i))
	}
	if at := unsafe.StringData(table.text(table.find("4999"))); at != last {
		t.Error("the text of the last has been copied")
	}
	if table.arena.dead > segmentSize {
		t.Errorf("%d bytes of what has died take memory", table.arena.dead)
	}
}

// TestTidy: what is overwritten takes a little memory, and next to none after Tidy, which leaves alone what a
// transaction has locked.
func TestTidy(t *testing.T) {
	ks := open(t)
	var tx Tx
	put := func(round int) {
		for i := range 4000 {
			id := fmt.Sprint(i * 7919 % 4000)
			ks.BeginKey(&tx, id)
			tx.Put(tx.Container("plain"), id, Plain, strings.Repeat(string(rune('a'+round)), 100), expiry.Never)
			ks.Wait(tx.Close())
		}
	}
	ks.BeginAll(&tx)
	tx.CreateContainer("plain", expiry.Off, 0)
	tx.Close()
	for round := range 5 {
		put(round)
	}
	before := ks.Garbage()
	if before == 0 {
		t.Fatal("nothing is dead after all has been overwritten")
	}
	ks.BeginAll(&tx)
	tx.Tidy()
	if now := ks.Garbage(); now != before {
		t.Errorf("%d bytes of garbage were %d: a partition that is locked was touched", now, before)
	}
	tx.Close()
	ks.Tidy()
	if now := ks.Garbage(); now > before/4 {
		t.Errorf("%d bytes of garbage were %d", now, before)
	}
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
	ks.BeginSweep(&tx)
	cursor, n := uint64(0), 0
	for more := true; more; more = cursor != 0 {
		cursor = tx.Scan(tx.Container("plain"), cursor, 100, func(id string, it Item) {
			if n++; it.Body != strings.Repeat("e", 100) {
				t.Errorf("%q is %q", id, it.Body)
			}
		})
	}
	tx.Close()
	if n != 4000 {
		t.Errorf("%d items", n)
	}
}

// TestTidyWaitsForNobody: a transaction that holds partitions does not wait for others, in whatever order they
// come, to have them tidied.
func TestTidyWaitsForNobody(t *testing.T) {
	ks := open(t)
	for i := range 100 {
		ks.put("0", fmt.Sprint(i), "x", expiry.Never)
	}
	first, last := idIn(ks, 0), idIn(ks, len(ks.partitions)-1)
	var holder, tidier Tx
	ks.BeginKey(&holder, first)
	ks.BeginKey(&tidier, last)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tidier.Tidy()
		tidier.Close()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("waits for a partition while it holds another")
	}
	holder.Close()
	<-done
}

// idIn gives an id that belongs to a partition.
func idIn(ks *opened, number int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint(i); ks.partitionOf(id).number == number {
			return id
		}
	}
}

// TestTidyEnds: so much dies while it is cleaned that there would always be something left.
// TestTidyEnds: so much dies while it is cleaned that there would always be something left.
func TestTidyEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts, p := newTestTable()
	o := &pool{p: p, c: &Container{tables: []*table{texts}}}
	overwrite := func() {
		for range 1000 {
			texts.putText(p, fmt.Sprint(r.IntN(3000)), strings.Repeat("x", 100))
			p.tidy()
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
		done, more = o.tidy(done)
	}
	if rounds < 2 {
		t.Errorf("%d rounds: there was nothing to be cleaned", rounds)
	}
}
