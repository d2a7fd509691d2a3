package keyspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/repair"
	"mayfly/keyspace/storage"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// spoilable is a keyspace in use with changes in all its files, and what its log says.
func spoilable(t *testing.T, change ...func(*Options)) (o *opened, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	o = open(t, append(change, func(opt *Options) { opt.Partitions, opt.Log = 3, zerolog.New(zerolog.SyncWriter(log)) })...)
	random := rand.New(rand.NewPCG(5, 6))
	o.policy("orders", 1000)
	o.policy("carts", expiry.Off)
	o.policy("gone", expiry.Forever)
	large := `{"large":"` + strings.Repeat("x", 9000) + `"}`
	for round := range 3 {
		for range 60 {
			o.randomWrite(random, []string{"orders", "carts", "gone"})
		}
		for n := range 5 { // the second and the third journal no body
			o.put("carts", fmt.Sprint("large-", n), large, expiry.Inherit)
		}
		if round == 1 {
			o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("gone")) })
			o.policy("gone", 500)
		}
		if round < 2 {
			drill.Check(t, o.Save())
		}
	}
	o.policy("new", 7)
	return o, log
}

// flip damages a byte of a file of the folder.
func (o *opened) flip(name string, at func(size int) int) {
	o.t.Helper()
	path := filepath.Join(o.opt.Dir, name)
	f, err := o.opt.FS.OpenFile(path, os.O_RDWR, 0)
	drill.Check(o.t, err)
	defer f.Close()
	content := vfstest.Read(o.t, o.opt.FS, path)
	n := at(len(bytes.TrimRight(content, "\x00"))) // not of what is preallocated
	if _, err := f.WriteAt([]byte{content[n] ^ 16}, int64(n)); err != nil {
		o.t.Fatal(err)
	}
}

// checkFolder checks that the folder is sound as a kill would leave it now, and that a start finds these
// items in it.
func (o *opened) checkFolder(state map[place]Item) {
	o.t.Helper()
	dir := newDir(o.opt.FS)
	copyFolder(o.t, o.opt.FS, o.opt.Dir, dir)
	in, err := repair.Inspect(o.opt.FS, dir)
	if err != nil || in.State == repair.Damaged {
		o.t.Errorf("the folder is %v: %+v, %v", in.State, in.Files, err)
	}
	left := &opened{t: o.t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: dir, Clock: o.clock, NoPurge: true}}
	left.start()
	defer left.stop()
	compare(o.t, "after a kill", state, left.dump(), nil)
}

// newestJournal returns the name of the newest journal.
func (o *opened) newestJournal() string {
	files := o.journal.Files()
	return filepath.Base(files[len(files)-1].Path)
}

// Every file of a running keyspace is damaged in turn: a scrub finds that, the file is written anew, and
// nothing is lost.
func TestScrubRepairs(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"flip", "cut", "remove"} {
		o, log := spoilable(t)
		state := o.dump()
		names := []string{datadir.FormatName, datadir.ManifestName, datadir.CatalogueName, datadir.PartitionName(0), datadir.PartitionName(2), o.newestJournal()}
		for n, name := range names {
			path := filepath.Join(o.opt.Dir, name)
			switch {
			case mode == "flip":
				o.flip(name, func(size int) int { return size / 2 })
			case n == len(names)-1:
				continue // the next fsync notices that its newest journal is gone, and refuses writes
			case mode == "cut":
				vfstest.Write(t, o.opt.FS, path, vfstest.Read(t, o.opt.FS, path)[:20])
			default:
				drill.Check(t, o.opt.FS.Remove(path))
			}
			if err := o.storage.Scrub.Scrub(t.Context(), nil); err != nil {
				t.Fatalf("%s of %s: %v", mode, name, err)
			}
			s := o.Scrubber().Stats()
			if s.Found != int64(n+1) || s.Repaired != s.Found || s.Damaged != 0 || s.Scrubs != int64(n+1) || s.Last != o.clock.Now() {
				t.Errorf("%s of %s: %+v", mode, name, s)
			}
			if text := log.String(); strings.Count(text, "written anew from memory") != n+1 || !strings.Contains(text, name) {
				t.Errorf("%s of %s: the log says %s", mode, name, text)
			}
			compare(t, mode+" of "+name, state, o.dump(), nil)
			o.checkFolder(state)
		}
		// Nothing is left to find, and it goes on as before.
		random := rand.New(rand.NewPCG(7, 8))
		for range 50 {
			o.randomWrite(random, []string{"orders", "carts", "gone", "new"})
		}
		found := o.Scrubber().Stats().Found
		if err := o.storage.Scrub.Scrub(t.Context(), nil); err != nil || o.Scrubber().Stats().Found != found {
			t.Errorf("%s: a sound folder: %+v, %v", mode, o.Scrubber().Stats(), err)
		}
		o.checkFolder(o.dump())
		drill.Report(t, o.Save())
		o.checkFolder(o.dump())
		o.opt.Log = zerolog.Nop()
	}
}

// A finished journal that a checkpoint has not removed yet, and an empty one, are replaced too.
func TestScrubRepairsJournals(t *testing.T) {
	t.Parallel()
	o, _ := spoilable(t)
	state := o.dump()
	finished := o.newestJournal()
	if _, err := o.journal.Rotate(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{finished, ""} {
		if name == "" {
			name = o.newestJournal()
		}
		o.flip(name, func(size int) int { return size - 30 })
		if err := o.storage.Scrub.Scrub(t.Context(), nil); err != nil || o.Scrubber().Stats().Damaged != 0 {
			t.Errorf("%s: %v, %+v", name, err, o.Scrubber().Stats())
		}
		if _, err := o.opt.FS.Lstat(filepath.Join(o.opt.Dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", name, err)
		}
		o.checkFolder(state)
	}
}

// Items are written, deleted and dropped while stores are written anew.
func TestRepairsUnderLoad(t *testing.T) {
	t.Parallel()
	o, _ := spoilable(t)
	o.storage.Lock()
	o.storage.Options.Piece = 1
	o.storage.Unlock()
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(9, uint64(n)))
			for round := range 150 {
				o.randomWrite(random, []string{"orders", "carts", "gone", "new"})
				if n == 0 && round%20 == 10 {
					name := fmt.Sprint("short-", round)
					o.policy(name, expiry.Forever)
					for range 10 {
						o.randomWrite(random, []string{name})
					}
				}
				if n == 0 && round%20 == 15 {
					o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container(fmt.Sprint("short-", round-5))) })
				}
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(10, 0))
		for round := range 30 {
			name := []string{datadir.CatalogueName, datadir.PartitionName(0), datadir.PartitionName(1), datadir.PartitionName(2)}[round%4]
			o.flip(name, random.IntN)
			drill.Report(t, o.storage.Scrub.Scrub(t.Context(), nil))
			if round%7 == 3 {
				drill.Report(t, o.Save())
			}
		}
	})
	all.Wait()
	if s := o.Scrubber().Stats(); s.Found != 30 || s.Repaired != 30 {
		t.Errorf("%+v", s)
	}
	o.checkFolder(o.dump())
	drill.Report(t, o.Save())
	o.checkFolder(o.dump())
}

// A backup of damaged files repairs them first, and is sound.
func TestBackupOfDamagedFiles(t *testing.T) {
	t.Parallel()
	o, log := spoilable(t)
	state := o.dump()
	o.flip(datadir.PartitionName(1), func(size int) int { return size / 3 })
	o.flip(datadir.PartitionName(2), func(size int) int { return size / 4 })
	o.flip(datadir.CatalogueName, func(size int) int { return size / 2 })
	o.flip(datadir.FormatName, func(size int) int { return size / 2 })
	path := filepath.Join(newDir(o.opt.FS), "backup")
	drill.Check(t, o.Backup(path))
	(&opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: path, Clock: o.clock}}).checkFolder(state)
	if s := o.Scrubber().Stats(); s.Repaired != 4 || !strings.Contains(log.String(), "a backup has found damage") {
		t.Errorf("%+v; %s", s, log)
	}
	o.checkFolder(state)
	o.opt.Log = zerolog.Nop()
}

// logHook is called with each line of a log.
type logHook func(line string)

func (h logHook) Write(line []byte) (int, error) {
	h(string(line))
	return len(line), nil
}

// A backup that is cancelled when it has found damage leaves the scrub to the background, at its pace.
func TestCancelledBackupOfDamagedFiles(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	ctx, cancel := context.WithCancel(t.Context())
	o := open(t, func(opt *Options) {
		opt.FS, opt.Partitions = disk, 1
		opt.Log = zerolog.New(logHook(func(line string) {
			if strings.Contains(line, "a backup has found damage") {
				disk.FailWrites.Store(true) // so a repair would be the error of the backup
				cancel()
			}
		}))
	})
	o.put("0", "a", "{}", expiry.Inherit)
	drill.Check(t, o.Save())
	o.flip(datadir.PartitionName(0), func(size int) int { return size / 2 })
	if err := o.BackupContext(ctx, filepath.Join(newDir(disk), "backup")); !errors.Is(err, context.Canceled) || storage.IsDamage(err) {
		t.Errorf("the backup ends with %v", err)
	}
	drill.Await(t, "the scrub in the background", func() bool { return o.Scrubber().Stats().Found > 0 })
	disk.FailWrites.Store(false)
	o.awaitWritable()
	drill.Check(t, o.storage.Scrub.Scrub(t.Context(), nil))
	o.checkFolder(o.dump())
}

// A compaction does not read the file, so what was damaged is whole again.
func TestCompactionOfADamagedStore(t *testing.T) {
	t.Parallel()
	o, _ := spoilable(t)
	state := o.dump()
	o.flip(datadir.PartitionName(1), func(size int) int { return size / 2 })
	o.storage.CompactAll()
	if err := o.Stats().LastCompactErr; err != "" {
		t.Error(err)
	}
	o.checkFolder(state)
}

// If a file cannot be written anew, that is told until it can; a stop tries once more.
func TestRepairThatFails(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	o, log := spoilable(t, func(opt *Options) { opt.FS = disk })
	state := o.dump()
	name := datadir.PartitionName(1)
	o.flip(name, func(size int) int { return size / 2 })
	disk.FailWrites.Store(true)
	if err := o.storage.Scrub.Scrub(t.Context(), nil); !storage.IsDamage(err) {
		t.Errorf("a damaged file that stays so: %v", err)
	}
	if s := o.Scrubber().Stats(); s.Found != 1 || s.Repaired != 0 || s.Damaged != 1 || !strings.Contains(s.Damage, name) {
		t.Errorf("%+v", s)
	}
	if o.Backup(filepath.Join(newDir(o.opt.FS), "backup")) == nil {
		t.Error("a backup of a damaged file")
	}
	disk.FailWrites.Store(false)
	o.awaitWritable()
	o.stop()
	if !strings.Contains(log.String(), "written anew from memory") {
		t.Errorf("the stop leaves it damaged: %s", log)
	}
	o.opt.Log = zerolog.Nop()
	o.start()
	if !maps.Equal(o.dump(), state) {
		t.Error("items are lost")
	}
}
