package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

func TestRemoveAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := tornFile(t, dir, CatalogueName, 1000, 10)
	young := tornFile(t, dir, journalName(3), 1001, 10)
	for name, at := range map[string]int64{"repair-report.txt": 2000, "repair-doubtful.ndjson": 2001, "mine.txt": 1, "partition-000.db": 1} {
		path := filepath.Join(dir, name)
		drill.Check(t, os.WriteFile(path, nil, 0o600))
		written := time.UnixMilli(aoftest.Epoch + at)
		drill.Check(t, os.Chtimes(path, written, written))
	}
	drill.Check(t, os.Mkdir(filepath.Join(dir, "repair-folder"), 0o700))
	var log strings.Builder
	for range 2 { // the second finds nothing
		drill.Check(t, RemoveAside(vfs.OS, dir, aoftest.Epoch+1000, aoftest.Epoch+2000, zerolog.New(&log)))
	}
	var names []string
	entries, err := os.ReadDir(dir)
	drill.Check(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join([]string{young, "mine.txt", "partition-000.db", "repair-doubtful.ndjson", "repair-folder"}, " "); got != want {
		t.Errorf("left are %s, not %s", got, want)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), old) || !strings.Contains(log.String(), "repair-report.txt") {
		t.Error(log.String())
	}
}
