package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/tidwall/buntdb"
)

// readBodies reads a store's file without buntdb and gives the bodies of what is in it by key.
func readBodies(t *testing.T, path string) map[string]string {
	t.Helper()
	s, err := checkStore(path, quiet, epoch, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	err = s.read(func(key, rec string, deleted bool) error {
		if deleted {
			delete(all, key)
			return nil
		}
		it, _, err := decodeRecord(key, rec)
		all[key] = it.Body
		return err
	})
	if err != nil || s.file.db != nil {
		t.Fatal("read:", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReadingAStoreIsWhatBuntdbReads: with items of all sizes around those of the buffers, overwritten and
// deleted, in several transactions, and after a compaction.
func TestReadingAStoreIsWhatBuntdbReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	want := make(map[string]string)
	for range 20 {
		var ops []op
		for range 100 {
			key := fmt.Sprintf("%d:%s", random.IntN(3), strings.Repeat("k", random.IntN(40)))
			if random.IntN(100) == 0 {
				key += strings.Repeat("k", 60_000)
			}
			if random.IntN(4) == 0 {
				ops = append(ops, del(key))
				delete(want, key)
				continue
			}
			size := random.IntN(400)
			switch random.IntN(40) {
			case 0:
				size = readSize - 200 + random.IntN(400)
			case 1:
				size = textBlock/8 - 200 + random.IntN(400)
			}
			body := strings.Repeat(string(rune('a'+random.IntN(26))), size)
			ops = append(ops, set(key, body))
			want[key] = body
		}
		applied(t, s, ops...)
	}
	for _, compacted := range []bool{false, true} {
		if compacted {
			s = mustOpenStore(t, path)
			if err := errors.Join(s.sync(), s.compact()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		if got := readBodies(t, path); !maps.Equal(got, want) {
			t.Errorf("compacted %v: %d items are read, %d are in it, or others", compacted, len(got), len(want))
		}
	}
	checkBodies(t, mustOpenStore(t, path), want)
}

// TestTextsAreInMemoryOnce: what a start has read goes when buntdb has read the same, and what has been
// written since stays as it is.
func TestTextsAreInMemoryOnce(t *testing.T) {
	o := open(t)
	const items = 300
	for i := range items {
		o.put("0", fmt.Sprintf("a%d", i), `{"is":"old"}`, 0)
		o.put("1", fmt.Sprintf("b%d", i), `{"is":"old"}`, 0)
	}
	o.stop()
	o.opt.hold = make(chan struct{})
	o.start()
	for i := 0; i < items; i += 3 {
		o.put("0", fmt.Sprintf("a%d", i), `{"is":"new"}`, 0)
		o.delete("0", fmt.Sprintf("a%d", i+1))
	}
	o.catalogueTx(func(tx *Tx) { tx.Swap(tx.Container("1"), tx.Container("2")) })
	before := o.dump()
	close(o.opt.hold)
	o.attachStores()
	if after := o.dump(); !maps.Equal(after, before) {
		t.Error("other items are there than before")
	}
	o.opt.hold = nil
	shared := 0
	for _, p := range o.partitions {
		err := p.store.file.db.View(func(tx *buntdb.Tx) error {
			for _, c := range o.catalogue.byName {
				table := c.tables[p.number]
				for i := 0; table != nil && i < table.roster.berths.n; i++ {
					h, _ := table.roster.at(i)
					if h == 0 {
						continue
					}
					e := table.slab.at(h)
					rec, err := tx.Get(e.key())
					if err != nil && err != buntdb.ErrNotFound {
						return err
					}
					switch {
					case strings.Contains(e.rec(), "new") && rec == e.rec():
						t.Errorf("%s was known to the store before a checkpoint", e.key())
					case strings.Contains(e.rec(), "old") && unsafe.StringData(rec) != e.recStart:
						t.Errorf("%s has a text of its own", e.key())
					case strings.Contains(e.rec(), "old"):
						shared++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := items + items/3; shared != want {
		t.Errorf("%d items share their texts with the store, not %d", shared, want)
	}
}

// TestBuntdbMustReadWhatTheStartHasRead: if it has not as many items, nothing is written to the store.
func TestBuntdbMustReadWhatTheStartHasRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "1"), set("1:b", "2"))
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	for items, good := range map[int]bool{1: false, 2: true, 3: false} {
		s, err := checkStore(path, quiet, epoch, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.items, s.share = items, func([]op) {}
		if err := s.apply([]op{set("1:a", "1")}); (err == nil) != good || (s.broken == nil) != good {
			t.Errorf("with %d items expected: %v", items, err)
		}
		s.close()
	}
}

// TestQuickTakesWhatNextTakes: each file that differs in one byte is taken as a command by both or neither.
func TestQuickTakesWhatNextTakes(t *testing.T) {
	good := setHead + "$11\r\n1:123456789\r\n$10\r\n0123456789\r\n"
	takenBy := func(file string) (quick, next bool) {
		c := newCommandReader(strings.NewReader(file), 0, int64(len(file)))
		c.r.Peek(1) // fills the buffer
		_, _, quick = c.quick()
		c = newCommandReader(strings.NewReader(file), 0, int64(len(file)))
		cmd, err := c.next()
		return quick, err == nil && !cmd.del && c.value(cmd, nil) == nil
	}
	if quick, next := takenBy(good); !quick || !next {
		t.Fatalf("a good command: %v, %v", quick, next)
	}
	tried := 0
	for at := range good {
		for _, b := range "0123456789$*\r\n+-x" {
			for _, file := range []string{good[:at] + string(b) + good[at+1:], good[:at] + string(b) + good[at:], good[:at] + good[at+1:], good[:at]} {
				if quick, next := takenBy(file); quick != next {
					t.Errorf("%q: %v, %v", file, quick, next)
				}
				tried++
			}
		}
	}
	if tried < 1000 {
		t.Error("only", tried)
	}
}
