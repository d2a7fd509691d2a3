package store

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

func copied(t *testing.T, s *Store, gone func(key, rec []byte) bool) (vfs.FS, uint32, int64) {
	t.Helper()
	to := vfstest.New()
	mark, end, err := Copy(to, path, CopyOptions{Scan: s.scan, Gone: gone})
	drill.Check(t, err)
	return to, mark, end
}

func TestCopyHasWhatLives(t *testing.T) {
	t.Parallel()
	s, live := wastefulStore(t, vfstest.New())
	defer s.Close()
	// An item that is deleted and set again, and one that is there twice, as after a crash.
	applied(t, s, aoftest.Del("1:id-1"), aoftest.Set("1:id-1", "again"), aoftest.Set("1:id-1", "again"))
	live["1:id-1"] = aoftest.Rec("1:id-1", "again")
	to, mark, end := copied(t, s, nil)
	if got := contents(t, s); !maps.Equal(got, live) {
		t.Fatal("the store has other items than the test")
	}
	if got := reopenedContents(t, to); !maps.Equal(got, live) {
		t.Errorf("%d items are copied, not %d, or others", len(got), len(live))
	}
	last, at, err := aof.Scan(strings.NewReader(string(vfstest.Read(t, to, path))), path, end, aof.Store, nil)
	if err != nil || at != end || last.Mark != mark || last.LSN != s.LSN() {
		t.Errorf("the copy ends at %d with %+v: %v", at, last, err)
	}
	if text := string(vfstest.Read(t, to, path)); strings.Count(text, "id-1\r\n") != 1 || strings.Contains(text, "del\r\n") {
		t.Error("waste is copied")
	}
}

func TestCopyLeavesOutWhatIsGone(t *testing.T) {
	t.Parallel()
	s, live := wastefulStore(t, vfstest.New())
	defer s.Close()
	to, _, _ := copied(t, s, func(key, rec []byte) bool {
		if live[string(key)] != string(rec) {
			t.Errorf("asked about %q, which is waste", key)
		}
		return strings.HasSuffix(string(key), "7")
	})
	maps.DeleteFunc(live, func(key, _ string) bool { return strings.HasSuffix(key, "7") })
	if got := reopenedContents(t, to); !maps.Equal(got, live) {
		t.Errorf("%d items are copied, not %d, or others", len(got), len(live))
	}
}

func TestCopyOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	s, err := open(vfstest.New())
	drill.Check(t, err)
	defer s.Close()
	if to, _, end := copied(t, s, nil); end != 2*aof.SealSize || len(reopenedContents(t, to)) != 0 {
		t.Errorf("the copy has %d bytes", end)
	}
}

func TestCopyThatFails(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, _ := wastefulStore(t, disk)
	defer s.Close()
	for i, failing := range []func(now bool){disk.FailWrites.Store, disk.FailSyncs.Store} {
		failing(true)
		if _, _, err := Copy(disk, fmt.Sprint(path, ".copy", i), CopyOptions{Scan: s.scan}); !errors.Is(err, vfstest.ErrDisk) {
			t.Errorf("it says %v", err)
		}
		failing(false)
	}
}

func TestWasteSince(t *testing.T) {
	t.Parallel()
	s, _ := wastefulStore(t, vfstest.New())
	other, _ := wastefulStore(t, vfstest.New())
	defer s.Close()
	defer other.Close()
	both := []*Store{s, other}
	if s.WasteSince() != 0 || WithOldestWaste(both, 1<<60) != nil {
		t.Error("a store has waste that was not noted")
	}
	s.NoteWaste(20)
	s.NoteWaste(30)
	other.NoteWaste(10)
	for latest, want := range map[int64]*Store{9: nil, 10: other, 19: other, 20: other} {
		if got := WithOldestWaste(both, latest); got != want {
			t.Errorf("up to %d it is another", latest)
		}
	}
	if got := WithOldestWaste(both[:1], 20); got != s {
		t.Error("the first to be noted does not count")
	}
	drill.Check(t, compact(other), s.Rewrite(0, nil, func(func(aof.Op)) error { return nil }))
	if s.WasteSince() != 0 || other.WasteSince() != 0 {
		t.Error("a new file has waste")
	}
}
