package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry/clock"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/repair"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// copyDrill cuts the power at each fsync while a new folder is made.
type copyDrill struct {
	t     *testing.T
	make  func(fsys vfs.FS, path string) error // makes the folder
	whole func(fsys vfs.FS, dir string) error  // checks that a folder is the one that was made
	r     *rand.Rand
	cuts  int
	named int // images in which the folder has its name
}

// made is the name of the folder.
const made = "/made"

// run makes the folder on a disk. After a power cut at any moment of it:
//   - under its own name there is nothing, or a whole folder;
//   - under the name with .part there is nothing, or remains that a server refuses and the next attempt
//     removes, or at the very end a whole folder, which the next attempt refuses to remove.
func (d *copyDrill) run(disk *vfstest.Memory) {
	d.t.Helper()
	disk.Look(func(vfstest.Disk) { disk.BeforeSync = d.cut })
	err := d.make(disk, made)
	disk.Look(func(disk vfstest.Disk) { // its name may still be lost
		_ = d.cut(disk, "/")
	})
	disk.Look(func(vfstest.Disk) { disk.BeforeSync = nil })
	drill.Check(d.t, err)
	if err := d.whole(disk, made); err != nil || d.named == 0 {
		d.t.Errorf("named %d times: %v", d.named, err)
	}
	d.t.Logf("%d power cuts", d.cuts)
}

func (d *copyDrill) cut(disk vfstest.Disk, path string) error {
	if path != "/" && !strings.HasPrefix(path, made) {
		return nil // of the source
	}
	d.cuts++
	if strings.HasPrefix(path, made+"/") {
		d.t.Errorf("cut %d: not all is on disk, and the folder has its name: %s", d.cuts, path)
	}
	for i, left := range []*vfstest.Memory{disk.Least(), disk.Some(d.r), disk.Some(d.r), disk.All()} {
		if err := d.judge(left); err != nil {
			d.t.Errorf("cut %d, image %d, at the fsync of %s: %v", d.cuts, i, path, err)
		}
	}
	return nil
}

// judge examines what a power cut has left.
func (d *copyDrill) judge(left *vfstest.Memory) error {
	const part = made + ".part"
	if _, err := left.Lstat(made); err == nil {
		d.named++
		return d.whole(left, made)
	}
	entries, err := left.ReadDir(part)
	if err == nil && len(entries) > 0 {
		if _, err := left.Lstat(part + "/UNFINISHED"); err != nil {
			if err := d.make(left, made); err == nil || !strings.Contains(err.Error(), "may be a whole data folder") {
				return fmt.Errorf("repeating it beside a whole one: %v", err)
			}
			return d.whole(left, part)
		}
		if ks, err := Open(Options{FS: left, Dir: part, Partitions: 3, NoPurge: true}); err == nil {
			return errors.Join(errors.New("a server starts on half a folder"), ks.Close())
		}
	}
	if err := d.make(left, made); err != nil {
		return fmt.Errorf("repeating it: %w", err)
	}
	if _, err := left.Lstat(part); !os.IsNotExist(err) {
		return fmt.Errorf("repeating it leaves %s: %v", part, err)
	}
	return d.whole(left, made)
}

// holds checks that a folder is sound and that a server finds these items in it.
func holds(t *testing.T, fsys vfs.FS, dir string, want map[place]Item) error {
	in, err := repair.Inspect(fsys, dir)
	if err != nil {
		return err
	}
	if in.State != repair.Sound {
		return fmt.Errorf("it is %s: %+v", in.State, in.Files)
	}
	got, err := starts(t, fsys, dir)
	if err == nil && !maps.Equal(got, want) {
		err = fmt.Errorf("%d items, not %d, or others", len(got), len(want))
	}
	return err
}

func TestPowerCutDuringABackup(t *testing.T) {
	t.Parallel()
	d := &copyDrill{t: t, r: drill.Rand(t)}
	l := newLived(t, 21)
	clock := clock.NewManual(epoch + 28_000)
	o := &opened{t: t, clock: clock, opt: Options{FS: l.fs, Dir: l.dir, Clock: clock, NoPurge: true, Partitions: 3}}
	o.start()
	state := o.dump()
	d.make = func(fsys vfs.FS, path string) error {
		if fsys == o.opt.FS {
			return o.Backup(path)
		}
		ks, err := Open(Options{FS: fsys, Dir: l.dir, Clock: clock, NoPurge: true, Partitions: 3})
		if err != nil {
			return err
		}
		return errors.Join(ks.Backup(path), ks.Close())
	}
	d.whole = func(fsys vfs.FS, dir string) error { return holds(t, fsys, dir, state) }
	d.run(l.fs)
	o.stop()
	if err := holds(t, l.fs, l.dir, state); err != nil {
		t.Error("the source:", err)
	}
}

func TestPowerCutDuringARepair(t *testing.T) {
	t.Parallel()
	d := &copyDrill{t: t, r: drill.Rand(t)}
	l := newLived(t, 22)
	l.flip(datadir.PartitionName(1))
	before := fingerprint(t, l.fs, l.dir)
	d.make = func(fsys vfs.FS, path string) error {
		_, err := repair.Run(fsys, l.dir, path, 0, func(dir string, _ *repair.Report) error {
			return writeFile(fsys, filepath.Join(dir, "repair-report.txt"), []byte("text"))
		})
		return err
	}
	whole := l.fs.Clone()
	drill.Check(t, d.make(whole, made))
	state, err := starts(t, whole, made)
	drill.Check(t, err)
	if err := l.force(); err != nil { // a repair writes nothing of its source
		t.Fatal(err)
	}
	d.whole = func(fsys vfs.FS, dir string) error { return holds(t, fsys, dir, state) }
	d.run(l.fs)
	if fingerprint(t, l.fs, l.dir) != before {
		t.Error("the damaged folder has changed")
	}
}

// force brings the folder to disk as it is.
func (l *lived) force() error {
	var errs []error
	for _, name := range namesIn(l.t, l.fs, l.dir) {
		f, err := l.fs.Open(filepath.Join(l.dir, name))
		if err != nil {
			return err
		}
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(append(errs, vfs.SyncDir(l.fs, l.dir))...)
}

// flip damages a byte in the middle of a file.
func (l *lived) flip(name string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	content := vfstest.Read(l.t, l.fs, path)
	content[len(content)/2] ^= 1
	vfstest.Write(l.t, l.fs, path, content)
}

// An import that a power cut has interrupted is repeated. The result is that of an uninterrupted one.
func TestPowerCutDuringAnImport(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	l := newLived(t, 23)
	now := clock.NewManual(epoch + 28_000)
	bring := func(fsys vfs.FS) error {
		ks, err := Open(Options{FS: fsys, Dir: vfstest.Dir, Partitions: 3, Clock: clock.NewManual(now.Now()), Fsync: No, NoPurge: true})
		if err != nil {
			return err
		}
		n := 0
		err = repair.Read(l.fs, l.dir, now, func(s ContainerRecord) error {
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
	whole := func(fsys vfs.FS) error {
		got, err := starts(t, fsys, vfstest.Dir)
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
	before := fingerprint(t, l.fs, l.dir)
	disk, cuts := vfstest.NewMemory(), 0
	disk.BeforeSync = func(d vfstest.Disk, _ string) error {
		if cuts++; cuts%drill.Pick(5, 2, 1) > 0 {
			return nil
		}
		for _, left := range []*vfstest.Memory{d.Least(), d.Some(r), d.All()} {
			err := bring(left)
			if err == nil {
				err = whole(left)
			}
			if err != nil {
				t.Errorf("cut %d: %v", cuts, err)
			}
		}
		return nil
	}
	drill.Check(t, bring(disk))
	disk.Look(func(vfstest.Disk) { disk.BeforeSync = nil })
	drill.Report(t, whole(disk))
	if fingerprint(t, l.fs, l.dir) != before {
		t.Error("the source has changed")
	}
	t.Logf("%d power cuts", cuts)
}
