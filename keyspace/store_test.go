package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mayfly/keyspace/record"

	"github.com/tidwall/buntdb"
)

// set makes the change that stores a plain item.
func set(key, body string) op {
	return op{key: key, rec: string(record.Append(nil, key, Item{Kind: Plain, Body: body, TS: epoch}))}
}

func del(key string) op { return op{key: key, del: true} }

func mustOpenStore(t *testing.T, path string) *store {
	t.Helper()
	s, err := openStore(path, quiet, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// applied applies changes and confirms them.
func applied(t *testing.T, s *store, ops ...op) {
	t.Helper()
	if err := errors.Join(s.apply(ops), s.sync()); err != nil {
		t.Fatal(err)
	}
}

// bodies loads a store and gives the bodies of its items by key.
func bodies(s *store) (map[string]string, error) {
	all := make(map[string]string)
	last := ""
	err := s.load(func(key, rec string) error {
		if key <= last {
			return fmt.Errorf("%q comes after %q", key, last)
		}
		last = key
		it, _, err := record.Decode(key, rec)
		all[key] = it.Body
		return err
	})
	return all, err
}

func checkBodies(t *testing.T, s *store, want map[string]string) {
	t.Helper()
	got, err := bodies(s)
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("the store holds %q, %v; want %q", got, err, want)
	}
}

// checkReopened closes a store and checks what it holds when it is opened again.
func checkReopened(t *testing.T, s *store, want map[string]string) {
	t.Helper()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpenStore(t, s.file.f.Name())
	defer s.close()
	checkBodies(t, s, want)
}

// smallStore makes a store's file of a few items, with deletes, overwritten items and binary
// bodies, some of it not confirmed. It returns where the confirmed part ends and what it holds.
func smallStore(t *testing.T) (path string, sealed int64, want map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "alpha"), set("1:b", "beta"), set("2:c", "\r\n$3\r\nset\r\n\x00\x00"))
	applied(t, s, del("1:b"), set("1:a", "alpha again"), set("1:d", ""))
	applied(t, s, del("1:d"))
	sealed = s.size()
	if err := s.apply([]op{set("1:a", "not confirmed")}); err != nil {
		t.Fatal(err)
	}
	if err := s.apply([]op{del("2:c")}); err != nil {
		t.Fatal(err)
	}
	content := transplant(t, path) // closing would confirm the rest
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return content, sealed, map[string]string{"1:a": "alpha again", "2:c": "\r\n$3\r\nset\r\n\x00\x00"}
}

func TestStoreKeepsWhatWasApplied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "1"), set("1:b", "2"), set("1:a", "3"), del("1:b"), del("1:none"), set("1:b", "4"), set("1:c", "5"), del("1:c"))
	want := map[string]string{"1:a": "3", "1:b": "4"}
	checkBodies(t, s, want)
	if fi, err := os.Stat(path); err != nil || fi.Size() != s.size() {
		t.Errorf("the size is %d, not %d (%v)", s.size(), fi.Size(), err)
	}
	checkReopened(t, s, want)
}

func TestStoreConfirmsOnClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "partition-000.db")
	s := mustOpenStore(t, path)
	if err := errors.Join(s.apply([]op{set("1:a", "1")}), s.close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpenStore(t, path)
	defer s.close()
	checkBodies(t, s, map[string]string{"1:a": "1"})
}

func TestStoreThatHasLearntNothingIsNotForcedToDisk(t *testing.T) {
	disk := newBrokenDisk()
	s, err := openStoreWith(filepath.Join(t.TempDir(), "a.db"), quiet, epoch, &disk.faults)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	applied(t, s, set("1:a", "1"))
	syncs, size := disk.syncs.Load(), s.size()
	applied(t, s)
	if disk.syncs.Load() != syncs || s.size() != size {
		t.Errorf("%d fsyncs and %d bytes for nothing", disk.syncs.Load()-syncs, s.size()-size)
	}
}

func TestStoreAppliesInSmallTransactions(t *testing.T) {
	disk := newBrokenDisk()
	s, err := openStoreWith(filepath.Join(t.TempDir(), "a.db"), quiet, epoch, &disk.faults)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var ops []op
	for n := range 3*maxTxOps + 1 {
		ops = append(ops, set(fmt.Sprintf("1:%05d", n), "x"))
	}
	if err := s.apply(ops); err != nil || disk.writes.Load() != 4 {
		t.Errorf("%d items took %d transactions (%v)", len(ops), disk.writes.Load(), err)
	}
	large := set("1:large", strings.Repeat("x", maxTxBytes))
	disk.writes.Store(0)
	if err := s.apply([]op{large, large, set("1:small", "x")}); err != nil || disk.writes.Load() != 3 {
		t.Errorf("two large items and a small one took %d transactions (%v)", disk.writes.Load(), err)
	}
	applied(t, s, set("2:large", "not deleted"), set("11:small", "nor this"), del("1:large"))
	disk.writes.Store(0)
	for n := range ops {
		ops[n] = del(ops[n].key)
	}
	if err := s.apply(append(ops, del("1:small"))); err != nil || disk.writes.Load() != 4 {
		t.Errorf("deleting %d items took %d transactions (%v)", len(ops), disk.writes.Load(), err)
	}
	checkBodies(t, s, map[string]string{"2:large": "not deleted", "11:small": "nor this"})
}

// buntdb finds in a store what is in it.
func TestBuntdbReadsAStore(t *testing.T) {
	path, _, want := smallStore(t)
	s := mustOpenStore(t, path) // cuts off what is not confirmed
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	db, err := buntdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got := make(map[string]string)
	err = db.View(func(tx *buntdb.Tx) error {
		return tx.Ascend("", func(key, rec string) bool {
			if key != sealKey {
				it, _, _ := record.Decode(key, rec)
				got[key] = it.Body
			}
			return true
		})
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("buntdb reads %q (%v), want %q", got, err, want)
	}
}

// Commands are, byte for byte, what buntdb would write.
func TestCommandsAreBuntdbs(t *testing.T) {
	db, err := buntdb.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ops := []op{set("1:", ""), set("1:a", "\r\n\x00"), set("1:b", strings.Repeat("x", 70_000))}
	err = db.Update(func(tx *buntdb.Tx) error {
		for _, o := range ops {
			if _, _, err := tx.Set(o.key, o.rec, nil); err != nil {
				return err
			}
		}
		return nil
	})
	var want bytes.Buffer
	if err := errors.Join(err, db.Save(&want)); err != nil {
		t.Fatal(err)
	}
	if got := appendCommands(nil, ops); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%q\nis not what buntdb writes: %q", got, want.Bytes())
	}
}

// What a store holds is in memory once, in the tables: not in the store as well.
func TestStoreTakesNoMemory(t *testing.T) {
	s := mustOpenStore(t, filepath.Join(t.TempDir(), "a.db"))
	defer s.close()
	const items, size = 5000, 2000
	before := liveHeap()
	for n := range items {
		applied(t, s, set(fmt.Sprint("1:", n), strings.Repeat("x", size)))
	}
	if held := liveHeap() - before; held > items*size/20 {
		t.Errorf("%d bytes are held for %d items of %d", held, items, size)
	}
	if err := s.compact(nil, nil); err != nil {
		t.Fatal(err)
	}
	if held := liveHeap() - before; held > items*size/20 {
		t.Errorf("after a compaction %d bytes are held", held)
	}
}

func TestStoreRefusesKeysItCouldNotReadBack(t *testing.T) {
	s := mustOpenStore(t, filepath.Join(t.TempDir(), "a.db"))
	defer s.close()
	longest := string(record.AppendKey(nil, 1<<32-1, strings.Repeat("k", 64<<10)))
	if err := s.apply([]op{set(longest, "")}); err != nil {
		t.Error(err)
	}
	if err := s.apply([]op{set(longest+"k", "")}); err == nil {
		t.Error("a key that is too long is taken")
	}
}

func TestStoreCutAnywhereComesBackAsLastConfirmed(t *testing.T) {
	path, sealed, want := smallStore(t)
	content := read(t, path)
	for size := sealed; size <= int64(len(content)); size++ {
		path := plant(t, "partition-000.db", content[:size])
		s := mustOpenStore(t, path)
		checkBodies(t, s, want)
		if size > sealed {
			checkKept(t, path, content[sealed:size])
		}
		applied(t, s, set("1:new", "after the cut"))
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpenStore(t, path)
		want := maps.Clone(want)
		want["1:new"] = "after the cut"
		checkBodies(t, s, want)
		s.close()
	}
}

func TestStoreCutWithinWhatWasConfirmedIsWholeUpToAnEarlierSeal(t *testing.T) {
	path, sealed, _ := smallStore(t)
	content := read(t, path)
	for size := range sealed {
		s, err := openStore(plant(t, "partition-000.db", content[:size]), quiet, epoch)
		if size < sealSize {
			if err == nil {
				t.Fatalf("a file of %d bytes without a seal is taken for a store", size)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if s.size() > size || !bytes.Equal(read(t, s.file.f.Name()), content[:s.size()]) {
			t.Fatalf("cut at %d: %d bytes are left", size, s.size())
		}
		s.close()
	}
}

// Whatever a single bit does to a store's file, it is found, or what the store held is unharmed.
func TestEveryFlippedBitOfAStoreIsDetectedOrHarmless(t *testing.T) {
	path, sealed, want := smallStore(t)
	content := string(read(t, path))
	found, harmless := 0, 0
	eachFlip(content, func(bad string, at int) {
		_, to, err := scanStore(strings.NewReader(bad), path, int64(len(bad)), nil)
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
			found++
			if int64(at) < damage.From || int64(at) >= damage.To {
				t.Fatalf("a flip at %d is reported as %v", at, damage)
			}
		case err != nil:
			t.Fatal(err)
		case to != sealed || int64(at) < sealed:
			t.Fatalf("a flip at %d goes unseen; the file is cut at %d", at, to)
		default:
			harmless++
		}
	})
	if found < int(sealed)*8 || harmless == 0 {
		t.Errorf("%d flips were found, %d were harmless", found, harmless)
	}
	s := mustOpenStore(t, path)
	defer s.close()
	checkBodies(t, s, want)
}

// A power cut leaves sectors unwritten in any order: zeros before bytes that were written.
func TestStoreWithHolesInWhatWasNotConfirmedIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "kept"))
	sealed := int(s.size())
	for n := range 20 {
		if err := s.apply([]op{set(fmt.Sprint("1:", n), strings.Repeat("x", 300))}); err != nil {
			t.Fatal(err)
		}
	}
	content := read(t, path)
	applied(t, s)
	whole := read(t, path)
	s.close()
	for from := sealed - sealed%sectorSize + sectorSize; from+sectorSize <= len(content); from += sectorSize {
		holed := bytes.Clone(content)
		clear(holed[from : from+sectorSize])
		s := mustOpenStore(t, plant(t, "a.db", holed))
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		s.close()

		holed = bytes.Clone(whole) // the same hole is damage once a seal has confirmed it
		clear(holed[from : from+sectorSize])
		checkDamage(t, plant(t, "a.db", holed), int64(from), int64(from+sectorSize))
	}
	for _, zeros := range []int{1, 2, 100, 4096, 70_000} {
		path := plant(t, "a.db", append(bytes.Clone(content), make([]byte, zeros)...))
		s := mustOpenStore(t, path)
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		checkKept(t, path, append(content[sealed:], make([]byte, zeros)...))
		s.close()
	}
}

// A power cut may take the sector that holds nothing but the end of the last seal.
func TestStoreWhoseLastSealLacksItsLastSector(t *testing.T) {
	tried := 0
	for pad := range sectorSize {
		s := mustOpenStore(t, filepath.Join(t.TempDir(), "partition-000.db"))
		applied(t, s, set("1:a", strings.Repeat("x", pad)))
		path := s.path()
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		content := read(t, path)
		over := len(content) % sectorSize
		if over == 0 || over > 3 {
			continue
		}
		tried++
		clear(content[len(content)-over:])
		s = mustOpenStore(t, plant(t, "partition-000.db", content))
		checkBodies(t, s, map[string]string{})
		s.close()
	}
	if tried != 3 {
		t.Errorf("%d seals were torn so", tried)
	}
}

// Clients write what they like into values: also what looks like a seal, in a value which a power
// cut has torn.
func TestStoreIsNotFooledByForgedSeals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "kept"))
	sealed := s.size()
	forged := seal{mark: s.mark + 1, from: sealed, at: sealed + 100}
	if err := s.apply([]op{set("1:b", string(forged.bytes())+strings.Repeat("x", 100))}); err != nil {
		t.Fatal(err)
	}
	content := read(t, path)
	s.close()
	for _, end := range []string{"", strings.Repeat("\x00", 20)} { // cut short, or zeros in its place
		torn := append(bytes.Clone(content[:len(content)-20]), end...)
		path := plant(t, "a.db", torn)
		s := mustOpenStore(t, path)
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		checkKept(t, path, torn[sealed:])
		s.close()
	}
}

// checkDamage checks that a store's file is refused with a range that overlaps from to to.
func checkDamage(t *testing.T, path string, from, to int64) {
	t.Helper()
	before := read(t, path)
	s, err := openStore(path, quiet, epoch)
	var damage *DamageError
	if !errors.As(err, &damage) {
		if s != nil {
			s.close()
		}
		t.Fatalf("damage at %d to %d is answered by %v", from, to, err)
	}
	if damage.File != path || damage.From >= to || damage.To <= from {
		t.Errorf("damage at %d to %d is reported as: %v", from, to, damage)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("a damaged file was changed")
	}
}

// buntdb skips zeros without a word and goes on writing at a wrong place, allocates what a length
// says, and takes half a file for a torn one. None of that may reach it.
func TestStoreRefusesWhatBuntdbWouldSwallow(t *testing.T) {
	path, sealed, _ := smallStore(t)
	content := string(read(t, path)[:sealed])
	middle := strings.Index(content, "*3\r\n$3\r\nset\r\n$3\r\n1:b")
	for name, bad := range map[string]string{
		"zeros":      content[:middle] + "\x00\x00\x00" + content[middle:],
		"huge":       strings.Replace(content, "$3\r\n1:b\r\n$", "$3\r\n1:b\r\n$99999999999", 1),
		"longer":     strings.Replace(content, "$3\r\n1:b\r\n$", "$3\r\n1:b\r\n$9", 1),
		"flushdb":    content[:middle] + "*1\r\n$7\r\nflushdb\r\n" + content[middle:],
		"expiring":   content[:middle] + "*5\r\n$3\r\nset\r\n$3\r\n1:x\r\n$1\r\nx\r\n$2\r\nae\r\n$1\r\n1\r\n" + content[middle:],
		"array":      content[:middle] + "*3000000000\r\n" + content[middle:],
		"upper case": strings.Replace(content, "set\r\n$3\r\n1:b", "SET\r\n$3\r\n1:b", 1),
		"garbage":    content[:middle] + "garbage" + content[middle:],
		"empty":      "",
	} {
		t.Run(name, func(t *testing.T) {
			checkDamage(t, plant(t, "a.db", []byte(bad)), int64(min(middle, len(bad)-1)), int64(middle+100))
		})
	}
}

func TestScanNeedsConstantMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:large", strings.Repeat("x", 8<<20)))
	defer s.close()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := scanStore(f, path, s.size(), nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 256<<10 {
		t.Errorf("a file of %d bytes took %d bytes of memory", s.size(), used)
	}
}

func TestStoreResumesWhenAFullDiskHasRoomAgain(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", muchText))
	size := s.size()
	lift := limitFileSize(t, size+100)
	ops := []op{set("1:b", strings.Repeat("x", 1000)), del("1:a")}
	if err := s.apply(ops); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() != size {
		t.Errorf("a partial write is left in the file: %d bytes, not %d (%v)", fi.Size(), size, err)
	}
	checkBodies(t, s, map[string]string{"1:a": muchText})
	if err := s.sync(); err != nil {
		t.Errorf("what was confirmed before: %v", err)
	}
	lift()
	applied(t, s, ops...)
	checkReopened(t, s, map[string]string{"1:b": strings.Repeat("x", 1000)})
}

func TestStoreNeverTrustsADiskThatFailedToSync(t *testing.T) {
	disk := newBrokenDisk()
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := openStoreWith(path, quiet, epoch, &disk.faults)
	if err != nil {
		t.Fatal(err)
	}
	applied(t, s, set("1:a", "confirmed"))
	disk.failSyncs.Store(true)
	if err := errors.Join(s.apply([]op{set("1:a", "lost")}), s.sync()); !errors.Is(err, errDisk) {
		t.Fatalf("a failed fsync gives %v", err)
	}
	disk.failSyncs.Store(false)
	if s.sync() == nil || s.apply([]op{set("1:b", "")}) == nil || s.close() == nil {
		t.Error("a failed fsync is forgotten")
	}
	s = mustOpenStore(t, path)
	defer s.close()
	checkBodies(t, s, map[string]string{"1:a": "confirmed"})
}

func TestStoreNoticesThatItsFileWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpenStore(t, path)
	applied(t, s, set("1:a", "1"))
	copied := path + ".copy"
	if err := errors.Join(os.WriteFile(copied, read(t, path), 0o600), os.Rename(copied, path)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.apply([]op{set("1:a", "2")}), s.sync()); err == nil {
		t.Error("an fsync of a file that is not there any more counts")
	}
	s.close()
}

// A panic of buntdb's own leaves its lock held: whoever recovered from it would wait for ever.
func TestPanicOfBuntdbEndsTheProcess(t *testing.T) {
	if os.Getenv("MAYFLY_TEST_PANIC") != "" {
		defer func() { recover() }()
		endProcess("buntdb: cannot go on")
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "MAYFLY_TEST_PANIC=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "buntdb: cannot go on") {
		t.Errorf("the process ends with %v:\n%s", err, out)
	}
}

func TestInterruptedCompactionIsUndone(t *testing.T) {
	make := func(t *testing.T) (path string, old []byte) {
		path = filepath.Join(t.TempDir(), "a.db")
		s := mustOpenStore(t, path)
		applied(t, s, set("1:a", "old"))
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return path, read(t, path)
	}
	check := func(t *testing.T, path string, old []byte) {
		t.Helper()
		s := mustOpenStore(t, path)
		checkBodies(t, s, map[string]string{"1:a": "old"})
		s.close()
		for _, name := range []string{path + ".prev", path + ".tmp"} {
			if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there (%v)", name, err)
			}
		}
		if !bytes.Equal(read(t, path), old) {
			t.Error("the file is not as it was")
		}
	}
	t.Run("before the rename", func(t *testing.T) {
		path, old := make(t)
		if err := errors.Join(os.Link(path, path+".prev"), os.WriteFile(path+".tmp", old[:20], 0o600)); err != nil {
			t.Fatal(err)
		}
		check(t, path, old)
	})
	t.Run("after the rename", func(t *testing.T) {
		path, old := make(t)
		if err := errors.Join(os.Rename(path, path+".prev"), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		check(t, path, old)
	})
}
