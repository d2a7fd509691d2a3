package keyspace

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A compaction rests when it has read some of the file, and when it has written some of the new one, until
// there are to be no other rests.
func TestCompactionRests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path, nil)
	var ops []op
	for i := range 100 {
		o := set(fmt.Sprintf("2:%06d", i), strings.Repeat("x", 20_000))
		ops, live[o.key] = append(ops, o), o.rec
	}
	applied(t, s, ops...)
	for _, most := range []int{1000, 3} {
		var reading, writing int64 // bytes
		n := 0
		err := s.compact(nil, func(bytes int64) bool {
			if _, err := os.Stat(path + ".tmp"); err == nil {
				writing += bytes
			} else {
				reading += bytes
			}
			n++
			return n < most
		})
		if err != nil {
			t.Fatal(err)
		}
		if size := s.size(); most == 3 && n != 3 || most > 3 && (reading < size/readShare*7/10 || writing < size*9/10) {
			t.Errorf("it rested %d times, for %d bytes read and %d written of %d", n, reading, writing, size)
		}
		if !maps.Equal(contents(t, s), live) {
			t.Error("what lives is not what is left")
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// So does a backup, and copies every byte.
func TestBackupRests(t *testing.T) {
	content := []byte(strings.Repeat("mayfly", 5*stretchBytes/12) + "!") // two stretches and a half
	f, err := os.Open(plant(t, "a.db", content))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for most, want := range map[int][]int64{9: {stretchBytes, stretchBytes}, 1: {stretchBytes}} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var rested []int64
		size := int64(len(content) - 1) // what follows is newer
		err := frozenFile{f, size}.copyTo(dir, func(bytes int64) bool {
			rested = append(rested, bytes)
			return len(rested) < most
		})
		if err != nil || !slices.Equal(rested, want) {
			t.Errorf("it rested for %d bytes, want %d; %v", rested, want, err)
		}
		if got := read(t, filepath.Join(dir, "a.db")); !bytes.Equal(got, content[:size]) {
			t.Errorf("the copy has %d bytes, or others than the %d", len(got), size)
		}
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

// While compactions do not keep up nothing rests.
func TestTooMuchWasteIsHurriedAway(t *testing.T) {
	when := Compaction{Percentage: 100, MinSize: 1000}
	for _, test := range []struct {
		live, size int64
		exceeded   bool
	}{{500, 999, false}, {800, 1300, false}, {800, 1301, true}, {400, 999, false}, {0, 1000, true}} {
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
