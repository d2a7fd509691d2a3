package datadir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// journalName is the name of a journal's file.
func journalName(n int) string { return fmt.Sprintf("journal-%012d.db", n) }

// tornFile makes an end that was cut off at a moment in ms after aoftest.Epoch. It is sparse.
func tornFile(t *testing.T, dir, file string, at int, size int64) string {
	t.Helper()
	name := fmt.Sprintf("%s.torn-%d", file, aoftest.Epoch+at)
	path := filepath.Join(dir, name)
	drill.Check(t, os.WriteFile(path, nil, 0o600))
	drill.Check(t, os.Truncate(path, size))
	return name
}

// kept limits the torn ends of a folder, and returns the names that stay and the log.
func kept(t *testing.T, dir string, began int) (names []string, log string) {
	t.Helper()
	var b bytes.Buffer
	drill.Check(t, LimitTorn(vfs.OS, dir, int64(aoftest.Epoch+began), zerolog.New(&b)))
	entries, err := os.ReadDir(dir)
	drill.Check(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, b.String()
}

func TestOldTornEndsAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []string
	for n := range maxTornFiles + 5 {
		all = append(all, tornFile(t, dir, journalName(n+1), n, 10))
	}
	names, log := kept(t, dir, 1_000_000)
	if strings.Join(names, " ") != strings.Join(all[5:], " ") {
		t.Errorf("kept %d: %q …", len(names), names[0])
	}
	for _, gone := range all[:5] {
		if !strings.Contains(log, gone) {
			t.Errorf("%s is gone, and nothing was said: %s", gone, log)
		}
	}
	if strings.Count(log, "\n") != 5 {
		t.Errorf("5 are gone: %s", log)
	}
	if names, log = kept(t, dir, 1_000_000); len(names) != maxTornFiles || log != "" {
		t.Errorf("another start leaves %d: %s", len(names), log)
	}
}

func TestTornEndsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tornFile(t, dir, CatalogueName, 1, 30<<20)
	tornFile(t, dir, CatalogueName, 2, maxTornBytes)
	small := tornFile(t, dir, PartitionName(0), 3, 10<<20)
	newest := tornFile(t, dir, PartitionName(1), 4, maxTornBytes-20<<20)
	oldest := tornFile(t, dir, PartitionName(2), 0, 10<<20) // it fits again
	if names, _ := kept(t, dir, 100); strings.Join(names, " ") != strings.Join([]string{small, newest, oldest}, " ") {
		t.Errorf("kept %v", names)
	}
}

// The newest end stays whatever its size, and so do all of the present start.
func TestTornEndsThatStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	huge := tornFile(t, dir, PartitionName(0), 5, maxTornBytes+1)
	if names, log := kept(t, dir, 100); len(names) != 1 || names[0] != huge || log != "" {
		t.Errorf("kept %v: %s", names, log)
	}
	more := tornFile(t, dir, PartitionName(1), 6, maxTornBytes+1)
	if names, log := kept(t, dir, 5); len(names) != 2 || log != "" {
		t.Errorf("kept %v: %s", names, log)
	}
	if names, _ := kept(t, dir, 100); len(names) != 1 || names[0] != more {
		t.Errorf("kept %v", names)
	}
	// What only looks like one, or is not ours, is none of our business.
	for n := range maxTornFiles + 1 {
		tornFile(t, dir, journalName(1), 1000+n, 0)
	}
	others := []string{"notes.torn-1700000000000", "partition-000.db.torn-", "partition-000.db.torn-x", "a.db.torn-1-y"}
	for _, name := range others {
		drill.Check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if names, _ := kept(t, dir, 1_000_000); len(names) != maxTornFiles+len(others) {
		t.Errorf("%d are left", len(names))
	}
}
