package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/repair"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// failNth makes the nth fsync of a file of a folder fail, and returns which has.
func failNth(disk *vfstest.Memory, dir string, n int) (failed func() (name string)) {
	file := ""
	disk.Look(func(vfstest.Disk) {
		disk.BeforeSync = func(_ vfstest.Disk, path string) error {
			if filepath.Dir(path) != dir {
				return nil
			}
			if n--; n != 0 {
				return nil
			}
			file = filepath.Base(path)
			return syscall.EIO
		}
	})
	return func() string {
		disk.Look(func(vfstest.Disk) { disk.BeforeSync = nil })
		return file
	}
}

// images are what a power cut may leave now.
func images(disk *vfstest.Memory, r *rand.Rand) (images []*vfstest.Memory) {
	disk.Look(func(d vfstest.Disk) { images = []*vfstest.Memory{d.Least(), d.Some(r), d.Some(r), d.All()} })
	return images
}

// A failed fsync leaves data that can be read but will never be on disk. A restart brings them there before
// it serves them: every fsync of a life fails once, and of the start after that another one. Then the power
// is cut.
func TestFailedFsyncIsNotForgotten(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	byFile := make(map[string]int) // failed fsyncs
	for n, name := 1, "first"; name != ""; n++ {
		for _, again := range []int{0, 1 + n%4} { // the fsync of the next start that fails, 0 for none
			if name = failOneFsync(t, r, n, again); name == "" || t.Failed() {
				break
			}
		}
		byFile[name]++
	}
	t.Log("failed fsyncs by file:", byFile)
	for _, name := range []string{"journal-000000000001.db", "catalogue.db", "partition-000.db", "partition-000.db.tmp", "manifest.tmp", "journal.tmp"} {
		if byFile[name] == 0 {
			t.Errorf("no fsync of %s has failed", name)
		}
	}
}

// failOneFsync returns the name of the file whose fsync has failed, empty if the life had fewer.
func failOneFsync(t *testing.T, r *rand.Rand, n, again int) (name string) {
	disk := vfstest.NewMemory()
	opt := Options{FS: disk, Dir: vfstest.Dir, preallocate: 20_000, Partitions: 1, Fsync: Always, Clock: clock.NewManual(epoch), NoPurge: true}
	failed := failNth(disk, vfstest.Dir, n)
	acknowledged := liveAndFail(opt)
	if name = failed(); name == "" {
		return ""
	}
	if again > 0 {
		failed := failNth(disk, vfstest.Dir, again)
		if ks, err := Open(opt); err == nil {
			_ = ks.Close()
		}
		failed()
	}
	ks, err := Open(opt)
	if err != nil {
		t.Errorf("the restart after fsync %d, of %s, has failed, and then %d: %v", n, name, again, err)
		return name
	}
	seen := readAll(ks)
	for id, body := range acknowledged {
		if seen[id] != body {
			t.Errorf("fsync %d, of %s, has failed: %s was %q, is %q", n, name, id, body, seen[id])
		}
	}
	left := images(disk, r)
	drill.Report(t, ks.Close())
	for i, image := range append(left, images(disk, r)...) {
		opt.FS = image
		ks, err := Open(opt)
		if err != nil {
			t.Errorf("fsync %d, of %s, has failed, then %d, image %d: %v", n, name, again, i, err)
			continue
		}
		if left := readAll(ks); !maps.Equal(left, seen) {
			t.Errorf("fsync %d, of %s, has failed, then %d, image %d: %v was read, %v is left", n, name, again, i, seen, left)
		}
		drill.Report(t, ks.Close())
	}
	return name
}

// liveAndFail opens a keyspace, writes, and makes checkpoints and compactions, whatever fails. It returns the
// acknowledged bodies by id.
func liveAndFail(opt Options) (acknowledged map[string]string) {
	ks, err := Open(opt)
	if err != nil {
		return nil
	}
	acknowledged = make(map[string]string)
	for round := range 3 {
		for n := range 3 {
			if ks.Writable() != nil {
				continue
			}
			id, body := fmt.Sprint("id-", n+round), fmt.Sprint("body ", round)
			var tx Tx
			ks.BeginKey(&tx, id)
			tx.Put(tx.Container("0"), id, Plain, body, expiry.Inherit)
			if ks.Wait(tx.Close()) == nil {
				acknowledged[id] = body
			} else {
				delete(acknowledged, id) // the old body or the new one
			}
		}
		if ks.Save() == nil && round == 1 {
			ks.storage.CompactAll()
		}
	}
	_ = ks.Close()
	return acknowledged
}

// readAll returns the bodies by id.
func readAll(ks *Keyspace) map[string]string {
	all := make(map[string]string)
	var tx Tx
	ks.BeginAll(&tx)
	tx.Scan(tx.Container("0"), 0, 1<<30, func(id string, it Item) { all[id] = it.Body })
	tx.Close()
	return all
}

// A copy whose fsync fails is not reported as whole, and leaves nothing in the way of the next one.
func TestCopyWithAFailedFsync(t *testing.T) {
	t.Parallel()
	l := newLived(t, 24)
	disk := l.fs
	o := &opened{t: t, clock: clock.NewManual(epoch + 28_000)}
	o.opt = Options{FS: disk, Dir: l.dir, Clock: o.clock, NoPurge: true, Partitions: 3}
	o.start()
	defer o.stop()
	state := o.dump()
	stopped := newDir(disk) // of a server that does not run: a repair reads it
	copyFolder(t, disk, l.dir, stopped)
	copies := map[string]func(path string) error{
		"backup": o.Backup,
		"repair": func(path string) error {
			_, err := repair.Run(disk, stopped, path, 0, func(string, *repair.Report) error { return nil })
			return err
		},
	}
	for what, make := range copies {
		for n, name := 1, "first"; name != ""; n++ {
			path := filepath.Join(newDir(disk), "copy")
			failed := failNth(disk, path+".part", n)
			err := make(path)
			if name = failed(); (name == "") != (err == nil) {
				t.Errorf("%s: fsync %d, of %q, has failed: %v", what, n, name, err)
			}
			if name != "" {
				err = make(path)
			}
			if err = errors.Join(err, holds(t, disk, path, state)); err != nil {
				t.Errorf("%s: after the failure of fsync %d, of %q: %v", what, n, name, err)
			}
		}
	}
}
