package keyspace

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var cutPoints = flag.Int("cut-points", 200, "at how many of the last 64 KiB of a file the tests of large files cut it; 0 for all")

// eachCut calls f with the lengths of what is left of a file that is cut within its last 64 KiB.
func eachCut(t *testing.T, size int, f func(left int)) {
	from, tried := max(size-64<<10, 0), 0
	for left := from; left <= size; left++ {
		if *cutPoints == 0 || rand.IntN(size-from+1) < *cutPoints {
			f(left)
			tried++
		}
	}
	t.Logf("cut at %d places", tried)
}

// A large journal that is cut anywhere holds the commits that are left whole.
func TestLargeJournalCutAnywhere(t *testing.T) {
	recordFsyncs(t) // nothing here waits for the disk
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	var ends []int // of commits
	var entries []string
	for n := range 400 {
		rec := strings.Repeat(fmt.Sprint(n), 1+rand.IntN(200))
		j.put(t, fmt.Sprint("1:", n), rec)
		ends = append(ends, int(j.size()))
		entries = append(entries, fmt.Sprintf("1:%d=%s", n, rec))
		if n%100 == 50 {
			if err := j.sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	content := read(t, filepath.Join(dir, journalFile(1)))
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), journalFile(1))
	eachCut(t, len(content), func(left int) {
		if err := os.WriteFile(path, content[:left], 0o600); err != nil {
			t.Fatal(err)
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= left {
			whole++
		}
		checkReplayed(t, filepath.Dir(path), entries[:whole]...)
		if whole == 0 || ends[whole-1] < left {
			end := 0
			if whole > 0 {
				end = ends[whole-1]
			}
			checkKept(t, path, content[end:left])
		}
	})
}

// A large store that is cut anywhere behind its last seal is as that seal has confirmed it. One that is
// cut before it, which no crash does, is as an earlier seal has confirmed it, or refused.
func TestLargeStoreCutAnywhere(t *testing.T) {
	recordFsyncs(t)
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	var seals []int // ends
	var confirmed []map[string]string
	bodies := make(map[string]string)
	for n := range 400 {
		key, body := fmt.Sprint("1:", rand.IntN(100)), strings.Repeat("x", rand.IntN(400))
		bodies[key] = body
		if err := s.apply([]op{set(key, body)}); err != nil {
			t.Fatal(err)
		}
		if n%60 == 0 {
			if err := s.sync(); err != nil {
				t.Fatal(err)
			}
			seals = append(seals, int(s.size()))
			confirmed = append(confirmed, maps.Clone(bodies))
		}
	}
	content := read(t, path)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "partition-000.db")
	eachCut(t, len(content), func(left int) {
		if err := os.WriteFile(path, content[:left], 0o600); err != nil {
			t.Fatal(err)
		}
		var want map[string]string
		end := sealSize
		for n, at := range seals {
			if at <= left {
				want, end = confirmed[n], int64(at)
			}
		}
		s, err := openStore(path, quiet, epoch)
		if err != nil {
			if int64(left) >= sealSize {
				t.Fatalf("cut at %d: %v", left, err)
			}
			return
		}
		checkBodies(t, s, want)
		if err := s.file.close(); err != nil {
			t.Fatal(err)
		}
		if end < int64(left) {
			checkKept(t, path, content[end:left])
		}
	})
}
