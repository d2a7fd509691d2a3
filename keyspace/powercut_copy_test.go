package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/repair"
)

// copyDrill cuts the power at each fsync while a new folder is made.
type copyDrill struct {
	t     *testing.T
	make  func(path string) error // makes the folder
	whole func(dir string) error  // checks that a folder is the one that was made
	r     *rand.Rand
	disk  *recordedDisk
	path  string
	cuts  int

	named atomic.Pointer[func()] // called when the folder has its name, before that is on disk
}

// run makes the folder. After a power cut at any moment of it:
//   - under its own name there is nothing, or a whole folder;
//   - under the name with .part there is nothing, or remains that a server refuses and the next attempt removes, or at
//     the very end a whole folder, which the next attempt refuses to remove.
func (d *copyDrill) run() {
	d.t.Helper()
	d.path = filepath.Join(d.t.TempDir(), "made")
	part := d.path + ".part"
	if err := os.Mkdir(part, 0o700); err != nil { // to be watched from the beginning
		d.t.Fatal(err)
	}
	d.disk = recordDisk(d.t, part, d.cut)
	defer d.disk.release()
	named := 0
	look := func() {
		named++
		d.disk.mu.Lock()
		defer d.disk.mu.Unlock()
		d.look(d.disk.least(), d.path)
	}
	d.named.Store(&look)
	defer d.named.Store(nil)
	if err := d.make(d.path); err != nil {
		d.t.Fatal(err)
	}
	if err := d.whole(d.path); err != nil || named == 0 {
		d.t.Errorf("named %d times: %v", named, err)
	}
	d.t.Logf("%d power cuts", d.cuts)
}

func (d *copyDrill) cut() {
	d.cuts++
	if _, err := os.Lstat(d.path); !os.IsNotExist(err) {
		d.t.Errorf("cut %d: not all is on disk, and the folder has its name: %v", d.cuts, err)
	}
	for _, left := range []folderImage{d.disk.least(), d.disk.some(d.r), d.disk.some(d.r), d.disk.all()} {
		d.look(left, d.path+".part")
	}
}

// look examines the remains of a power cut under a name.
func (d *copyDrill) look(left folderImage, name string) {
	parent, err := os.MkdirTemp("", "mayfly-power-")
	if err != nil {
		d.t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, filepath.Base(name))
	if err := os.Mkdir(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	left.write(d.t, dir)
	if err := d.judge(left, dir, filepath.Join(parent, filepath.Base(d.path))); err != nil {
		d.t.Errorf("cut %d, which leaves %v: %v", d.cuts, slices.Sorted(maps.Keys(left)), err)
	}
}

func (d *copyDrill) judge(left folderImage, dir, path string) error {
	if dir == path {
		return d.whole(dir)
	}
	if _, marked := left["UNFINISHED"]; !marked && len(left) > 0 {
		if err := d.make(path); err == nil || !strings.Contains(err.Error(), "may be a whole data folder") {
			return fmt.Errorf("repeating it beside a whole one: %v", err)
		}
		return d.whole(dir)
	} else if marked {
		if ks, err := Open(Options{Dir: dir, Partitions: 3, NoPurge: true}); err == nil {
			return errors.Join(errors.New("a server starts on half a folder"), ks.Close())
		}
	}
	if err := d.make(path); err != nil {
		return fmt.Errorf("repeating it: %w", err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		return fmt.Errorf("repeating it leaves %s: %v", dir, err)
	}
	return d.whole(path)
}

// newCopyDrill prepares a drill, before anything is opened.
func newCopyDrill(t *testing.T) *copyDrill {
	seed := *powerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	d := &copyDrill{t: t, r: rand.New(rand.NewPCG(seed, 0))}
	recordFsyncs(t)
	fsync := aof.Fsync // put back by recordFsyncs
	aof.Fsync = func(f *os.File) error {
		if look := d.named.Load(); look != nil && f.Name() == filepath.Dir(d.path) {
			if _, err := os.Lstat(d.path); err == nil { // else the name with .part is forced to disk
				(*look)()
			}
		}
		return fsync(f)
	}
	return d
}

// holds checks that a folder is sound and that a server finds these items in it.
func holds(t *testing.T, dir string, want map[place]Item) error {
	in, err := repair.Inspect(dir)
	if err != nil {
		return err
	}
	if in.State != repair.Sound {
		return fmt.Errorf("it is %s: %+v", in.State, in.Files)
	}
	got, err := starts(t, dir)
	if err == nil && !maps.Equal(got, want) {
		err = fmt.Errorf("%d items, not %d, or others", len(got), len(want))
	}
	return err
}

func TestPowerCutDuringABackup(t *testing.T) {
	d := newCopyDrill(t)
	l := newLived(t, 21)
	clock := clock.NewManual(epoch + 28_000)
	o := &opened{t: t, clock: clock, opt: Options{Dir: l.dir, Clock: clock, NoPurge: true, Partitions: 3}}
	o.start()
	state := o.dump()
	d.make = o.Backup
	d.whole = func(dir string) error { return holds(t, dir, state) }
	d.run()
	o.stop()
	if err := holds(t, l.dir, state); err != nil {
		t.Error("the source:", err)
	}
}

func TestPowerCutDuringARepair(t *testing.T) {
	d := newCopyDrill(t)
	l := newLived(t, 22)
	l.flip(datadir.PartitionName(1))
	before := fingerprint(t, l.dir)
	whole := filepath.Join(t.TempDir(), "whole")
	if _, err := repair.Run(l.dir, whole, func(string, *repair.Report) error { return nil }); err != nil {
		t.Fatal(err)
	}
	state, err := starts(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	d.make = func(path string) error {
		_, err := repair.Run(l.dir, path, func(dir string, _ *repair.Report) error {
			return os.WriteFile(filepath.Join(dir, "repair-report.txt"), []byte("text"), 0o600)
		})
		return err
	}
	d.whole = func(dir string) error { return holds(t, dir, state) }
	d.run()
	if fingerprint(t, l.dir) != before {
		t.Error("the damaged folder has changed")
	}
}

// flip damages a byte in the middle of a file.
func (l *lived) flip(name string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	content := aoftest.Read(l.t, path)
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// An import that a power cut has interrupted is repeated. The result is that of an uninterrupted one.
func TestPowerCutDuringAnImport(t *testing.T) {
	d := newCopyDrill(t)
	l := newLived(t, 23)
	now := clock.NewManual(epoch + 28_000)
	bring := func(dir string) error {
		ks, err := Open(Options{Dir: dir, Partitions: 3, Clock: clock.NewManual(now.Now()), Fsync: No, NoPurge: true})
		if err != nil {
			return err
		}
		n := 0
		err = repair.Read(l.dir, now, func(s ContainerRecord) error {
			var tx Tx
			ks.BeginAll(&tx)
			tx.RestoreContainer(s)
			return ks.Wait(tx.Close())
		}, func(container, id string, it Item) error {
			var tx Tx
			ks.BeginKey(&tx, id)
			tx.Restore(tx.Container(container), id, it)
			if err := ks.Wait(tx.Close()); err != nil {
				return err
			}
			if n++; n%20 == 0 {
				return ks.Save()
			}
			return nil
		})
		return errors.Join(err, ks.Close())
	}
	whole := func(dir string) error {
		got, err := starts(t, dir)
		if err != nil {
			return err
		}
		for at, it := range got {
			want := l.state[at]
			if it.Version, want.Version = 0, 0; it != want {
				return fmt.Errorf("%v is %+v, not %+v", at, it, want)
			}
		}
		if len(got) != len(l.state) {
			return fmt.Errorf("%d items, not %d", len(got), len(l.state))
		}
		return nil
	}
	before := fingerprint(t, l.dir)
	dir := t.TempDir()
	cuts := 0
	var disk *recordedDisk
	disk = recordDisk(t, dir, func() {
		cuts++
		for _, left := range []folderImage{disk.least(), disk.some(d.r), disk.all()} {
			again, err := os.MkdirTemp("", "mayfly-power-")
			if err != nil {
				t.Fatal(err)
			}
			left.write(t, again)
			if err = bring(again); err == nil {
				err = whole(again)
			}
			if err != nil {
				t.Errorf("cut %d: %v", cuts, err)
			}
			os.RemoveAll(again)
		}
	})
	err := bring(dir)
	disk.release()
	if err != nil {
		t.Fatal(err)
	}
	if err := whole(dir); err != nil {
		t.Error(err)
	}
	if fingerprint(t, l.dir) != before {
		t.Error("the source has changed")
	}
	t.Logf("%d power cuts", cuts)
}
