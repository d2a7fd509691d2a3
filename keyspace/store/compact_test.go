package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
)

// wastefulStore returns a store with mostly overwritten and deleted items, and its live ones.
func wastefulStore(t *testing.T, path string) (*Store, map[string]string) {
	t.Helper()
	s, err := open(path)
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
func reopenedContents(t *testing.T, path string) map[string]string {
	t.Helper()
	s, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	found := contents(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.db.*")); len(left) > 0 {
		t.Errorf("%s is left behind", left)
	}
	return found
}

func TestCompactKeepsLiveItems(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path)
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
	if !maps.Equal(reopenedContents(t, path), live) {
		t.Fatal("the live items are not those that are read again")
	}
}

// A store without live items is distinguished from one that has lost everything.
func TestCompactAnEmptyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path)
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
	if found := reopenedContents(t, path); len(found) > 0 {
		t.Errorf("there is %v", found)
	}
}

// copyFolder copies files as a power cut leaves them if all writes have reached the disk.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestCompactSurvivesACrashAnywhere opens the folder as it stood at every fsync of a compaction. Before
// that it opens it with the new file emptied, as a power cut may leave a file that was not forced to disk.
func TestCompactSurvivesACrashAnywhere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "partition-000.db")
	var snapshots []string
	snapshot := func() {
		to := t.TempDir()
		copyFolder(t, dir, to)
		snapshots = append(snapshots, to)
	}
	compacting := false
	aoftest.ReplaceDisk(t, nil, func(f *os.File) error {
		if compacting && f.Name() == path+TempSuffix {
			snapshot()
		}
		return f.Sync()
	})
	s, live := wastefulStore(t, path)
	compacting = true
	if err := s.Compact(nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	snapshot()
	if len(snapshots) != 2 {
		t.Fatalf("%d snapshots: the new file is not forced to disk", len(snapshots)-1)
	}
	emptied := t.TempDir()
	copyFolder(t, snapshots[0], emptied)
	if err := os.Truncate(filepath.Join(emptied, "partition-000.db"+TempSuffix), 0); err != nil {
		t.Fatal(err)
	}
	for i, at := range append(snapshots, emptied) {
		if !maps.Equal(reopenedContents(t, filepath.Join(at, "partition-000.db")), live) {
			t.Errorf("snapshot %d: items are lost", i)
		}
	}
	s.Close()
}

func TestCompactThatFails(t *testing.T) {
	for name, fail := range map[string]func(d *aoftest.Disk, now bool){
		"while writing":                     func(d *aoftest.Disk, now bool) { d.FailWrites.Store(now) },
		"when forcing the new file to disk": func(d *aoftest.Disk, now bool) { d.FailSyncs.Store(now) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "partition-000.db")
			disk := aoftest.NewDisk(t)
			s, live := wastefulStore(t, path)
			fail(disk, true)
			if err := s.Compact(nil, nil, nil); !errors.Is(err, aoftest.ErrDisk) {
				t.Fatalf("the failure is reported as %v", err)
			}
			fail(disk, false)
			rec := string(record.Append(nil, "1:new", record.Item{Kind: record.Plain, Body: "new"}))
			if err := errors.Join(s.Apply([]aof.Op{{Key: "1:new", Rec: rec}}), s.Sync(0)); err != nil {
				t.Fatalf("afterwards: %v", err)
			}
			live["1:new"] = rec
			s.Close()
			if !maps.Equal(reopenedContents(t, path), live) {
				t.Fatal("items are lost")
			}
		})
	}
}

// A store that was damaged after it was opened is not compacted.
func TestCompactRefusesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, _ := wastefulStore(t, path)
	content := aoftest.Read(t, path)
	for _, at := range []int{len(content) / 3, len(content) - int(aof.SealSize) - 5} {
		spoilt := bytes.Clone(content)
		spoilt[at] ^= 1
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *aof.DamageError
		if err := s.Compact(nil, nil, nil); !errors.As(err, &damage) || damage.From > int64(at) || damage.To <= int64(at) {
			t.Errorf("byte %d is wrong, and the compaction says %v", at, err)
		}
		if !bytes.Equal(aoftest.Read(t, path), spoilt) || s.Broken() != nil {
			t.Errorf("byte %d is wrong, and the compaction changes the file", at)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Compact(nil, nil, nil), s.Close()); err != nil {
		t.Error(err)
	}
}

// Nor is one whose end is missing or zeros: a start may take that for an end that was never confirmed.
func TestCompactRefusesAFileWithoutItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, _ := wastefulStore(t, path)
	content := aoftest.Read(t, path)
	zeros := bytes.Clone(content)
	clear(zeros[len(zeros)-4096:])
	for name, spoilt := range map[string][]byte{"zeros": zeros, "cut": content[:len(content)-4000]} {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *aof.DamageError
		if err := s.Compact(nil, nil, nil); !errors.As(err, &damage) || damage.To != int64(len(content)) {
			t.Errorf("%s: the compaction says %v", name, err)
		}
		if !bytes.Equal(aoftest.Read(t, path), spoilt) || s.Broken() != nil {
			t.Errorf("%s: the compaction changes the file", name)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Compact(nil, nil, nil), s.Close()); err != nil {
		t.Error(err)
	}
}

// When the old file may come back, the store must not be used: changes appended to the new one would be lost.
func TestCompactThatFailsAtItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path)
	real, folders := aof.Fsync, 0
	aof.Fsync = func(f *os.File) error {
		if fi, err := f.Stat(); err == nil && fi.IsDir() {
			folders++
			return errors.New("the disk says no")
		}
		return real(f)
	}
	err := s.Compact(nil, nil, nil)
	aof.Fsync = real
	if err == nil || folders != 1 {
		t.Fatalf("after %d times of forcing the folder to disk: %v", folders, err)
	}
	if s.Apply([]aof.Op{{Key: "1:new", Rec: "x"}}) == nil {
		t.Error("the store is still used")
	}
	s.Close()
	if !maps.Equal(reopenedContents(t, path), live) {
		t.Error("items are lost")
	}
}

// A compaction rests after reading a part of the file and after writing a part of the new one, until the rests end.
func TestCompactionRests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path)
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
			if _, err := os.Stat(path + TempSuffix); err == nil {
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
