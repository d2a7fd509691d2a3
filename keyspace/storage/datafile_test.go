package storage

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// storeFile makes a store of many items, and returns it as it must be.
func storeFile(t *testing.T, items int) (disk *vfstest.Faulty, f *dataFile, content []byte) {
	t.Helper()
	disk = vfstest.New()
	path := vfstest.Dir + "/partition-000.db"
	if _, err := store.Create(disk, path); err != nil {
		t.Fatal(err)
	}
	var ops []aof.Op
	for range items {
		ops = append(ops, aoftest.Set("1:a", strings.Repeat("x", 1000)), aoftest.Del("1:b"))
	}
	mark, end, err := store.Fill(disk, path, ops)
	drill.Check(t, err)
	return disk, &dataFile{FS: disk, Path: path, Use: aof.Store, Mark: mark, Size: end}, vfstest.Read(t, disk, path)
}

// check opens a file, checks it and copies it.
func check(t *testing.T, f *dataFile) (checked, copied error) {
	t.Helper()
	if err := f.Open(); err != nil {
		return err, err
	}
	defer f.Close()
	dir := vfstest.Dir + "/copy"
	drill.Check(t, f.FS.Mkdir(dir, 0o700))
	defer f.FS.RemoveAll(dir)
	checked, copied = f.verify(t.Context(), nil), f.copyTo(t.Context(), dir, nil)
	if copied == nil {
		want := vfstest.Read(t, f.FS, f.Path)
		if f.Text == "" {
			want = want[:f.Size]
		}
		if got := vfstest.Read(t, f.FS, filepath.Join(dir, filepath.Base(f.Path))); !bytes.Equal(got, want) {
			t.Errorf("a copy of %d bytes, not %d, or others", len(got), len(want))
		}
	}
	return checked, copied
}

// Each wrong byte of a store is found, and no copy of it is taken for sound. What follows the finished bytes
// is not looked at.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	disk, f, content := storeFile(t, 3)
	vfstest.Write(t, disk, f.Path, append(bytes.Clone(content), "unfinished"...))
	if checked, copied := check(t, f); checked != nil || copied != nil {
		t.Fatalf("a sound file: %v, %v", checked, copied)
	}
	for at := 0; at < len(content); at += drill.Pick(37, 7, 1) {
		spoilt := bytes.Clone(content)
		spoilt[at] ^= 2
		vfstest.Write(t, disk, f.Path, spoilt)
		checked, copied := check(t, f)
		if !IsDamage(checked) || !IsDamage(copied) {
			t.Fatalf("byte %d is wrong: %v, %v", at, checked, copied)
		}
	}
	for name, spoilt := range map[string][]byte{
		"empty": nil, "cut": content[:len(content)-1], "older": content[:aof.SealSize], "zeros": make([]byte, len(content)),
	} {
		vfstest.Write(t, disk, f.Path, spoilt)
		if checked, copied := check(t, f); !IsDamage(checked) || !IsDamage(copied) {
			t.Errorf("%s: %v, %v", name, checked, copied)
		}
	}
	vfstest.Write(t, disk, f.Path, content)
	f.Mark++
	if checked, _ := check(t, f); !IsDamage(checked) {
		t.Errorf("another file: %v", checked)
	}
	drill.Check(t, disk.Remove(f.Path))
	if checked, _ := check(t, f); !IsDamage(checked) {
		t.Errorf("no file: %v", checked)
	}
}

func TestDamagedTextIsFound(t *testing.T) {
	t.Parallel()
	disk, path := vfstest.New(), vfstest.Dir+"/manifest"
	f := &dataFile{FS: disk, Path: path, Text: "mayfly manifest\nrunning\n"}
	for text, sound := range map[string]bool{f.Text: true, f.Text[1:]: false, f.Text + "x": false, "": false, strings.ToUpper(f.Text): false} {
		vfstest.Write(t, disk, path, []byte(text))
		if checked, copied := check(t, f); (checked == nil) != sound || (copied == nil) != sound {
			t.Errorf("%q: %v, %v", text, checked, copied)
		}
	}
}

// A file of many windows is read whole, and its cache is dropped on the way.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	disk, f, content := storeFile(t, 4000)
	if int64(len(content)) < 3*window {
		t.Fatal("too small")
	}
	if checked, copied := check(t, f); checked != nil || copied != nil {
		t.Fatal(checked, copied)
	}
	for _, at := range []int{window - 1, window, 2*window + 4096, len(content) - 1} {
		spoilt := bytes.Clone(content)
		spoilt[at] ^= 1
		vfstest.Write(t, disk, f.Path, spoilt)
		if checked, _ := check(t, f); !IsDamage(checked) {
			t.Errorf("byte %d is wrong: %v", at, checked)
		}
	}
}

// A copy rests after each step.
func TestCopyRests(t *testing.T) {
	t.Parallel()
	disk, f, _ := storeFile(t, 1000)
	for most, want := range map[int]int{3: 3, 100: int(f.Size / (store.StepBytes + 32<<10))} {
		drill.Check(t, f.Open())
		dir := fmt.Sprint(vfstest.Dir, "/", most)
		drill.Check(t, disk.Mkdir(dir, 0o700))
		var rested []int64 // at these sizes of the copy
		err := f.copyTo(t.Context(), dir, store.NewPacer(1<<40, nil, func() bool {
			fi, err := disk.Stat(filepath.Join(dir, filepath.Base(f.Path)))
			if err != nil {
				t.Error(err)
				return true
			}
			rested = append(rested, fi.Size())
			return len(rested) == most
		}))
		if err != nil || len(rested) != want || !slices.IsSorted(rested) {
			t.Errorf("it rested behind %d bytes, want %d rests; %v", rested, want, err)
		}
		f.Close()
	}
}

// The error of a disk that cannot be written is not damage.
func TestCopyThatFails(t *testing.T) {
	t.Parallel()
	disk, f, _ := storeFile(t, 1)
	drill.Check(t, f.Open())
	defer f.Close()
	disk.FailSyncs.Store(true)
	if err := f.copyTo(t.Context(), "/", nil); !errors.Is(err, vfstest.ErrDisk) || IsDamage(err) {
		t.Errorf("%v", err)
	}
}
