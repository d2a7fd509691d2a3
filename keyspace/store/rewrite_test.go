package store

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// wastefulStore returns a store with mostly overwritten and deleted items, and its live ones.
func wastefulStore(t *testing.T, disk vfs.FS) (*Store, map[string]string) {
	t.Helper()
	s, err := open(disk)
	drill.Check(t, err)
	live := make(map[string]string)
	for round := range 5 {
		var ops []aof.Op
		for i := range 100 {
			key := fmt.Sprintf("1:id-%d", i)
			rec := string(record.Append(nil, key, record.Item{Kind: record.Plain, Body: strings.Repeat("x", 100+round), TS: int64(round)}))
			ops = append(ops, aof.Op{Key: key, Rec: rec})
			live[key] = rec
			if i%3 == 0 {
				ops = append(ops, aoftest.Del(key))
				delete(live, key)
			}
		}
		drill.Check(t, s.Apply(ops), s.Sync(0))
	}
	return s, live
}

func contents(t *testing.T, s *Store) map[string]string {
	t.Helper()
	found := make(map[string]string)
	if err := s.load(func(key, rec string) error { found[key] = rec; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// compact writes a store anew with its live items.
func compact(s *Store) error {
	return s.Rewrite(s.lsn, nil, func(set func(aof.Op)) error {
		return s.load(func(key, rec string) error { set(aof.Op{Key: key, Rec: rec}); return nil })
	})
}

// reopenedContents opens a store as the next process does. It closes nothing.
func reopenedContents(t *testing.T, disk vfs.FS) map[string]string {
	t.Helper()
	s, err := open(disk)
	drill.Check(t, err)
	found := contents(t, s)
	drill.Check(t, s.Close())
	if left, err := disk.ReadDir(vfstest.Dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left behind, %v", left, err)
	}
	return found
}

func TestCompactKeepsLiveItems(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, live := wastefulStore(t, disk)
	before := s.Size()
	for range 2 { // the second finds nothing to do and does no harm
		drill.Check(t, compact(s))
		if want := s.Live() + aof.SealSize; s.Size() != want {
			t.Fatalf("%d bytes of %d are left, want %d", s.Size(), before, want)
		}
	}
	// The store works as before.
	rec := string(record.Append(nil, "1:new", record.Item{Kind: record.Plain, Body: "new"}))
	drill.Check(t, s.Apply([]aof.Op{{Key: "1:new", Rec: rec}}), s.Sync(0))
	live["1:new"] = rec
	if !maps.Equal(contents(t, s), live) {
		t.Fatal("compaction changed what lives")
	}
	drill.Check(t, s.Close())
	if !maps.Equal(reopenedContents(t, disk), live) {
		t.Fatal("the live items are not those that are read again")
	}
}

// A store without live items is distinguished from one that has lost everything.
func TestCompactAnEmptyStore(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, live := wastefulStore(t, disk)
	var ops []aof.Op
	for key := range live {
		ops = append(ops, aoftest.Del(key))
	}
	drill.Check(t, s.Apply(ops), s.Sync(0), compact(s))
	if s.Size() != aof.SealSize {
		t.Errorf("%d bytes are left", s.Size())
	}
	drill.Check(t, s.Close())
	if found := reopenedContents(t, disk); len(found) > 0 {
		t.Errorf("there is %v", found)
	}
}

// TestCompactSurvivesACrashAnywhere opens what a power cut leaves at every fsync of a compaction, and after
// it.
func TestCompactSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	compacting, cuts, r := false, 0, drill.Rand(t)
	var s *Store
	var live map[string]string
	cut := func(d vfstest.Disk, synced string) {
		cuts++
		for i, left := range []*vfstest.Memory{d.Least(), d.Some(r), d.Some(r), d.All(), d.Clone()} {
			if !maps.Equal(reopenedContents(t, left), live) {
				t.Errorf("at the fsync of %s, image %d: items are lost", synced, i)
			}
		}
	}
	disk.BeforeSync = func(d vfstest.Disk, path string) error {
		if compacting {
			cut(d, path)
		}
		return nil
	}
	s, live = wastefulStore(t, disk)
	drill.Check(t, vfs.SyncDir(disk, "/"), vfs.SyncDir(disk, vfstest.Dir))
	compacting = true
	drill.Check(t, compact(s))
	disk.Look(func(d vfstest.Disk) { cut(d, "nothing") })
	if cuts != 3 {
		t.Fatalf("%d cuts: the new file, or its name, is not forced to disk", cuts)
	}
}

func TestCompactThatFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(d *vfstest.Faulty, now bool){
		"while writing":                     func(d *vfstest.Faulty, now bool) { d.FailWrites.Store(now) },
		"when forcing the new file to disk": func(d *vfstest.Faulty, now bool) { d.FailSyncs.Store(now) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.New()
			s, live := wastefulStore(t, disk)
			fail(disk, true)
			if err := compact(s); !errors.Is(err, vfstest.ErrDisk) {
				t.Fatalf("the failure is reported as %v", err)
			}
			fail(disk, false)
			rec := string(record.Append(nil, "1:new", record.Item{Kind: record.Plain, Body: "new"}))
			if err := errors.Join(s.Apply([]aof.Op{{Key: "1:new", Rec: rec}}), s.Sync(0)); err != nil {
				t.Fatalf("afterwards: %v", err)
			}
			live["1:new"] = rec
			s.Close()
			if !maps.Equal(reopenedContents(t, disk), live) {
				t.Fatal("items are lost")
			}
		})
	}
}

// When the old file may come back, the store must not be used: changes appended to the new one would be lost.
func TestCompactThatFailsAtItsEnd(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, live := wastefulStore(t, disk)
	var compacting bool
	folders := 0
	disk.OnSync = func(f vfs.File) error {
		if compacting && f.Name() == vfstest.Dir {
			folders++
			return vfstest.ErrDisk
		}
		return nil
	}
	compacting = true
	err := compact(s)
	compacting = false
	if err == nil || folders != 1 {
		t.Fatalf("after %d times of forcing the folder to disk: %v", folders, err)
	}
	if s.Apply([]aof.Op{{Key: "1:new", Rec: "x"}}) == nil {
		t.Error("the store is still used")
	}
	s.Close()
	if !maps.Equal(reopenedContents(t, disk), live) {
		t.Error("items are lost")
	}
}

// A small store is written anew in little room, although much of it lives: the rewrite is over soon.
func TestRewriteInLittleRoom(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	s, live := wastefulStore(t, disk)
	s.SetLive(s.Size() / 4)
	disk.Limit(2 * s.Size())
	if s.CompactionGain(s.Size()) == 0 {
		t.Error("the room of the store gives no gain")
	}
	if err := compact(s); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s); !maps.Equal(got, live) {
		t.Errorf("%d items, want %d", len(got), len(live))
	}
}
