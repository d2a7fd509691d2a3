package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// TestCaptureInPieces runs a random history between the pieces of checkpoints and within compactions. A crash
// at any moment leaves the state of the model. So does an undisturbed checkpoint in the stores alone, and a
// compaction then leaves no waste.
func TestCaptureInPieces(t *testing.T) {
	t.Parallel()
	for n := range drill.Pick(1, 3, 40) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, drill.Rand(t))
			for range 40 {
				h.steps(30)
				h.checkpoint(func() { h.steps(4) })
				if h.r.IntN(2) == 0 {
					h.compact(func() { h.steps(4) })
				}
				if h.r.IntN(4) == 0 {
					h.kill()
				}
				if h.r.IntN(4) == 0 {
					h.checkpoint(func() {})
					h.checkStores()
					h.compact(func() {})
					h.checkStores()
					h.checkWaste()
				}
				if h.r.IntN(8) == 0 {
					h.o.reopen()
					h.inPieces()
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// history is a keyspace and its model: states of items by container and id. Half of the bodies are large.
type history struct {
	t      *testing.T
	r      *rand.Rand
	o      *opened
	model  map[string]map[string]string
	beside func() // called between the pieces of a checkpoint, with checkpoint.mu held
	writes int
}

func newHistory(t *testing.T, r *rand.Rand) *history {
	h := &history{t: t, r: r, model: make(map[string]map[string]string), beside: func() {}}
	h.o = open(t, func(opt *Options) { opt.Partitions = 2 })
	h.o.storage.Lock()
	h.inPieces()
	h.o.storage.Unlock()
	for _, name := range []string{"a", "b", "c"} {
		h.model[name] = make(map[string]string)
		h.o.policy(name, expiry.Forever)
	}
	return h
}

// inPieces makes checkpoints capture few items at a time, and call beside between.
func (h *history) inPieces() {
	opt := &h.o.storage.Options
	opt.Piece, opt.Between = 1+h.r.IntN(4), func() { h.beside() }
}

// checkpoint makes a checkpoint and calls beside between its pieces. Checkpoints in the background, after a
// drop, are undisturbed.
func (h *history) checkpoint(beside func()) {
	h.t.Helper()
	h.o.storage.Lock()
	defer h.o.storage.Unlock()
	h.beside = beside
	defer func() { h.beside = func() {} }()
	drill.Check(h.t, h.o.storage.SaveLocked())
}

// compact compacts a store and calls beside between the pieces of its items.
func (h *history) compact(beside func()) {
	h.t.Helper()
	h.o.storage.Lock()
	defer h.o.storage.Unlock()
	h.beside = beside
	defer func() { h.beside = func() {} }()
	drill.Check(h.t, h.o.storage.RewriteStore(h.o.storage.Store(h.r.IntN(2)), nil))
}

// checkWaste checks that a compaction of all stores leaves only the items in memory.
func (h *history) checkWaste() {
	h.t.Helper()
	for _, p := range h.o.partitions {
		drill.Check(h.t, h.o.storage.CompactStore(h.o.storage.Store(p.Number), nil))
		if size := h.o.storage.Store(p.Number).Size(); size != p.Shard.LiveBytes()+aof.SealSize {
			h.t.Errorf("a store of %d bytes takes %d", p.Shard.LiveBytes(), size)
		}
	}
}

// steps does up to most random steps.
func (h *history) steps(most int) {
	h.t.Helper()
	for range h.r.IntN(most + 1) {
		h.step()
	}
	drill.Report(h.t, h.o.Check())
}

func (h *history) step() {
	var tx Tx
	if n := h.r.IntN(60); n >= 3 {
		var ids []string
		for range 1 + h.r.IntN(3) {
			ids = append(ids, fmt.Sprint("id-", h.r.IntN(25)))
		}
		h.o.BeginKeys(&tx, ids)
		before := h.copy()
		for _, id := range ids {
			h.change(&tx, id)
		}
		h.end(&tx, before)
		return
	}
	h.o.BeginAll(&tx)
	before := h.copy()
	for range 1 + h.r.IntN(3) {
		h.change(&tx, fmt.Sprint("id-", h.r.IntN(25)))
		h.rearrange(&tx)
	}
	h.end(&tx, before)
}

// end commits a transaction or rolls it back.
func (h *history) end(tx *Tx, before map[string]map[string]string) {
	if h.r.IntN(5) == 0 {
		tx.Rollback()
		h.model = before
	} else if err := h.o.Wait(tx.Close()); err != nil {
		h.t.Error(err)
	}
}

func (h *history) copy() map[string]map[string]string {
	all := make(map[string]map[string]string)
	for name, items := range h.model {
		all[name] = maps.Clone(items)
	}
	return all
}

func (h *history) name() string { return []string{"a", "b", "c"}[h.r.IntN(3)] }

// change writes an item or deletes it, or both, in any order.
func (h *history) change(tx *Tx, id string) {
	name := h.name()
	c := tx.Container(name)
	for range 1 + h.r.IntN(2) {
		if h.r.IntN(3) == 0 {
			tx.Delete(c, id)
			delete(h.model[name], id)
			continue
		}
		h.writes++
		body, end := fmt.Sprint(h.writes), h.o.clock.Now()+1e9+int64(h.writes)
		if h.r.IntN(2) == 0 {
			body = fmt.Sprintf("%0*d", memtable.LargeBody+h.r.IntN(3)-1, h.writes)
		}
		if it, ok := tx.Get(c, id); ok && h.r.IntN(2) == 0 {
			body = it.Body // only the header is written
		}
		tx.Put(c, id, Plain, body, end)
		h.model[name][id] = stateOf(body, end)
	}
}

// rearrange empties, drops or exchanges containers.
func (h *history) rearrange(tx *Tx) {
	name, other := h.name(), h.name()
	switch h.r.IntN(3) {
	case 0:
		tx.Flush(tx.Container(name))
		clear(h.model[name])
	case 1:
		tx.Drop(tx.Container(name))
		tx.CreateContainer(name, expiry.Forever, expiry.Strict)
		clear(h.model[name])
	case 2:
		tx.Swap(tx.Container(name), tx.Container(other))
		h.model[name], h.model[other] = h.model[other], h.model[name]
	}
}

// kill opens the files that a kill at this moment leaves.
func (h *history) kill() {
	h.t.Helper()
	dir := newDir(h.o.opt.FS)
	h.o.storage.Lock() // files change in the background
	copyFolder(h.t, h.o.opt.FS, h.o.opt.Dir, dir)
	h.o.storage.Unlock()
	opt := h.o.opt
	opt.Dir = dir
	after := &opened{t: h.t, clock: h.o.clock, opt: opt}
	after.start()
	h.compare("after a crash", after.dump())
	after.stop()
}

// stateOf describes an item in a few words.
func stateOf(body string, end int64) string {
	return fmt.Sprintf("%d bytes %s until %d", len(body), strings.TrimLeft(body, "0"), end)
}

func (h *history) compare(when string, found map[place]Item) {
	h.t.Helper()
	n := 0
	for name, items := range h.model {
		n += len(items)
		for id, body := range items {
			it := found[place{name, id}]
			if got := stateOf(it.Body, it.ExpireAt); got != body {
				h.t.Errorf("%s %s of %s is %s, not %s", when, id, name, got, body)
			}
		}
	}
	if n != len(found) {
		h.t.Errorf("%s there are %d items, not %d", when, len(found), n)
	}
}

// checkStores compares the stores with the model.
func (h *history) checkStores() {
	h.t.Helper()
	h.o.storage.Lock()
	defer h.o.storage.Unlock()
	var tx Tx
	h.o.BeginAll(&tx)
	defer tx.Close()
	names := make(map[uint32]string)
	for name, c := range h.o.catalogue.ByName {
		names[c.number] = name
	}
	found := make(map[place]Item)
	for _, p := range h.o.partitions {
		for key, it := range storedItems(h.t, h.o.opt.FS, h.o.storage.Store(p.Number)) {
			k, err := record.SplitKey(key)
			drill.Check(h.t, err)
			found[place{names[k.Container], k.ID}] = it
		}
	}
	h.compare("in the stores", found)
}

// TestCaptureEnds: a capture ends, however much is written between its pieces.
func TestCaptureEnds(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	written, captured := 0, 0
	write := func(n int) {
		for range n {
			written++
			o.put("0", fmt.Sprint(written), "{}", expiry.Inherit)
		}
	}
	write(100)
	o.storage.Lock()
	o.storage.Options.Piece, o.storage.Options.Between = 10, func() {
		if captured++; captured > 1000 {
			t.FailNow()
		}
		write(20)
	}
	o.storage.Unlock()
	drill.Check(t, o.Save())
	o.storage.Lock()
	o.storage.Options.Between = runtime.Gosched
	o.storage.Unlock()
	if got := storedItems(t, o.opt.FS, o.storage.Store(0)); len(got) < 100 || len(got) >= written {
		t.Errorf("after %d pieces %d items of %d are in the store", captured, len(got), written)
	}
}
