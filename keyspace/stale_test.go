package keyspace

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// liveHeap is what is in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestNoStaleItems: when items are overwritten, the store lets go of what they were, whether they came
// in the order of their keys or were loaded from a file in that order. buntdb's tree would keep them.
func TestNoStaleItems(t *testing.T) {
	const items, size = 5000, 2000
	path := filepath.Join(t.TempDir(), "p.db")
	p := &partition{}
	table := newTable(1, p)
	write := func(s *store, n int) {
		t.Helper()
		for i := range items {
			key := fmt.Sprintf("1:%06d", i)
			it := Item{Kind: Document, Body: strings.Repeat("x", size), TS: int64(n), Version: 1}
			rec := string(appendRecord(nil, key, it))
			e := table.find(key[len("1:"):])
			if e == nil {
				e = table.insert(key, rec, it)
			} else {
				table.replace(e, key, rec, it)
			}
			p.touch(table, e)
		}
		ops := p.capture()
		new(arranger).arrange(ops)
		if err := s.apply(ops); err != nil {
			t.Fatal(err)
		}
	}
	before := liveHeap()
	check := func(when string) {
		t.Helper()
		if held := liveHeap() - before; held > items*(size+300)*5/4 {
			t.Errorf("%s: %d bytes are held for %d items of %d", when, held, items, size)
		}
	}
	s, err := openStore(path, zerolog.Nop(), 0)
	if err != nil {
		t.Fatal(err)
	}
	write(s, 1)
	check("written")
	write(s, 2)
	check("overwritten")
	// Compaction leaves a file in the order of the keys.
	if err := errors.Join(s.sync(), s.compact(), s.close()); err != nil {
		t.Fatal(err)
	}
	if s, err = openStore(path, zerolog.Nop(), 0); err != nil {
		t.Fatal(err)
	}
	table = newTable(1, p)
	err = s.load(func(key, rec string) error {
		it, _, err := decodeRecord(key, rec)
		table.insert(key, rec, it).mark(stored)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check("loaded")
	write(s, 3)
	check("loaded and overwritten")
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}
