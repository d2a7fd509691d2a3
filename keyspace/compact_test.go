package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// wastefulStore is a store in which most is overwritten or deleted, and what lives in it.
func wastefulStore(t *testing.T, path string, f *faults) (*store, map[string]string) {
	t.Helper()
	s, err := openStoreWith(path, zerolog.Nop(), 0, f)
	if err != nil {
		t.Fatal(err)
	}
	live := make(map[string]string)
	for round := range 5 {
		var ops []op
		for i := range 100 {
			key := fmt.Sprintf("1:id-%d", i)
			rec := string(record.Append(nil, key, Item{Kind: Plain, Body: strings.Repeat("x", 100+round), TS: int64(round)}))
			ops = append(ops, op{key: key, rec: rec})
			live[key] = rec
			if i%3 == 0 {
				ops = append(ops, op{key: key, del: true})
				delete(live, key)
			}
		}
		if err := errors.Join(s.apply(ops), s.sync()); err != nil {
			t.Fatal(err)
		}
	}
	return s, live
}

func contents(t *testing.T, s *store) map[string]string {
	t.Helper()
	found := make(map[string]string)
	if err := s.load(func(key, rec string) error { found[key] = rec; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// reopenedContents closes nothing: it opens the store of a folder as the next process would.
func reopenedContents(t *testing.T, path string) map[string]string {
	t.Helper()
	s, err := openStore(path, zerolog.Nop(), 0)
	if err != nil {
		t.Fatal(err)
	}
	found := contents(t, s)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.db.*")); len(left) > 0 {
		t.Errorf("%s is left behind", left)
	}
	return found
}

func TestCompactLeavesOnlyWhatLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path, nil)
	before := s.size()
	for range 2 { // the second finds nothing to do and does no harm
		if err := s.compact(nil, nil); err != nil {
			t.Fatal(err)
		}
		if want := s.live.Load() + sealSize; s.size() != want {
			t.Fatalf("%d bytes of %d are left, want %d", s.size(), before, want)
		}
	}
	// The store goes on as before.
	rec := string(record.Append(nil, "1:new", Item{Kind: Plain, Body: "new"}))
	if err := errors.Join(s.apply([]op{{key: "1:new", rec: rec}}), s.sync()); err != nil {
		t.Fatal(err)
	}
	live["1:new"] = rec
	if !maps.Equal(contents(t, s), live) {
		t.Fatal("compaction changed what lives")
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(reopenedContents(t, path), live) {
		t.Fatal("what lives is not what is read again")
	}
}

// A store in which nothing lives is not taken for one that has lost everything.
func TestCompactWhatIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path, nil)
	var ops []op
	for key := range live {
		ops = append(ops, op{key: key, del: true})
	}
	if err := errors.Join(s.apply(ops), s.sync(), s.compact(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if s.size() != sealSize {
		t.Errorf("%d bytes are left", s.size())
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if found := reopenedContents(t, path); len(found) > 0 {
		t.Errorf("there is %v", found)
	}
}

// copyFolder copies files as a power cut would leave them if all that was written had got to disk.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompactSurvivesACrashAnywhere opens the folder as it stood at every fsync of a compaction, and before
// it with the new file emptied, as a power cut may leave what was not forced to disk.
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
	s, live := wastefulStore(t, path, &faults{sync: func(f *os.File) error {
		if compacting {
			snapshot()
		}
		return f.Sync()
	}})
	compacting = true
	if err := s.compact(nil, nil); err != nil {
		t.Fatal(err)
	}
	snapshot()
	if len(snapshots) != 2 {
		t.Fatalf("%d snapshots: the new file is not forced to disk", len(snapshots)-1)
	}
	emptied := t.TempDir()
	copyFolder(t, snapshots[0], emptied)
	if err := os.Truncate(filepath.Join(emptied, "partition-000.db.tmp"), 0); err != nil {
		t.Fatal(err)
	}
	for i, at := range append(snapshots, emptied) {
		if !maps.Equal(reopenedContents(t, filepath.Join(at, "partition-000.db")), live) {
			t.Errorf("snapshot %d: items are lost", i)
		}
	}
	s.close()
}

func TestCompactThatFails(t *testing.T) {
	failing := errors.New("the disk says no")
	for _, c := range []struct {
		name   string
		spoil  func(f *faults, path string)
		broken bool // for good: only a restart helps
	}{
		{"while writing", func(f *faults, _ string) {
			f.write = func() error { return failing }
		}, false},
		{"when forcing the new file to disk", func(f *faults, _ string) {
			f.sync = func(*os.File) error { return failing }
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "partition-000.db")
			var f faults
			s, live := wastefulStore(t, path, &f)
			c.spoil(&f, path)
			if err := s.compact(nil, nil); !errors.Is(err, failing) {
				t.Fatalf("the failure is reported as %v", err)
			}
			f = faults{}
			rec := string(record.Append(nil, "1:new", Item{Kind: Plain, Body: "new"}))
			err := errors.Join(s.apply([]op{{key: "1:new", rec: rec}}), s.sync())
			if c.broken != (err != nil) {
				t.Fatalf("afterwards: %v", err)
			}
			if !c.broken {
				live["1:new"] = rec
			}
			s.close()
			if !maps.Equal(reopenedContents(t, path), live) {
				t.Fatal("items are lost")
			}
		})
	}
}

// A store that has been damaged since it was opened is not made a sound one of something else.
func TestCompactRefusesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, _ := wastefulStore(t, path, nil)
	content := read(t, path)
	for _, at := range []int{len(content) / 3, len(content) - int(sealSize) - 5} {
		spoilt := bytes.Clone(content)
		spoilt[at] ^= 1
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if err := s.compact(nil, nil); !errors.As(err, &damage) || damage.From > int64(at) || damage.To <= int64(at) {
			t.Errorf("byte %d is wrong, and the compaction says %v", at, err)
		}
		if !bytes.Equal(read(t, path), spoilt) || s.broken != nil {
			t.Errorf("byte %d is wrong, and the compaction changes the file", at)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.compact(nil, nil), s.close()); err != nil {
		t.Error(err)
	}
}

// Nor one whose end is gone, or has become zeros: at a start that may be an end that was never confirmed.
func TestCompactRefusesWhatHasLostItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, _ := wastefulStore(t, path, nil)
	content := read(t, path)
	zeros := bytes.Clone(content)
	clear(zeros[len(zeros)-4096:])
	for name, spoilt := range map[string][]byte{"zeros": zeros, "cut": content[:len(content)-4000]} {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if err := s.compact(nil, nil); !errors.As(err, &damage) || damage.To != int64(len(content)) {
			t.Errorf("%s: the compaction says %v", name, err)
		}
		if !bytes.Equal(read(t, path), spoilt) || s.broken != nil {
			t.Errorf("%s: the compaction changes the file", name)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.compact(nil, nil), s.close()); err != nil {
		t.Error(err)
	}
}

// What lives is known to the byte, whether a compaction has been or not.
func TestWhatLivesIsCounted(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	for i := range 200 {
		o.put("0", fmt.Sprint(i), `{"x":"`+strings.Repeat("x", i*i)+`"}`, expiry.Inherit)
	}
	check := func() {
		t.Helper()
		if err := o.checkpoint(); err != nil {
			t.Fatal(err)
		}
		for _, s := range o.stores() {
			counted := s.live.Load()
			if err := o.compactStore(s, nil); err != nil {
				t.Fatal(err)
			}
			if s.live.Load() != counted {
				t.Errorf("%s: %d bytes live, counted are %d", s.path(), s.live.Load(), counted)
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

// A checkpoint that is repeated because the disk is full does not take more of it each time.
func TestCheckpointsThatFailLeaveNothing(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	o.catalogueTx(func(tx *Tx) { tx.CreateContainer("gone", expiry.Forever, expiry.Strict) })
	for i := range 3000 {
		o.put([]string{"0", "gone"}[i%2], fmt.Sprint(i), "{}", expiry.Inherit)
	}
	if err := o.checkpoint(); err != nil {
		t.Fatal(err)
	}
	last := o.partitions[3].store
	confirmed, written := last.size(), 0
	o.fold.mu.Lock() // what is dropped wakes the checkpoints
	last.file.faults = &faults{write: func() error {
		if written++; written%2 == 1 {
			return nil
		}
		return errors.New("no space left")
	}}
	o.fold.mu.Unlock()
	for i := range 3000 {
		o.put("0", fmt.Sprint(i), `{"n":1}`, expiry.Inherit)
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("gone")) })
	attempt := func() (size int64) {
		t.Helper()
		o.fold.mu.Lock()
		defer o.fold.mu.Unlock()
		if o.checkpointLocked() == nil {
			t.Fatal("the checkpoint worked")
		}
		if last.size() != confirmed {
			t.Fatalf("%d bytes are left of what could not be written", last.size()-confirmed)
		}
		_, size = sizes(o.stores())
		return size
	}
	first := attempt()
	for range 3 {
		if size := attempt(); size != first {
			t.Errorf("another attempt takes %d bytes", size-first)
		}
	}
	o.fold.mu.Lock()
	last.file.faults = nil
	o.fold.mu.Unlock()
	if err := o.checkpoint(); err != nil {
		t.Fatal(err)
	}
	o.reopen()
	if n := o.count("0"); n != 3000 {
		t.Errorf("%d items are left", n)
	}
}

// When the old file may come back, a store must not go on: what it appended to the new one would be lost.
func TestCompactThatFailsAtItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s, live := wastefulStore(t, path, nil)
	real, folders := forceToDisk, 0
	forceToDisk = func(f *os.File) error {
		if fi, err := f.Stat(); err == nil && fi.IsDir() {
			folders++
			return errors.New("the disk says no")
		}
		return real(f)
	}
	err := s.compact(nil, nil)
	forceToDisk = real
	if err == nil || folders != 1 {
		t.Fatalf("after %d times of forcing the folder to disk: %v", folders, err)
	}
	if s.apply([]op{{key: "1:new", rec: "x"}}) == nil {
		t.Error("the store goes on")
	}
	s.close()
	if !maps.Equal(reopenedContents(t, path), live) {
		t.Error("items are lost")
	}
}

// Then writes are refused at once, not only after the next checkpoint.
func TestCompactThatFailsAtItsEndRefusesWrites(t *testing.T) {
	opt := Options{Dir: t.TempDir(), Clock: clock.NewManual(epoch), NoPurge: true, Fsync: Always}
	ks, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := ks.checkpoint(); err != nil {
		t.Fatal(err)
	}
	real := forceToDisk
	forceToDisk = func(f *os.File) error {
		if fi, err := f.Stat(); err == nil && fi.IsDir() {
			return errors.New("the disk says no")
		}
		return real(f)
	}
	err = ks.compactStore(ks.partitions[0].store, nil)
	forceToDisk = real
	if err == nil || ks.Writable() == nil {
		t.Errorf("the compaction says %v, and writes are refused because of %v", err, ks.Writable())
	}
	if ks.Close() == nil {
		t.Error("closing does not tell")
	}
}

// A store that cannot be used any more refuses writes, and what it has to learn is captured once.
func TestBrokenStoreRefusesWrites(t *testing.T) {
	opt := Options{Dir: t.TempDir(), Clock: clock.NewManual(epoch), NoPurge: true}
	ks, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{Keyspace: ks, t: t, clock: opt.Clock.(*clock.Manual), opt: opt}
	p := o.partitionOf("a")
	p.store.broken = errors.New("fsync failed")
	for range 5 {
		o.put("0", "a", "{}", expiry.Inherit)
		if err := o.checkpoint(); err == nil {
			t.Fatal("the checkpoint worked")
		}
	}
	if o.Writable() == nil {
		t.Error("writes are not refused")
	}
	if n := len(o.fold.captured[p.number]); n != 1 {
		t.Errorf("one item was captured %d times", n)
	}
	if o.Close() == nil {
		t.Error("closing does not tell")
	}
	again, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	o.Keyspace = again
	if !o.lives("0", "a") {
		t.Error("what the journal held is lost")
	}
	o.stop()
}

// TestWasteLeavesTheDisk: a steady workload of dying documents, compacted by itself, keeps the
// stores near the size of what lives.
func TestWasteLeavesTheDisk(t *testing.T) {
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
		if err := o.checkpoint(); err != nil {
			t.Fatal(err)
		}
		o.compactWasteful()
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
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	for range 3 {
		for i := range 50 {
			o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
		}
		if err := o.checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	o.compacting.all.Store(true) // as Compact does, without the background goroutine
	o.compactWasteful()
	if s := o.Stats(); s.Compactions < 2 || s.StoreBytes-s.LiveBytes != sealSize*int64(len(o.stores())) {
		t.Fatalf("after %d compactions %d of %d bytes are waste", s.Compactions, s.StoreBytes-s.LiveBytes, s.StoreBytes)
	}
}

// Compacting many large stores takes long: checkpoints go on in between, lest the journal grow.
func TestCheckpointsGoOnBetweenCompactions(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	for range 2 {
		for n := range 100 {
			o.put("0", fmt.Sprint("id-", n), "{}", expiry.Inherit)
		}
		if err := o.checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	o.put("0", "later", "{}", expiry.Inherit)
	before := o.Stats().Checkpoints
	o.journal.total.Store(maxCheckpointBytes) // as if so much had been written
	o.compacting.all.Store(true)
	o.compactWasteful()
	if s := o.Stats(); s.Checkpoints != before+1 || s.Compactions < 4 || s.LastCompactErr != "" {
		t.Errorf("%d checkpoints, %d compactions %s", s.Checkpoints-before, s.Compactions, s.LastCompactErr)
	}
}

// What a store has been told twice, as after a crash that left the journal of a checkpoint, is copied once.
func TestCompactWhatIsThereTwice(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	for i := range 300 {
		o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	p := o.partitions[0]
	for range 3 {
		p.mu.Lock()
		for i := range 300 {
			t := o.catalogue.byName["0"].tables[0]
			h, e := t.Lookup(fmt.Sprint(i))
			t.MarkDirty(h, e)
		}
		p.mu.Unlock()
		if err := o.checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	if size := p.store.size(); size < 3*p.shard.LiveBytes() {
		t.Fatalf("the store has %d bytes: the test needs three times what lives", size)
	}
	if err := o.compactStore(p.store, nil); err != nil || p.store.size() != p.shard.LiveBytes()+sealSize {
		t.Errorf("the store has %d bytes, %d of them live; %v", p.store.size(), p.shard.LiveBytes(), err)
	}
}

// What memory takes for stored must have been found in the file: else the file stays, and nothing is lost that
// it may still have.
func TestCompactRefusesWhatLacksAnItem(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	for i := range 1000 {
		o.put("0", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	if err := o.checkpoint(); err != nil {
		t.Fatal(err)
	}
	o.put("0", "777", `{"n":1}`, expiry.Inherit)
	p := o.partitions[0]
	table := o.catalogue.byName["0"].tables[0]
	p.mu.Lock()
	p.shard.BeginCapture() // what is captured and not applied counts as stored
	if _, more := p.shard.Capture(1000, func(string, string) {}); more {
		t.Error("the capture is not complete")
	}
	p.mu.Unlock()
	before := read(t, p.store.path())
	if err := o.compactStore(p.store, nil); err == nil || !strings.Contains(err.Error(), `"0:777"`) {
		t.Errorf("the compaction says %v", err)
	}
	if !bytes.Equal(read(t, p.store.path()), before) || p.store.broken != nil {
		t.Error("the file is not what it was")
	}
	p.mu.Lock()
	h, e := table.Lookup("777")
	table.MarkDirty(h, e)
	p.mu.Unlock()
}

// What has not been confirmed to be in the journal keeps the old file: the new one lacks what it overwrites.
func TestCompactWaitsForTheJournal(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	o.put("0", "a", "{}", expiry.Inherit)
	if err := o.checkpoint(); err != nil {
		t.Fatal(err)
	}
	var tx Tx
	o.BeginKey(&tx, "a")
	tx.Delete(tx.Container("0"), "a")
	ticket := tx.Close()
	before := o.journal.fsyncs.Load()
	if err := o.compactStore(o.partitions[0].store, nil); err != nil {
		t.Fatal(err)
	}
	if !o.Committed(ticket) || o.journal.fsyncs.Load() == before {
		t.Error("the file has forgotten what the journal has not learnt")
	}
}
