package keyspace

import (
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// touch writes the body of an item again, with another end.
func (o *opened) touch(container, id string, own int64) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	c := tx.Container(container)
	it, ok := tx.Get(c, id)
	if !ok {
		o.t.Fatalf("there is no %q", id)
	}
	tx.Put(c, id, it.Kind, it.Body, own)
	o.commit(&tx)
}

// TestTouchJournalsNoBody: a write that leaves a large body as it is costs some bytes, in the journal and in
// memory. It counts after a kill, after a checkpoint, and after a compaction that came before one.
func TestTouchJournalsNoBody(t *testing.T) {
	t.Parallel()
	o := open(t)
	const touches, most = 20, 500 // bytes each
	body := strings.Repeat("x", 1<<20)
	o.put("0", "k", body, expiry.Inherit)
	o.save() // a compaction needs the body in the store
	first := o.dump()[place{"0", "k"}]
	before := o.journal.Size()
	for i := range touches {
		o.clock.Advance(time.Second)
		o.touch("0", "k", o.clock.Now()+int64(1e6+i))
	}
	if grown := o.journal.Size() - before; grown > touches*most {
		t.Errorf("the journal has grown by %d bytes", grown)
	}
	if took := o.Used(); took > int64(len(body))+100_000 {
		t.Errorf("%d bytes are in use", took)
	}
	want := o.dump()
	it := want[place{"0", "k"}]
	if it.TS != first.TS+touches*1000 || it.Version == first.Version || it.ExpireAt != it.TS+1e6+touches-1 || it.Body != body {
		t.Errorf("the item has time %d, version %d and end %d", it.TS, it.Version, it.ExpireAt)
	}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"before a checkpoint", func() {}},
		{"after a compaction before a checkpoint", func() { o.compactAll() }},
		{"after a checkpoint", func() { o.save() }},
		{"touched again", func() { o.touch("0", "k", expiry.Never) }},
		{"touched again and compacted", func() { o.compactAll() }},
		{"written anew", func() { o.put("0", "k", body+"y", expiry.Never); o.touch("0", "k", o.clock.Now()+77) }},
		{"deleted", func() { o.delete("0", "k") }},
	} {
		step.do()
		drill.Check(t, o.journal.CommitAll())
		dir := newDir(o.opt.FS)
		o.storage.Lock()
		copyFolder(t, o.opt.FS, o.opt.Dir, dir)
		o.storage.Unlock()
		opt := o.opt
		opt.Dir = dir
		after := &opened{t: t, clock: o.clock, opt: opt}
		after.start()
		compare(t, step.name, o.dump(), after.dump(), nil)
		after.stop()
	}
}

func (o *opened) save() {
	o.t.Helper()
	drill.Check(o.t, o.Save())
}

// compactAll compacts all stores without a checkpoint before.
func (o *opened) compactAll() {
	o.t.Helper()
	for _, p := range o.partitions {
		drill.Check(o.t, o.storage.CompactStore(o.storage.Store(p.Number), nil))
	}
}

// TestTouchWithinOneTransaction: what a transaction journals of an item that it both writes and touches.
func TestTouchWithinOneTransaction(t *testing.T) {
	t.Parallel()
	large, other := strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20)
	touch := func(tx *Tx, c *Container) {
		if it, ok := tx.Get(c, "k"); ok {
			tx.Put(c, "k", it.Kind, it.Body, tx.Now()+1000+int64(it.Version%7))
		}
	}
	put := func(body string) func(tx *Tx, c *Container) {
		return func(tx *Tx, c *Container) { tx.Put(c, "k", Plain, body, expiry.Never) }
	}
	del := func(tx *Tx, c *Container) { tx.Delete(c, "k") }
	for name, steps := range map[string][]func(tx *Tx, c *Container){
		"touched twice":                 {touch, touch},
		"written and touched":           {put(other), touch, touch},
		"touched and written":           {touch, put(other)},
		"touched, written and touched":  {touch, put(other), touch},
		"deleted, written and touched":  {del, put(other), touch},
		"touched and deleted":           {touch, del},
		"touched, written small":        {touch, put("small"), touch},
		"written small and large again": {put("small"), put(other), touch},
	} {
		for _, rolledBack := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := open(t)
				o.put("0", "k", large, expiry.Inherit)
				before := o.dump()
				var tx Tx
				o.BeginKey(&tx, "k")
				for _, step := range steps {
					step(&tx, tx.Container("0"))
				}
				if rolledBack {
					tx.Rollback()
					compare(t, "after the rollback", before, o.dump(), nil)
				} else {
					o.commit(&tx)
				}
				drill.Report(t, o.Check())
				want := o.dump()
				o.reopen()
				compare(t, "after a start", want, o.dump(), nil)
			})
		}
	}
}

// TestPreparedBodies: a prepared body is stored as it was, and forgotten with the transaction.
func TestPreparedBodies(t *testing.T) {
	t.Parallel()
	o := open(t)
	buffer := []byte(strings.Repeat("x", 1<<20)) // as that of a connection
	text := string(buffer)
	var tx Tx
	tx.Prepare(text)
	tx.Prepare("small")
	o.BeginKey(&tx, "k")
	it := tx.Put(tx.Container("0"), "k", Plain, text, expiry.Never)
	o.commit(&tx)
	if it.Body != text || tx.bodies.Len() != 0 {
		t.Errorf("%d bytes are stored, %d bodies are left", len(it.Body), tx.bodies.Len())
	}
	tx.Prepare(text)
	o.BeginKey(&tx, "k")
	tx.Get(tx.Container("0"), "k")
	if tx.Close(); tx.bodies.Len() != 0 {
		t.Error("a transaction that only reads keeps what was prepared")
	}
}
