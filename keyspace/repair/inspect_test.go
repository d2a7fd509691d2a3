package repair

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

func mustInspect(t *testing.T, dir string) *Inspection {
	t.Helper()
	in, err := Inspect(disk, dir)
	drill.Check(t, err)
	return in
}

// fingerprint describes all files of a folder: size, mode, content.
func fingerprint(t *testing.T, dir string) (print string) {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	drill.Check(t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		fi, err := disk.Stat(path)
		drill.Check(t, err)
		print += fmt.Sprintln(path, fi.Size(), fi.Mode(), record.Sum(0, string(vfstest.Read(t, disk, path))))
	}
	return print
}

func TestInspectASoundFolder(t *testing.T) {
	t.Parallel()
	l := newLived(t, 1)
	before := fingerprint(t, l.dir)
	in := mustInspect(t, l.dir)
	if in.State != Sound || in.Partitions != 3 || len(in.Files) < 6 {
		t.Errorf("%+v", in)
	}
	for _, f := range in.Files {
		if f.State != Sound || len(f.Problems) > 0 || f.Bytes == 0 {
			t.Errorf("%+v", f)
		}
	}
	if fingerprint(t, l.dir) != before {
		t.Error("the folder has changed")
	}
}

// Wherever a file is changed, cut or zeroed, Inspect reports damage exactly if a server does not start. It
// changes nothing.
func TestInspectAgreesWithTheStart(t *testing.T) {
	t.Parallel()
	l := newLived(t, 2)
	random := rand.New(rand.NewPCG(3, 0))
	ways := map[string]func(b []byte, at int) []byte{
		"flipped": func(b []byte, at int) []byte { b[at] ^= 1 << random.IntN(8); return b },
		"cut":     func(b []byte, at int) []byte { return b[:at] },
		"zeroed":  func(b []byte, at int) []byte { clear(b[at:min(at+600, len(b))]); return b },
		"doubled": func(b []byte, at int) []byte { return append(b[:at:at], b[at/2:]...) },
	}
	count := map[FileState]int{}
	for _, file := range l.files() {
		for name, way := range ways {
			for range drill.Pick(1, 2, 50) {
				at := 0
				dir := l.copy(file, func(b []byte) []byte { at = random.IntN(len(b)); return way(b, at) })
				before := fingerprint(t, dir)
				in := mustInspect(t, dir)
				if fingerprint(t, dir) != before {
					t.Fatal("the folder has changed")
				}
				count[in.State]++
				_, err := starts(t, dir)
				if (in.State == Damaged) != (err != nil) {
					t.Errorf("%s %s at %d: the folder is %s, a start says %v\n%+v", file, name, at, in.State, err, in.Files)
				}
			}
		}
	}
	t.Log(count)
	if count[Damaged] == 0 || count[Torn] == 0 {
		t.Errorf("not all states were met: %v", count)
	}
}

func TestInspectRefuses(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if _, err := Inspect(disk, dir); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("%v", err)
	}
	if _, err := Inspect(disk, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	o := open(t, 16)
	if _, err := Inspect(disk, o.Dir()); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a folder in use: %v", err)
	}
	plant := filepath.Join(dir, "notes.txt")
	drill.Check(t, writeFile(plant, []byte("hello")))
	if _, err := Inspect(disk, dir); err == nil || !strings.Contains(err.Error(), "not a data folder") {
		t.Errorf("%v", err)
	}
}
