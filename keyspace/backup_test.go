package keyspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// TestBackupIsOneMoment backs up while pairs of items in different partitions are written together.
// No backup may have half a pair, or lack a change that was committed before it began.
func TestBackupIsOneMoment(t *testing.T) {
	t.Parallel()
	o := open(t)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		pair := []string{fmt.Sprint("left-", w), fmt.Sprint("right-", w)}
		writers.Go(func() {
			var tx Tx
			for n := 0; !drill.Done(stop); n++ {
				o.BeginKeys(&tx, pair)
				for _, id := range pair {
					tx.Put(tx.Container("0"), id, Plain, fmt.Sprint(n), expiry.Inherit)
				}
				if err := o.Wait(tx.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 5 {
		o.put("0", fmt.Sprint("before-", i), "{}", expiry.Inherit)
		path := filepath.Join(newDir(o.opt.FS), "backup")
		drill.Check(t, o.Backup(path))
		b := &opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: path, Clock: o.clock, NoPurge: true}}
		b.start()
		items := b.dump()
		b.stop()
		for w := range 3 {
			left, right := items[place{"0", fmt.Sprint("left-", w)}], items[place{"0", fmt.Sprint("right-", w)}]
			if left.Body != right.Body {
				t.Errorf("backup %d holds %q and %q, which were never together", i, left.Body, right.Body)
			}
		}
		if _, ok := items[place{"0", fmt.Sprint("before-", i)}]; !ok {
			t.Errorf("backup %d lacks changes that were committed before it", i)
		}
	}
	close(stop)
	writers.Wait()
}

func TestBackupRefusesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	o := open(t)
	taken := newDir(o.opt.FS)
	if err := o.Backup(taken); err == nil {
		t.Error("a backup went into a folder that exists")
	}
	missing := filepath.Join(taken, "no", "such")
	if err := o.Backup(missing); err == nil {
		t.Error("a backup went into a folder that does not exist")
	}
	if entries, err := o.opt.FS.ReadDir(taken); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// A backup that rests for hours ends with its context, and leaves nothing.
func TestBackupEndsWithItsContext(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "a", `"`+strings.Repeat("x", 2*store.StepBytes)+`"`, expiry.Inherit)
	o.storage.Lock()
	o.storage.Options.Pace = 1
	o.storage.Unlock()
	parent := newDir(o.opt.FS)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- o.BackupContext(ctx, filepath.Join(parent, "backup")) }()
	for copied := false; !copied; runtime.Gosched() { // soon, or the test times out
		entries, err := o.opt.FS.ReadDir(filepath.Join(parent, "backup.part"))
		copied = err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".db") })
	}
	cancel()
	select {
	case err := <-result:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the backup ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the backup goes on")
	}
	if entries, err := o.opt.FS.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "a", "{}", expiry.Inherit)
	o.clock.Raise(epoch + 5000)
	if err := o.Save(); err != nil || o.LastSave() != epoch+5000 {
		t.Fatalf("saved at %d: %v", o.LastSave(), err)
	}
}

func TestSaveInBackground(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "a", "{}", expiry.Inherit)
	o.clock.Raise(epoch + 5000)
	if !o.SaveInBackground() {
		t.Fatal("no other save runs")
	}
	for o.Stats().Saving { // soon done, or the test times out
		runtime.Gosched()
	}
	if s := o.Stats(); o.LastSave() != epoch+5000 || s.LastSaveError != "" {
		t.Fatalf("saved at %d: %s", o.LastSave(), s.LastSaveError)
	}
	if !o.SaveInBackground() {
		t.Error("the one before has been finished")
	}
}

// Checkpoints and compactions continue during a backup to a slow disk, so the journal stays small. The backup
// is still the state at its beginning.
func TestBackupToASlowDiskDelaysNothing(t *testing.T) {
	t.Parallel()
	disk, path := vfstest.New(), "/backup"
	begun, resume := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.OnSync = func(f vfs.File) error {
		if filepath.Dir(f.Name()) == path+".part" && f.Name() != filepath.Join(path+".part", "UNFINISHED") {
			once.Do(func() { close(begun); <-resume }) // the first of the copies
		}
		return nil
	}
	o := open(t, func(opt *Options) { opt.FS, opt.Partitions = disk, 2 })
	for n := range 200 {
		o.put("0", fmt.Sprint("id-", n), fmt.Sprintf(`{"round":0,"n":%d}`, n), expiry.Inherit)
	}
	want := o.dump()
	result := make(chan error)
	go func() { result <- o.Backup(path) }()
	<-begun
	for round := range 3 {
		for n := range 300 {
			o.put("0", fmt.Sprint("id-", n), fmt.Sprintf(`{"round":%d,"n":%d}`, round+1, n), expiry.Inherit)
		}
		o.delete("0", "id-7")
		written := o.Stats().JournalBytes
		if err := o.Save(); err != nil { // with the locks of a backup held it would wait for the backup
			t.Fatal(err)
		}
		o.storage.CompactAll()
		if s := o.Stats(); s.LastCompactErr != "" || s.Compactions == 0 || s.JournalBytes > written/10 {
			t.Errorf("the journal had %d bytes, now %d; %d compactions %s", written, s.JournalBytes, s.Compactions, s.LastCompactErr)
		}
	}
	close(resume)
	drill.Check(t, <-result)
	b := &opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: path, Clock: o.clock, NoPurge: true}}
	b.start()
	defer b.stop()
	for at, it := range b.dump() {
		if want[at] != it {
			t.Errorf("the backup has %v as %+v, not %+v", at, it, want[at])
		}
		delete(want, at)
	}
	if len(want) > 0 {
		t.Errorf("the backup misses %v", want)
	}
}
