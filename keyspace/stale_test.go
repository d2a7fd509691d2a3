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
	write := func(s *store, n int) {
		t.Helper()
		p := &partition{}
		table := newTable(1, p)
		for i := range items {
			key := fmt.Sprintf("1:%06d", i)
			it := Item{Kind: Document, Body: strings.Repeat("x", size), TS: int64(n), Version: 1}
			e := table.insert(key, string(appendRecord(nil, key, it)), it)
			p.touch(table, e)
		}
		if err := s.apply(p.capture()); err != nil {
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
	if err := s.load(func(string, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	check("loaded")
	write(s, 3)
	check("loaded and overwritten")
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}
