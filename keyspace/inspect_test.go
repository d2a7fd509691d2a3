package keyspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"
)

// lived is a data folder with a history, as a crash has left it, and what lived in it. It has items of
// both kinds in several containers, overwritten, deleted and dead ones, in stores that were
// checkpointed several times, and a journal with what came after the last.
type lived struct {
	dir   string
	state map[place]Item
	t     *testing.T
}

// livedUntil is when the folder of a lived is looked at.
const livedUntil = epoch + 29_000

func newLived(t *testing.T, seed uint64) *lived {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	o := open(t, func(opt *Options) { opt.Partitions = 3 })
	o.policy("orders", 100)
	o.policy("carts", expiry.Off)
	o.policy("gone", expiry.Forever)
	for round := range 4 {
		for range 60 {
			o.randomWrite(random, []string{"orders", "carts", "0", "gone"})
		}
		o.clock.Advance(7e9)
		switch round {
		case 0:
			o.policy("orders", 30)
		case 1:
			o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("carts")) })
		case 2:
			o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("gone")) })
			o.policy("gone", 50)
		}
		if round < 3 {
			if err := o.checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.dump() // promises not to be before livedUntil again
	l := &lived{dir: t.TempDir(), t: t}
	copyFolder(t, o.opt.Dir, l.dir)
	o.clock.Advance(markInterval)
	if now := o.clock.Now(); now != livedUntil {
		t.Fatalf("it is %d ms later than it should be", now-livedUntil)
	}
	l.state = o.dump()
	return l
}

// randomWrite puts or deletes a random item.
func (o *opened) randomWrite(random *rand.Rand, containers []string) {
	o.t.Helper()
	name := containers[random.IntN(len(containers))]
	id := fmt.Sprint("id-", random.IntN(40))
	if random.IntN(5) == 0 {
		o.delete(name, id)
		return
	}
	kind, body := Document, fmt.Sprintf(`{"n":%d,"fill":"%s"}`, random.IntN(1e6), strings.Repeat("x", random.IntN(80)))
	if random.IntN(3) == 0 {
		kind, body = Plain, fmt.Sprintf("bytes \xff\r\n %x", random.Uint64())
	}
	own := []int64{expiry.Inherit, expiry.Never, o.clock.Now() + random.Int64N(60_000) + 1}[random.IntN(3)]
	var tx Tx
	o.BeginKey(&tx, id)
	tx.Put(tx.Container(name), id, kind, body, own)
	o.commit(&tx)
}

// copy copies the folder, with one file spoilt, or made.
func (l *lived) copy(file string, spoil func(content []byte) []byte) string {
	l.t.Helper()
	to := l.t.TempDir()
	copyFolder(l.t, l.dir, to)
	path := filepath.Join(to, file)
	var content []byte
	if _, err := os.Stat(path); err == nil {
		content = read(l.t, path)
	}
	if err := os.WriteFile(path, spoil(content), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return to
}

// files are those of the folder in which there is something to spoil.
func (l *lived) files() (names []string) {
	l.t.Helper()
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Size() > 0 && e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

// starts tells whether a keyspace opens with a folder, and gives what lives in it.
func starts(t *testing.T, dir string) (map[place]Item, error) {
	t.Helper()
	clock := clock.NewManual(livedUntil)
	ks, err := Open(Options{Dir: dir, Clock: clock, NoPurge: true, Partitions: 3})
	if err != nil {
		return nil, err
	}
	o := &opened{Keyspace: ks, t: t, clock: clock}
	state := o.dump()
	o.stop()
	return state, nil
}

func mustInspect(t *testing.T, dir string) *Inspection {
	t.Helper()
	in, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// fingerprint is all there is to see of a folder from outside.
func fingerprint(t *testing.T, dir string) (print string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		print += fmt.Sprintln(path, fi.Size(), fi.ModTime(), fi.Mode(), record.Sum(0, string(read(t, path))))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return print
}

func TestInspectASoundFolder(t *testing.T) {
	l := newLived(t, 1)
	before := fingerprint(t, l.dir)
	in := mustInspect(t, l.dir)
	if in.State != Sound || in.Partitions != 3 || len(in.Files) < 6 {
		t.Errorf("%+v", in)
	}
	for _, f := range in.Files {
		if f.State != Sound || len(f.Problems) > 0 || f.Bytes == 0 && !strings.HasPrefix(f.File, "journal") {
			t.Errorf("%+v", f)
		}
	}
	if fingerprint(t, l.dir) != before {
		t.Error("the folder has changed")
	}
}

// Every byte of every file may be wrong, cut off or zeroed: Inspect says damaged exactly when a
// server would not start, and changes nothing.
func TestInspectAgreesWithTheStart(t *testing.T) {
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
			for range 8 {
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
	dir := t.TempDir()
	if _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("%v", err)
	}
	if _, err := Inspect(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	o := open(t)
	if _, err := Inspect(o.opt.Dir); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a folder in use: %v", err)
	}
	plant := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(plant, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), "not a data folder") {
		t.Errorf("%v", err)
	}
}
