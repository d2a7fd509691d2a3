package store

import (
	"bytes"
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err := errors.Join(s.Apply(ops), s.Sync(0)); err != nil {
			t.Fatal(err)
		}
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

// reopenedContents opens a store as the next process does. It closes nothing.
func reopenedContents(t *testing.T, disk vfs.FS) map[string]string {
	t.Helper()
	s, err := open(disk)
	if err != nil {
		t.Fatal(err)
	}
	found := contents(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
		if err := s.Compact(nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if want := s.Live() + aof.SealSize; s.Size() != want {
			t.Fatalf("%d bytes of %d are left, want %d", s.Size(), before, want)
		}
	}
	// The store works as before.
	rec := string(record.Append(nil, "1:new", record.Item{Kind: record.Plain, Body: "new"}))
	if err := errors.Join(s.Apply([]aof.Op{{Key: "1:new", Rec: rec}}), s.Sync(0)); err != nil {
		t.Fatal(err)
	}
	live["1:new"] = rec
	if !maps.Equal(contents(t, s), live) {
		t.Fatal("compaction changed what lives")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err := errors.Join(s.Apply(ops), s.Sync(0), s.Compact(nil, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if s.Size() != aof.SealSize {
		t.Errorf("%d bytes are left", s.Size())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := reopenedContents(t, disk); len(found) > 0 {
		t.Errorf("there is %v", found)
	}
}

// TestCompactSurvivesACrashAnywhere opens what a power cut leaves at every fsync of a compaction, and after it.
func TestCompactSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	if err := disk.Mkdir(vfstest.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
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
	if err := errors.Join(vfs.SyncDir(disk, "/"), vfs.SyncDir(disk, vfstest.Dir)); err != nil {
		t.Fatal(err)
	}
	compacting = true
	if err := s.Compact(nil, nil, nil); err != nil {
		t.Fatal(err)
	}
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
			if err := s.Compact(nil, nil, nil); !errors.Is(err, vfstest.ErrDisk) {
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

// A store that was damaged after it was opened is not compacted.
func TestCompactRefusesDamage(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, _ := wastefulStore(t, disk)
	content := vfstest.Read(t, disk, path)
	for _, at := range []int{len(content) / 3, len(content) - int(aof.SealSize) - 5} {
		spoilt := bytes.Clone(content)
		spoilt[at] ^= 1
		vfstest.Write(t, disk, path, spoilt)
		var damage *aof.DamageError
		if err := s.Compact(nil, nil, nil); !errors.As(err, &damage) || damage.From > int64(at) || damage.To <= int64(at) {
			t.Errorf("byte %d is wrong, and the compaction says %v", at, err)
		}
		if !bytes.Equal(vfstest.Read(t, disk, path), spoilt) || s.Broken() != nil {
			t.Errorf("byte %d is wrong, and the compaction changes the file", at)
		}
	}
	vfstest.Write(t, disk, path, content)
	if err := errors.Join(s.Compact(nil, nil, nil), s.Close()); err != nil {
		t.Error(err)
	}
}

// Nor is one whose end is missing or zeros: a start may take that for an end that was never confirmed.
func TestCompactRefusesAFileWithoutItsEnd(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, _ := wastefulStore(t, disk)
	content := vfstest.Read(t, disk, path)
	zeros := bytes.Clone(content)
	clear(zeros[len(zeros)-4096:])
	for name, spoilt := range map[string][]byte{"zeros": zeros, "cut": content[:len(content)-4000]} {
		vfstest.Write(t, disk, path, spoilt)
		var damage *aof.DamageError
		if err := s.Compact(nil, nil, nil); !errors.As(err, &damage) || damage.To != int64(len(content)) {
			t.Errorf("%s: the compaction says %v", name, err)
		}
		if !bytes.Equal(vfstest.Read(t, disk, path), spoilt) || s.Broken() != nil {
			t.Errorf("%s: the compaction changes the file", name)
		}
	}
	vfstest.Write(t, disk, path, content)
	if err := errors.Join(s.Compact(nil, nil, nil), s.Close()); err != nil {
		t.Error(err)
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
	err := s.Compact(nil, nil, nil)
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

// A compaction rests after reading a part of the file and after writing a part of the new one, until the rests end.
func TestCompactionRests(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s, live := wastefulStore(t, disk)
	var ops []aof.Op
	for i := range 100 {
		o := aoftest.Set(fmt.Sprintf("2:%06d", i), strings.Repeat("x", 20_000))
		ops, live[o.Key] = append(ops, o), o.Rec
	}
	applied(t, s, ops...)
	for _, most := range []int{1000, 3} {
		var reading, writing int64 // bytes
		n := 0
		pacer := NewPacer(1<<40, nil, nil)
		pacer.hurry = func() bool {
			if _, err := disk.Stat(path + TempSuffix); err == nil {
				writing += pacer.done
			} else {
				reading += pacer.done
			}
			n++
			return n == most
		}
		err := s.Compact(nil, pacer, nil)
		if err != nil {
			t.Fatal(err)
		}
		if size := s.Size(); most == 3 && n != 3 || most > 3 && (reading < size/readShare*7/10 || writing < size*9/10) {
			t.Errorf("it rested %d times, for %d bytes read and %d written of %d", n, reading, writing, size)
		}
		if !maps.Equal(contents(t, s), live) {
			t.Error("other items are left than the live ones")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
