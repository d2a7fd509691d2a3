package keyspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// copyFolder copies files as a power cut leaves them if all writes have reached the disk.
func copyFolder(t *testing.T, fsys vfs.FS, from, to string) {
	t.Helper()
	for {
		before := namesIn(t, fsys, from)
		for _, name := range before {
			content, err := vfs.ReadFile(fsys, filepath.Join(from, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the names differ
			}
			drill.Check(t, err, writeFile(fsys, filepath.Join(to, name), content))
		}
		if slices.Equal(namesIn(t, fsys, from), before) {
			return
		}
		// The background work has given a file its name meanwhile, or removed one: another copy.
		drill.Check(t, fsys.RemoveAll(to), fsys.Mkdir(to, 0o700))
	}
}

// namesIn returns the names in a folder, sorted.
func namesIn(t *testing.T, fsys vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	drill.Check(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The live bytes are exact, before and after a compaction.
func TestLiveBytesAreCounted(t *testing.T) {
	t.Parallel()
	o := open(t, byHand, func(opt *Options) { opt.Partitions = 2 }) // a checkpoint in between may capture a smaller record of waste
	for i := range 200 {
		o.put("0", fmt.Sprint(i), `{"x":"`+strings.Repeat("x", i*i)+`"}`, expiry.Inherit)
	}
	check := func() {
		t.Helper()
		drill.Check(t, o.Save())
		for _, s := range o.storage.Stores() {
			counted := s.Live()
			drill.Check(t, o.storage.CompactStore(s, nil))
			if s.Live() != counted {
				t.Errorf("%s: %d bytes live, counted are %d", s.Path(), s.Live(), counted)
			}
		}
	}
	check()
	for i := range 30 {
		o.policy(fmt.Sprint("some-", i), 10)
	}
	check()
	for i := range 30 {
		o.policy(fmt.Sprint("some-", i), 100)
		o.put(fmt.Sprint("some-", i), "a", "{}", expiry.Inherit)
		o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
		o.delete("0", fmt.Sprint(50+i))
	}
	check()
	o.catalogueTx(func(tx *Tx) {
		for i := range 30 {
			tx.Drop(tx.Container(fmt.Sprint("some-", i)))
		}
		tx.Flush(tx.Container("1"))
	})
	check()
	o.reopen()
	check()
}

// A checkpoint that is repeated on a full disk does not take more of it each time.
func TestCheckpointsThatFailLeaveNothing(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	o := open(t, func(opt *Options) { opt.FS, opt.Partitions = disk, 4 })
	last := o.storage.Store(3)
	large := 0 // its item makes the last store the largest file
	for o.partitionOf(fmt.Sprint("large-", large)).Number != 3 {
		large++
	}
	o.put("0", fmt.Sprint("large-", large), `{"fill":"`+aoftest.MuchText+aoftest.MuchText+`"}`, expiry.Inherit)
	o.catalogueTx(func(tx *Tx) { tx.CreateContainer("gone", expiry.Forever, expiry.Strict) })
	for i := range 3000 {
		o.put([]string{"0", "gone"}[i%2], fmt.Sprint(i), "{}", expiry.Inherit)
	}
	drill.Check(t, o.Save())
	confirmed := last.Size()
	disk.Most.Store(confirmed + 30_000) // some of its changes can be written
	for i := range 3000 {
		o.put("0", fmt.Sprint(i), `{"n":1}`, expiry.Inherit)
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("gone")) })
	attempt := func() (size int64) {
		t.Helper()
		o.storage.Lock()
		defer o.storage.Unlock()
		if o.storage.SaveLocked() == nil {
			t.Fatal("the checkpoint worked")
		}
		if last.Size() != confirmed {
			t.Fatalf("%d bytes are left of what could not be written", last.Size()-confirmed)
		}
		_, size = store.Sizes(o.storage.Stores())
		return size
	}
	first := attempt()
	for range 3 {
		if size := attempt(); size != first {
			t.Errorf("another attempt takes %d bytes", size-first)
		}
	}
	disk.Most.Store(0)
	drill.Check(t, o.Save())
	o.reopen()
	if n := o.count("0"); n != 3001 {
		t.Errorf("%d items are left", n)
	}
}

// Writes are refused at once, not only after the next checkpoint.
func TestCompactThatFailsAtItsEndRefusesWrites(t *testing.T) {
	t.Parallel()
	disk, folders := vfstest.New(), 0
	var failing atomic.Bool
	disk.OnSync = func(f vfs.File) error {
		if failing.Load() && f.Name() == vfstest.Dir {
			if folders++; folders > 1 { // the first is for the manifest, before the rename
				return vfstest.ErrDisk
			}
		}
		return nil
	}
	opt := Options{FS: disk, Dir: vfstest.Dir, Clock: clock.NewManual(epoch), NoPurge: true, Fsync: Always}
	ks, err := Open(opt)
	drill.Check(t, err)
	drill.Check(t, ks.Save())
	failing.Store(true)
	err = ks.storage.CompactStore(ks.storage.Store(0), nil)
	failing.Store(false)
	if err == nil || ks.Writable() == nil {
		t.Errorf("the compaction says %v, and writes are refused because of %v", err, ks.Writable())
	}
	if ks.Close() == nil {
		t.Error("closing does not tell")
	}
}

// A store that cannot be used any more refuses writes, and its changes are captured once.
func TestBrokenStoreRefusesWrites(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	opt := Options{FS: disk, Dir: vfstest.Dir, Clock: clock.NewManual(epoch), NoPurge: true}
	var failing atomic.Pointer[string] // path
	disk.OnSync = func(f vfs.File) error {
		if path := failing.Load(); path != nil && f.Name() == *path {
			return vfstest.ErrDisk
		}
		return nil
	}
	ks, err := Open(opt)
	drill.Check(t, err)
	o := &opened{Keyspace: ks, t: t, clock: opt.Clock.(*clock.Manual), opt: opt}
	p := o.partitionOf("a")
	once := 0 // an item of the same partition that is written once
	for o.partitionOf(fmt.Sprint("once-", once)) != p {
		once++
	}
	o.put("0", fmt.Sprint("once-", once), "{}", expiry.Inherit)
	path := o.storage.Store(p.Number).Path()
	failing.Store(&path)
	for range 5 {
		o.put("0", "a", "{}", expiry.Inherit)
		if err := o.Save(); !errors.Is(err, vfstest.ErrDisk) {
			t.Fatalf("the checkpoint says %v", err)
		}
	}
	if o.Writable() == nil {
		t.Error("writes are not refused")
	}
	if n := o.storage.Captured(p.Number); n != 2 {
		t.Errorf("two items were captured %d times", n)
	}
	if o.Close() == nil {
		t.Error("closing does not tell")
	}
	failing.Store(nil)
	again, err := Open(opt)
	drill.Check(t, err)
	o.Keyspace = again
	if !o.lives("0", "a") {
		t.Error("what the journal held is lost")
	}
	o.stop()
}

// TestStoresStayNearTheirLiveSize: a steady workload of dying documents, compacted by itself, keeps the
// stores near their live size.
func TestStoresStayNearTheirLiveSize(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	o.SetCompaction(Compaction{Percentage: 100, MinSize: 1 << 10})
	largest := 0.0
	for round := range 12 {
		var tx Tx
		for i := range 400 {
			id := fmt.Sprint(round%3, "-", i)
			o.BeginKey(&tx, id)
			tx.Put(tx.Container("0"), id, Document, `{"fill":"`+strings.Repeat("x", 300)+`"}`, expiry.ExpireAt(tx.Now(), 20))
			tx.Close()
		}
		o.clock.Advance(10 * time.Second)
		o.count("0") // meets all the dead
		drill.Check(t, o.Save())
		o.storage.CompactWasteful()
		s := o.Stats()
		if s.LastCompactErr != "" {
			t.Fatal(s.LastCompactErr)
		}
		largest = max(largest, float64(s.StoreBytes)/float64(s.LiveBytes))
	}
	if o.Stats().Compactions == 0 || largest > 3 {
		t.Fatalf("%d compactions; the stores grew to %.1f times what lives", o.Stats().Compactions, largest)
	}
}

func TestCompactOnRequest(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	for range 3 {
		for i := range 50 {
			o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
		}
		drill.Check(t, o.Save())
	}
	o.storage.CompactAll()
	if s := o.Stats(); s.Compactions < 2 || s.StoreBytes-s.LiveBytes != aof.SealSize*int64(len(o.storage.Stores())) {
		t.Fatalf("after %d compactions %d of %d bytes are waste", s.Compactions, s.StoreBytes-s.LiveBytes, s.StoreBytes)
	}
}

// Checkpoints run between the compactions of many large stores, so that the journal does not grow.
func TestCheckpointsBetweenCompactions(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	for range 2 {
		for n := range 100 {
			o.put("0", fmt.Sprint("id-", n), "{}", expiry.Inherit)
		}
		drill.Check(t, o.Save())
	}
	o.put("0", "later", "{}", expiry.Inherit)
	before := o.Stats().Checkpoints
	o.journal.SetLimit(1) // until the next checkpoint
	o.storage.CompactAll()
	if s := o.Stats(); s.Checkpoints != before+1 || s.Compactions < 4 || s.LastCompactErr != "" {
		t.Errorf("%d checkpoints, %d compactions %s", s.Checkpoints-before, s.Compactions, s.LastCompactErr)
	}
}

// A set that is in the store twice, as after a crash that left the journal of a checkpoint, is copied once.
func TestCompactCopiesDuplicatesOnce(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	for i := range 300 {
		o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	p := o.partitions[0]
	for range 3 {
		p.Mu.Lock()
		for i := range 300 {
			t := o.catalogue.ByName["0"].tables[0]
			h, e := t.Lookup(fmt.Sprint(i))
			t.MarkDirty(h, e)
		}
		p.Mu.Unlock()
		drill.Check(t, o.Save())
	}
	if size := o.storage.Store(p.Number).Size(); size < 3*p.Shard.LiveBytes() {
		t.Fatalf("the store has %d bytes: the test needs three times what lives", size)
	}
	if err := o.storage.CompactStore(o.storage.Store(p.Number), nil); err != nil || o.storage.Store(p.Number).Size() != p.Shard.LiveBytes()+aof.SealSize {
		t.Errorf("the store has %d bytes, %d of them live; %v", o.storage.Store(p.Number).Size(), p.Shard.LiveBytes(), err)
	}
}

// The old file stays until the journal has the changes that overwrite its items.
func TestCompactWaitsForTheJournal(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	o.put("0", "a", "{}", expiry.Inherit)
	drill.Check(t, o.Save())
	var tx Tx
	o.BeginKey(&tx, "a")
	tx.Delete(tx.Container("0"), "a")
	lsn := tx.Close()
	before := o.journal.Fsyncs()
	drill.Check(t, o.storage.CompactStore(o.storage.Store(0), nil))
	if !o.Committed(lsn) || o.journal.Fsyncs() == before {
		t.Error("the file lacks items before the journal has their changes")
	}
}

// A checkpoint in the background writes a wasteful store anew instead of appending to it. One that somebody
// waits for appends, which is less work.
func TestCheckpointRewritesWastefulStores(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	o.stopBackground()
	o.SetCompaction(Compaction{Percentage: 50, MinSize: 1})
	overwrite := func() {
		for i := range 200 {
			o.put("0", fmt.Sprint(i), fmt.Sprintf(`{"n":%q}`, strings.Repeat("x", 100)), expiry.Inherit)
		}
	}
	s := o.storage.Store(0)
	overwrite()
	for _, tt := range []struct {
		what       string
		checkpoint func() error
		anew       bool
	}{{"the first", o.storage.Checkpoint, false}, {"one in the background", o.storage.Checkpoint, true}, {"a Save", o.Save, false}, {"the next", o.storage.Checkpoint, true}} {
		before := o.Stats().Compactions
		drill.Check(t, tt.checkpoint())
		if anew := o.Stats().Compactions > before; anew != tt.anew || anew && s.Size() != s.Live()+aof.SealSize {
			t.Errorf("%s writes the store anew: %v; it has %d bytes, %d of them live", tt.what, anew, s.Size(), s.Live())
		}
		overwrite()
	}
}

// A store that is written anew rests after each step.
func TestRewriteRests(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	for i := range 100 {
		o.put("0", fmt.Sprint(i), fmt.Sprintf(`{"n":%q}`, strings.Repeat("x", 20_000)), expiry.Inherit)
	}
	drill.Check(t, o.Save())
	s, rests := o.storage.Store(0), int64(0)
	pacer := store.NewPacer(1<<40, nil, func() bool { rests++; return false })
	drill.Check(t, o.storage.CompactStore(s, pacer))
	if most := s.Size() / store.StepBytes; rests < most*8/10 || rests > most {
		t.Errorf("%d rests while %d bytes are written", rests, s.Size())
	}
}
