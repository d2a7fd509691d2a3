package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
	"github.com/tidwall/buntdb"
)

// quiet is a log that writes nothing.
var quiet = zerolog.Nop()

// path is that of the store of a test, on a disk of its own.
const path = vfstest.Dir + "/partition-000.db"

func open(disk vfs.FS) (*Store, error) {
	if _, err := disk.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := Create(disk, path); err != nil {
			return nil, err
		}
	}
	return Open(disk, path, Options{Log: quiet, Now: aoftest.Epoch})
}

func mustOpen(t *testing.T, disk vfs.FS) *Store {
	t.Helper()
	s, err := open(disk)
	drill.Check(t, err)
	return s
}

// load visits the items of a store, confirmed or not, in ascending order of their keys.
func (s *Store) load(visit func(key, rec string) error) error {
	present := make(map[string]string)
	all := aof.Confirmed{Visit: func(o aof.Op) error {
		if o.Del {
			delete(present, o.Key)
		} else {
			present[strings.Clone(o.Key)] = strings.Clone(o.Rec)
		}
		return nil
	}}
	if err := errors.Join(s.scan(&all), all.Sealed(aof.Seal{})); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(present)) {
		if err := visit(key, present[key]); err != nil {
			return err
		}
	}
	return nil
}

// applied applies changes and confirms them.
func applied(t *testing.T, s *Store, ops ...aof.Op) {
	t.Helper()
	drill.Check(t, s.Apply(ops), s.Sync(0))
}

// bodies loads a store and returns the bodies of its items by key.
func bodies(s *Store) (map[string]string, error) {
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

func checkBodies(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	got, err := bodies(s)
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("the store holds %q, %v; want %q", got, err, want)
	}
}

// checkReopened closes a store, opens it again and checks its items.
func checkReopened(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	drill.Check(t, s.Close())
	s = mustOpen(t, s.fs)
	defer s.Close()
	checkBodies(t, s, want)
}

// planted returns a disk with the file of a store.
func planted(t *testing.T, content []byte) vfs.FS {
	t.Helper()
	disk := vfstest.New()
	vfstest.Write(t, disk, path, content)
	return disk
}

// smallStore makes a store's file of a few items, with deletes, overwritten items and binary
// bodies, some of it not confirmed. It returns the end of the confirmed part and its items.
func smallStore(t *testing.T) (content []byte, sealed int64, want map[string]string) {
	t.Helper()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "alpha"), aoftest.Set("1:b", "beta"), aoftest.Set("2:c", "\r\n$3\r\nset\r\n\x00\x00"))
	applied(t, s, aoftest.Del("1:b"), aoftest.Set("1:a", "alpha again"), aoftest.Set("1:d", ""))
	applied(t, s, aoftest.Del("1:d"))
	sealed = s.Size()
	drill.Check(t, s.Apply([]aof.Op{aoftest.Set("1:a", "not confirmed")}))
	drill.Check(t, s.Apply([]aof.Op{aoftest.Del("2:c")}))
	content = vfstest.Read(t, disk, path) // closing would confirm the rest
	drill.Check(t, s.Close())
	return content, sealed, map[string]string{"1:a": "alpha again", "2:c": "\r\n$3\r\nset\r\n\x00\x00"}
}

func TestStoreKeepsAppliedChanges(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "1"), aoftest.Set("1:b", "2"), aoftest.Set("1:a", "3"), aoftest.Del("1:b"), aoftest.Del("1:none"), aoftest.Set("1:b", "4"), aoftest.Set("1:c", "5"), aoftest.Del("1:c"))
	want := map[string]string{"1:a": "3", "1:b": "4"}
	checkBodies(t, s, want)
	if fi, err := disk.Stat(path); err != nil || fi.Size() != s.Size() {
		t.Errorf("the size is %d, not %d (%v)", s.Size(), fi.Size(), err)
	}
	checkReopened(t, s, want)
}

func TestStoreConfirmsOnClose(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	drill.Check(t, s.Apply([]aof.Op{aoftest.Set("1:a", "1")}), s.Close())
	s = mustOpen(t, disk)
	defer s.Close()
	checkBodies(t, s, map[string]string{"1:a": "1"})
}

func TestUnchangedStoreIsNotForcedToDisk(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	defer s.Close()
	applied(t, s, aoftest.Set("1:a", "1"))
	syncs, size := disk.Syncs.Load(), s.Size()
	applied(t, s)
	if disk.Syncs.Load() != syncs || s.Size() != size {
		t.Errorf("%d fsyncs and %d bytes for nothing", disk.Syncs.Load()-syncs, s.Size()-size)
	}
}

func TestStoreAppliesInPieces(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	defer s.Close()
	var ops []aof.Op
	for n := range 3*maxPieceOps + 1 {
		ops = append(ops, aoftest.Set(fmt.Sprintf("1:%05d", n), "x"))
	}
	disk.Writes.Store(0)
	if err := s.Apply(ops); err != nil || disk.Writes.Load() != 4 {
		t.Errorf("%d items took %d transactions (%v)", len(ops), disk.Writes.Load(), err)
	}
	large := aoftest.Set("1:large", strings.Repeat("x", maxPieceBytes))
	disk.Writes.Store(0)
	if err := s.Apply([]aof.Op{large, large, aoftest.Set("1:small", "x")}); err != nil || disk.Writes.Load() != 3 {
		t.Errorf("two large items and a small one took %d transactions (%v)", disk.Writes.Load(), err)
	}
	applied(t, s, aoftest.Set("2:large", "not deleted"), aoftest.Set("11:small", "nor this"), aoftest.Del("1:large"))
	disk.Writes.Store(0)
	for n := range ops {
		ops[n] = aoftest.Del(ops[n].Key)
	}
	if err := s.Apply(append(ops, aoftest.Del("1:small"))); err != nil || disk.Writes.Load() != 4 {
		t.Errorf("deleting %d items took %d transactions (%v)", len(ops), disk.Writes.Load(), err)
	}
	checkBodies(t, s, map[string]string{"2:large": "not deleted", "11:small": "nor this"})
}

// buntdb finds the items of a store.
func TestBuntdbReadsAStore(t *testing.T) {
	t.Parallel()
	content, _, want := smallStore(t)
	disk := planted(t, content)
	s := mustOpen(t, disk) // cuts off the unconfirmed end
	drill.Check(t, s.Close())
	db, err := buntdb.Open(aoftest.Plant(t, "a.db", vfstest.Read(t, disk, path)))
	drill.Check(t, err)
	defer db.Close()
	got := make(map[string]string)
	err = db.View(func(tx *buntdb.Tx) error {
		return tx.Ascend("", func(key, rec string) bool {
			if key != aof.SealKey {
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

// A store keeps nothing of its content in memory.
func TestStoreTakesNoMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	mark, err := Create(vfstest.Fast(), file)
	drill.Check(t, err)
	s, err := Open(vfstest.Fast(), file, Options{Log: quiet})
	if err != nil || s.Mark() != mark {
		t.Fatal(err)
	}
	defer s.Close()
	const items, size = 5000, 2000
	before := aoftest.LiveHeap()
	for n := range items {
		applied(t, s, aoftest.Set(fmt.Sprint("1:", n), strings.Repeat("x", size)))
	}
	if held := aoftest.LiveHeap() - before; held > items*size/20 {
		t.Errorf("%d bytes are held for %d items of %d", held, items, size)
	}
	drill.Check(t, compact(s))
	if held := aoftest.LiveHeap() - before; held > items*size/20 {
		t.Errorf("after a compaction %d bytes are held", held)
	}
}

func TestStoreRefusesLongKeys(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfstest.New())
	defer s.Close()
	longest := string(record.AppendLogKey(nil, 1<<32-1, "0000018bcfe5680000000003:"+strings.Repeat("k", 64<<10)))
	drill.Report(t, s.Apply([]aof.Op{aoftest.Set(longest, "")}))
	if err := s.Apply([]aof.Op{aoftest.Set(longest+"k", "")}); err == nil {
		t.Error("a key that is too long is taken")
	}
}

func TestStoreCutAnywhere(t *testing.T) {
	t.Parallel()
	content, sealed, want := smallStore(t)
	for size := sealed; size <= int64(len(content)); size++ {
		disk := planted(t, content[:size])
		s := mustOpen(t, disk)
		checkBodies(t, s, want)
		if size > sealed {
			aoftest.CheckKept(t, disk, path, content[sealed:size])
		}
		applied(t, s, aoftest.Set("1:new", "after the cut"))
		drill.Check(t, s.Close())
		s = mustOpen(t, disk)
		want := maps.Clone(want)
		want["1:new"] = "after the cut"
		checkBodies(t, s, want)
		s.Close()
	}
}

func TestStoreCutBeforeItsLastSeal(t *testing.T) {
	t.Parallel()
	content, sealed, _ := smallStore(t)
	for size := range sealed {
		s, err := open(planted(t, content[:size]))
		if size < aof.SealSize {
			if err == nil {
				t.Fatalf("a file of %d bytes without a seal is taken for a store", size)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if s.Size() > size || !bytes.Equal(vfstest.Read(t, s.fs, path), content[:s.Size()]) {
			t.Fatalf("cut at %d: %d bytes are left", size, s.Size())
		}
		s.Close()
	}
}

// A single wrong bit in a store's file is found, or the items are unharmed.
func TestEveryFlippedBitOfAStoreIsDetectedOrHarmless(t *testing.T) {
	t.Parallel()
	whole, sealed, want := smallStore(t)
	content := string(whole)
	found, harmless := 0, 0
	aoftest.EachFlip(content, func(bad string, at int) {
		_, to, err := aof.Scan(strings.NewReader(bad), path, int64(len(bad)), aof.Store, nil)
		var damage *aof.DamageError
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
	if found < int(sealed) || harmless == 0 {
		t.Errorf("%d flips were found, %d were harmless", found, harmless)
	}
	s := mustOpen(t, planted(t, whole))
	defer s.Close()
	checkBodies(t, s, want)
}

// A power cut leaves sectors unwritten in any order: zeros before bytes that were written.
func TestStoreWithUnconfirmedHolesIsCut(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "kept"))
	sealed := int(s.Size())
	for n := range 20 {
		drill.Check(t, s.Apply([]aof.Op{aoftest.Set(fmt.Sprint("1:", n), strings.Repeat("x", 300))}))
	}
	content := vfstest.Read(t, disk, path)
	applied(t, s)
	whole := vfstest.Read(t, disk, path)
	s.Close()
	for from := sealed - sealed%aof.SectorSize + aof.SectorSize; from+aof.SectorSize <= len(content); from += aof.SectorSize {
		holed := bytes.Clone(content)
		clear(holed[from : from+aof.SectorSize])
		s := mustOpen(t, planted(t, holed))
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		s.Close()

		holed = bytes.Clone(whole) // the same hole is damage once a seal has confirmed it
		clear(holed[from : from+aof.SectorSize])
		checkDamage(t, planted(t, holed), int64(from), int64(from+aof.SectorSize))
	}
	for _, zeros := range []int{1, 2, 100, 4096, 70_000} {
		disk := planted(t, append(bytes.Clone(content), make([]byte, zeros)...))
		s := mustOpen(t, disk)
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		aoftest.CheckKept(t, disk, path, append(content[sealed:], make([]byte, zeros)...))
		s.Close()
	}
}

// A power cut may take the sector with only the end of the last seal.
func TestStoreWhoseLastSealLacksItsLastSector(t *testing.T) {
	t.Parallel()
	tried := 0
	for pad := range aof.SectorSize {
		disk := vfstest.New()
		s := mustOpen(t, disk)
		applied(t, s, aoftest.Set("1:a", strings.Repeat("x", pad)))
		drill.Check(t, s.Close())
		content := vfstest.Read(t, disk, path)
		over := len(content) % aof.SectorSize
		if over == 0 || over > 3 {
			continue
		}
		tried++
		clear(content[len(content)-over:])
		s = mustOpen(t, planted(t, content))
		checkBodies(t, s, map[string]string{})
		s.Close()
	}
	if tried != 3 {
		t.Errorf("%d seals were torn so", tried)
	}
}

// Clients may write anything into values: also bytes that look like a seal, in a value that a power cut has
// torn.
func TestStoreIsNotFooledByForgedSeals(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "kept"))
	sealed := s.Size()
	forged := aof.Seal{Mark: s.mark + 1, From: sealed, At: sealed + 100, OnDisk: sealed + 100}
	drill.Check(t, s.Apply([]aof.Op{aoftest.Set("1:b", string(forged.Append(nil))+strings.Repeat("x", 100))}))
	content := vfstest.Read(t, disk, path)
	s.Close()
	for _, end := range []string{"", strings.Repeat("\x00", 20)} { // cut short, or zeros in its place
		torn := append(bytes.Clone(content[:len(content)-20]), end...)
		disk := planted(t, torn)
		s := mustOpen(t, disk)
		checkBodies(t, s, map[string]string{"1:a": "kept"})
		aoftest.CheckKept(t, disk, path, torn[sealed:])
		s.Close()
	}
}

// checkDamage checks that a store's file is refused with a range that overlaps from to to.
func checkDamage(t *testing.T, disk vfs.FS, from, to int64) {
	t.Helper()
	before := vfstest.Read(t, disk, path)
	s, err := open(disk)
	var damage *aof.DamageError
	if !errors.As(err, &damage) {
		if s != nil {
			s.Close()
		}
		t.Fatalf("damage at %d to %d is answered by %v", from, to, err)
	}
	if damage.File != path || damage.From >= to || damage.To <= from {
		t.Errorf("damage at %d to %d is reported as: %v", from, to, damage)
	}
	if !bytes.Equal(vfstest.Read(t, disk, path), before) {
		t.Error("a damaged file was changed")
	}
}

// buntdb skips zeros silently and continues to write at a wrong offset. It allocates as many bytes as a
// length says, and takes half a file for a torn one. A store refuses such files.
func TestStoreRefusesDamageThatBuntdbAccepts(t *testing.T) {
	t.Parallel()
	whole, sealed, _ := smallStore(t)
	content := string(whole[:sealed])
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
			checkDamage(t, planted(t, []byte(bad)), int64(min(middle, len(bad)-1)), int64(middle+100))
		})
	}
}

func TestStoreResumesAfterAFullDisk(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", aoftest.MuchText))
	size := s.Size()
	disk.Most.Store(size + 100)
	ops := []aof.Op{aoftest.Set("1:b", strings.Repeat("x", 1000)), aoftest.Del("1:a")}
	if err := s.Apply(ops); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	if fi, err := disk.Stat(path); err != nil || fi.Size() != size {
		t.Errorf("a partial write is left in the file: %d bytes, not %d (%v)", fi.Size(), size, err)
	}
	checkBodies(t, s, map[string]string{"1:a": aoftest.MuchText})
	if err := s.Sync(0); err != nil {
		t.Errorf("confirmed changes: %v", err)
	}
	disk.Most.Store(0)
	applied(t, s, ops...)
	checkReopened(t, s, map[string]string{"1:b": strings.Repeat("x", 1000)})
}

func TestFailedSyncBreaksTheStore(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "confirmed"))
	disk.FailSyncs.Store(true)
	if err := errors.Join(s.Apply([]aof.Op{aoftest.Set("1:a", "lost")}), s.Sync(0)); !errors.Is(err, vfstest.ErrDisk) {
		t.Fatalf("a failed fsync returns %v", err)
	}
	disk.FailSyncs.Store(false)
	if s.Sync(0) == nil || s.Apply([]aof.Op{aoftest.Set("1:b", "")}) == nil || s.Close() == nil {
		t.Error("a failed fsync is forgotten")
	}
	s = mustOpen(t, disk)
	defer s.Close()
	checkBodies(t, s, map[string]string{"1:a": "confirmed"})
}

func TestStoreDetectsThatItsFileWasReplaced(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "1"))
	copied := path + ".copy"
	vfstest.Write(t, disk, copied, vfstest.Read(t, disk, path))
	drill.Check(t, disk.Rename(copied, path))
	if err := errors.Join(s.Apply([]aof.Op{aoftest.Set("1:a", "2")}), s.Sync(0)); err == nil {
		t.Error("an fsync of a file that is not there any more counts")
	}
	s.Close()
}

func TestInterruptedCompactionIsUndone(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	applied(t, s, aoftest.Set("1:a", "old"))
	drill.Check(t, s.Close())
	old := vfstest.Read(t, disk, path)
	for _, left := range []int{0, 20, len(old)} { // bytes of the new file that were written
		vfstest.Write(t, disk, path+TempSuffix, old[:left])
		s := mustOpen(t, disk)
		checkBodies(t, s, map[string]string{"1:a": "old"})
		drill.Check(t, s.Close())
		if _, err := disk.Stat(path + TempSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the new file is still there (%v)", err)
		}
		if !bytes.Equal(vfstest.Read(t, disk, path), old) {
			t.Error("the file is not as it was")
		}
	}
}

// A large store that is cut anywhere behind its last seal has all confirmed items. One that is cut before it,
// which no crash does, has those of an earlier seal, or is refused.
func TestLargeStoreCutAnywhere(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	s := mustOpen(t, disk)
	var seals []int // ends
	var confirmed []map[string]string
	bodies, r := make(map[string]string), drill.Rand(t)
	for n := range 400 {
		key, body := fmt.Sprint("1:", r.IntN(100)), strings.Repeat("x", r.IntN(400))
		bodies[key] = body
		drill.Check(t, s.Apply([]aof.Op{aoftest.Set(key, body)}))
		if n%60 == 0 {
			drill.Check(t, s.Sync(0))
			seals = append(seals, int(s.Size()))
			confirmed = append(confirmed, maps.Clone(bodies))
		}
	}
	content := vfstest.Read(t, disk, path)
	drill.Check(t, s.Close())
	aoftest.EachCut(t, len(content), func(left int) {
		vfstest.Write(t, disk, path, content[:left])
		var want map[string]string
		end := aof.SealSize
		for n, at := range seals {
			if at <= left {
				want, end = confirmed[n], int64(at)
			}
		}
		s, err := open(disk)
		if err != nil {
			if int64(left) >= aof.SealSize {
				t.Fatalf("cut at %d: %v", left, err)
			}
			return
		}
		checkBodies(t, s, want)
		drill.Check(t, s.file.Close())
		if end < int64(left) {
			aoftest.CheckKept(t, disk, path, content[end:left])
		}
	})
}

// scan reads the whole file. Confirmed changes must be in it: a start would cut off an end that looks as if
// it had never been written, but this process has confirmed it.
func (s *Store) scan(v aof.Visitor) error {
	_, end, err := aof.Scan(s.file, s.Path(), s.bytes.Load(), aof.Store, v)
	if err == nil && end != s.sealed {
		err = &aof.DamageError{File: s.Path(), From: end, To: s.sealed, Reason: "confirmed changes are missing"}
	}
	return err
}
