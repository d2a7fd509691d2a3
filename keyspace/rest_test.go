package keyspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A compaction rests when it has written a piece of the file, and when it has read some of it.
func TestCompactionRests(t *testing.T) {
	const items = 30 * shrinkPiece
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	var ops []op
	for i := range items {
		ops = append(ops, set(fmt.Sprintf("1:%06d", i), "some text that is as good as any other"))
	}
	if err := s.apply(ops); err != nil {
		t.Fatal(err)
	}
	if err := s.sync(); err != nil {
		t.Fatal(err)
	}
	written := make(map[int64]bool) // sizes of the new file in a rest
	read := 0
	s.rest = func(bytes int64) bool {
		switch fi, err := os.Stat(path + ".tmp"); {
		case err == nil:
			written[fi.Size()] = true
			if piece := s.live.Load() / items * shrinkPiece; bytes != piece {
				t.Errorf("a rest for %d bytes, not for %d", bytes, piece)
			}
		case bytes == 1<<20/8:
			read++
		default:
			time.Sleep(time.Millisecond) // Shrink has not begun
		}
		return true
	}
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	if len(written) < 3 || read != int(s.live.Load()>>20) {
		t.Errorf("it rested at %d sizes of the new file and %d times as it read it", len(written), read)
	}
	if len(contents(t, s)) != items {
		t.Error("items are missing")
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestsAreAsLongAsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hurry := make(chan struct{})
		rest := atPace(1<<20, hurry)
		start := time.Now()
		if !rest(3<<20) || time.Since(start) != 3*time.Second {
			t.Errorf("it was a rest of %v", time.Since(start))
		}
		close(hurry)
		start = time.Now()
		if rest(3<<20) || time.Since(start) != 0 {
			t.Errorf("in a hurry it was one of %v", time.Since(start))
		}
	})
}

// While there is more waste than there should be nothing rests.
func TestTooMuchWasteIsHurriedAway(t *testing.T) {
	when := Compaction{Percentage: 100, MinSize: 1000}
	for _, test := range []struct {
		live, size int64
		exceeded   bool
	}{{500, 999, false}, {600, 1200, false}, {600, 1201, true}, {400, 999, false}, {0, 1000, true}} {
		s := new(store)
		s.live.Store(test.live)
		s.bytes.Store(test.size)
		if is := when.exceeded([]*store{s}); is != test.exceeded {
			t.Errorf("%d bytes of %d live: %t", test.live, test.size, is)
		}
	}
}

// Nor does anything while a checkpoint waits for it.
func TestNoRestsWhileTheJournalWaits(t *testing.T) {
	o := open(t)
	rest := o.compactionRests(DefaultCompaction)
	if !rest(1) {
		t.Error("there are no rests although the journal is small")
	}
	size := o.journal.total.Swap(2 * o.journal.limit.Load())
	if rest(1) {
		t.Error("there is to be another rest")
	}
	o.journal.total.Store(size)
}
