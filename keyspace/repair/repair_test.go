package repair

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/keyspace"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// repaired repairs a folder and returns the report and the living items of the new one.
func repaired(t *testing.T, dir string) (*Report, map[place]record.Item) {
	t.Helper()
	before := fingerprint(t, dir)
	to := filepath.Join(newDir(t), "new")
	report, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil })
	drill.Check(t, err)
	if fingerprint(t, dir) != before {
		t.Fatal("the damaged folder has changed")
	}
	if in := mustInspect(t, to); in.State != Sound {
		t.Fatalf("the new folder is %s: %+v", in.State, in.Files)
	}
	state, err := starts(t, to)
	drill.Check(t, err)
	return report, state
}

func TestRepairOfASoundFolderCopiesIt(t *testing.T) {
	t.Parallel()
	l := newLived(t, 4)
	report, state := repaired(t, l.dir)
	if !report.Clean() {
		t.Errorf("%+v", report)
	}
	compare(t, "", l.state, state, nil)
}

// compare reports the items in which two states differ, but for those excused, and returns their number.
func compare(t *testing.T, what string, want, got map[place]record.Item, excused func(at place) bool) (differ int) {
	t.Helper()
	check := func(at place) {
		if want[at] == got[at] {
			return
		}
		differ++
		if excused == nil || !excused(at) {
			t.Errorf("%s: %v was %+v, is %+v", what, at, want[at], got[at])
		}
	}
	for at := range want {
		check(at)
	}
	for at := range got {
		if _, ok := want[at]; !ok {
			check(at)
		}
	}
	return differ
}

// A wrong bit or digit, an extra or missing byte costs at most its record. The report names the items that
// differ, or says how many may.
func TestRepairKeepsUndamagedItems(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	l := newLived(t, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	ways := map[string]func(b []byte, at int) []byte{
		"a wrong bit":   func(b []byte, at int) []byte { b[at] ^= 1 << random.IntN(8); return b },
		"a wrong digit": func(b []byte, at int) []byte { b[at] = byte('0' + random.IntN(10)); return b },
		"a byte less":   func(b []byte, at int) []byte { return append(b[:at], b[at+1:]...) },
		"a byte more":   func(b []byte, at int) []byte { return append(b[:at:at], append([]byte{'0'}, b[at:]...)...) },
	}
	lost, older := 0, 0
	for _, file := range l.files() {
		if file == datadir.FormatName {
			continue // only the number of partitions depends on it
		}
		for range drill.Pick(1, 2, 100) {
			for _, way := range slices.Sorted(maps.Keys(ways)) { // in this order, so that a seed repeats itself
				spoil, at := ways[way], 0
				dir := l.copy(file, func(b []byte) []byte { at = random.IntN(len(b)); return spoil(b, at) })
				what := fmt.Sprintf("%s, %s at %d", file, way, at)
				report, state := repaired(t, dir)
				if mustInspect(t, dir).State == Damaged && !hasProblems(report) {
					t.Errorf("%s: the report knows no problem", what)
				}
				if len(report.Policies) > 0 {
					continue // see TestRepairOfContainers
				}
				named := namedIn(report)
				differ := compare(t, what, l.state, state, func(at place) bool {
					_, there := state[at]
					return named[at] || !there || report.Exposed > 0
				})
				if differ > 1 {
					t.Errorf("%s: %d items are not as they were\n%+v", what, differ, report)
				}
				lost, older = lost+len(report.Lost), older+len(report.Older)
			}
		}
	}
	t.Log("lost:", lost, "older:", older)
	if lost+older == 0 || drill.On() && (lost == 0 || older == 0) {
		t.Error("the damage never hit an item")
	}
}

// Bytes behind the last seal, or a wrong file "format", cost nothing.
func TestRepairOfFilesWithoutItems(t *testing.T) {
	t.Parallel()
	l := newLived(t, 10)
	for file, spoil := range map[string]func(b []byte) []byte{
		datadir.PartitionName(0): func(b []byte) []byte { return append(b, 'x') },
		datadir.PartitionName(1): func(b []byte) []byte { return append(b, "*3\r\n$3\r\nset\r\n$x\r\n"...) },
		datadir.FormatName:       func(b []byte) []byte { return b[:20] },
		datadir.PartitionName(2): func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, // in the last seal
	} {
		dir := l.copy(file, spoil)
		report, state := repaired(t, dir)
		if !hasProblems(report) || len(report.Lost)+len(report.Older) > 0 {
			t.Errorf("%s: %+v", file, report)
		}
		compare(t, file, l.state, state, nil)
	}
	dir := l.copy(datadir.FormatName, func([]byte) []byte { return nil })
	drill.Check(t, disk.Remove(filepath.Join(dir, datadir.FormatName)))
	_, state := repaired(t, dir)
	compare(t, "without a format", l.state, state, nil)
}

// Missing files are reported, and the others copied.
func TestRepairWithoutSomeFiles(t *testing.T) {
	t.Parallel()
	l := newLived(t, 11)
	for _, file := range l.files() {
		if file == datadir.FormatName {
			continue
		}
		dir := l.copy(file, func(b []byte) []byte { return b })
		drill.Check(t, disk.Remove(filepath.Join(dir, file)))
		report, state := repaired(t, dir)
		if strings.HasPrefix(file, "journal") {
			continue // nothing shows that the newest is missing
		}
		if mustInspect(t, dir).State != Damaged || !hasProblems(report) {
			t.Errorf("%s: %+v", file, report)
		}
		for at, it := range l.state {
			if here := datadir.PartitionName(at.partition(3)); file != here && file != datadir.CatalogueName && state[at] != it {
				t.Errorf("without %s %v is %+v", file, at, state[at])
			}
		}
	}
}

func hasProblems(r *Report) bool {
	for _, f := range r.Files {
		if f.State == Damaged && len(f.Problems) > 0 {
			return true
		}
	}
	return false
}

// namedIn returns the items in a report.
func namedIn(r *Report) map[place]bool {
	named := make(map[place]bool)
	for _, list := range [][]Item{r.Lost, r.Older, r.Doubtful} {
		for _, it := range list {
			named[place{it.Container, it.ID}] = true
		}
	}
	return named
}

func TestRepairOfContainers(t *testing.T) {
	t.Parallel()
	o := open(t, 2)
	o.policy("orders", 100)
	o.put("orders", "a", "{}", 0)
	o.policy("carts", 50)
	o.put("carts", "b", "{}", 0)
	o.checkpoint()
	o.clock.Advance(3 * time.Second)
	o.policy("carts", 10)
	o.checkpoint()
	l := o.copied(o.dump())

	// The only record of a container: its items are under another name.
	report, state := repaired(t, l.flipIn(datadir.CatalogueName, `"orders"`, 1))
	if report.Items != 2 || state[place{"recovered-16", "a"}] != l.state[place{"orders", "a"}] ||
		!strings.Contains(strings.Join(report.Policies, "\n"), `record of container 16 is lost: its items are in container "recovered-16"`) {
		t.Errorf("%+v\n%v", report, state)
	}
	// The newer record of two: the older counts, and the report says so.
	report, state = repaired(t, l.flipIn(datadir.CatalogueName, `"carts","ttl":"10"`, 16))
	if len(report.Policies) == 0 || !strings.Contains(strings.Join(report.Policies, "\n"), `newest policy of container "carts" is damaged`) {
		t.Errorf("%+v", report)
	}
	compare(t, "carts", l.state, state, nil)
}

// A wrong bit turns the key of a record into that of a later one. The later record does not make up for the
// damage.
func TestRepairOfAWrongKey(t *testing.T) {
	t.Parallel()
	o := open(t, 3)
	o.put("0", "k2", `"old"`, 0)
	o.checkpoint()
	o.put("0", "k2", `"new"`, 0)
	o.put("0", "k3", `"three"`, 0)
	l := o.copied(nil)
	report, _ := repaired(t, l.flipIn(newestJournal(t, l.dir), "0:k2", 3))
	if report.Clean() || report.Unknown == 0 || report.Exposed == 0 {
		t.Errorf("%+v", report)
	}
	o = open(t, 1)
	o.put("0", "k2", `"two"`, 0)
	o.put("0", "k3", `"three"`, 0)
	o.checkpoint()
	report, _ = repaired(t, o.copied(nil).flipIn(datadir.PartitionName(0), "0:k2", 3))
	if report.Clean() || report.Unknown == 0 {
		t.Errorf("%+v", report)
	}
}

// A container without items whose record is lost is reported.
func TestRepairOfAnEmptyContainer(t *testing.T) {
	t.Parallel()
	o := open(t, 2)
	o.policy("orders", 100)
	o.checkpoint()
	report, _ := repaired(t, o.copied(nil).flipIn(datadir.CatalogueName, `"orders"`, 1))
	if report.Clean() || !strings.Contains(strings.Join(report.Policies, "\n"), "the record of container 16 is lost") {
		t.Errorf("%+v", report)
	}
}

// Without the file "format" the manifest names the stores, also those that are missing.
func TestRepairWithoutFormatAndStore(t *testing.T) {
	t.Parallel()
	l := newLived(t, 11)
	last := datadir.PartitionName(2)
	dir := l.spoilt(remove(datadir.FormatName, last))
	if in := mustInspect(t, dir); in.Partitions != 3 || fileIn(t, in.Files, last).State != Damaged {
		t.Errorf("%+v", in)
	}
	report, _ := repaired(t, dir)
	if report.Partitions != 3 || report.Unknown == 0 {
		t.Errorf("%+v", report)
	}
}

// A delete in a damaged range may be wrong itself: its item is reported as doubtful.
func TestRepairReportsDoubtfulItems(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	for _, id := range []string{"id-1", "id-2", "id-3"} {
		o.put("0", id, `{"id":"`+id+`"}`, 0)
	}
	o.checkpoint()
	o.delete("0", "id-3")
	o.checkpoint()
	l := o.copied(nil)
	report, state := repaired(t, l.flipIn(datadir.PartitionName(0), "0:id-3\r\n", 5)) // 3 becomes 2
	if len(report.Doubtful) != 1 || report.Doubtful[0].ID != "id-2" || report.Doubtful[0].Item.Body != `{"id":"id-2"}` {
		t.Errorf("%+v", report)
	}
	if len(state) != 2 || report.Exposed != 2 {
		t.Errorf("%+v, %+v", report, state)
	}
}

// Of an item with a damaged newest version the older is copied, and the report names it.
func TestRepairNamesOlderVersions(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	for n := range 3 {
		o.put("0", "id", fmt.Sprintf(`{"version":%d}`, n), 0)
		o.clock.Advance(time.Second)
		o.checkpoint()
	}
	l := o.copied(nil)
	file := datadir.PartitionName(0)
	report, state := repaired(t, l.flipIn(file, `{"version":2}`, 11))
	at := report.Older
	if len(at) != 1 || at[0].ID != "id" || at[0].Container != "0" || at[0].TS != aoftest.Epoch+1000 || at[0].File != file || at[0].To <= at[0].From {
		t.Errorf("%+v", report)
	}
	if got := state[place{"0", "id"}].Body; got != `{"version":1}` {
		t.Errorf("the item is %s", got)
	}
	// A wrong length costs nothing: the checksum says where the record ends.
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, file)))
	length := content[strings.LastIndex(content[:strings.LastIndex(content, `{"version":2}`)], "$")+1:]
	report, state = repaired(t, l.flipIn(file, length[:strings.Index(length, "{")], 1))
	if !report.Clean() || state[place{"0", "id"}].Body != `{"version":2}` || !hasProblems(report) {
		t.Errorf("%+v", report)
	}
}

// The bytes from within a set to the end of the next are missing. The first has a newer version. Of the
// second there is no trace, but the seal is not at the offset it names.
func TestRepairReportsMissingBytes(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	for _, ids := range [][]string{{"old", "gone"}, {"old"}} {
		for _, id := range ids {
			o.put("0", id, `{"is":"here"}`, 0)
		}
		o.checkpoint()
	}
	dir := newDir(t)
	copyFolder(t, o.Dir(), dir)
	path := filepath.Join(dir, datadir.PartitionName(0))
	content := string(vfstest.Read(t, disk, path))
	from := strings.Index(content, `{"is":"here"}`)
	to := from + strings.Index(content[from:], "gone")
	to += strings.Index(content[to:], "*3\r\n$3\r\nset\r\n")
	drill.Check(t, writeFile(path, []byte(content[:from]+content[to:])))
	report, state := repaired(t, dir)
	if len(state) != 1 || report.Clean() {
		t.Errorf("%d items are left, and the report says %+v", len(state), report)
	}
}

// Values look like records and seals, in a file in which their surroundings are damaged.
func TestRepairIsNotFooledByForgedRecords(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	o.put("0", "victim", `{"true":1}`, 0)
	forged := string(record.Append(nil, "0:victim", record.Item{Kind: record.Document, Body: `{"forged":1}`, TS: aoftest.Epoch + 1}))
	command := string(aof.AppendSet(nil, "0:victim", forged))
	value := "begin" + command + "\n" + command + command + "end"
	o.key("attack", func(tx *keyspace.Tx) { tx.Put(tx.Container("0"), "attack", record.Plain, value, 0) })
	journalled := o.copied(nil)
	o.checkpoint()
	stored := o.copied(nil)
	for file, l := range map[string]*lived{datadir.PartitionName(0): stored, journalled.journals()[0]: journalled} {
		check := func(what, dir string) {
			report, state := repaired(t, dir)
			if got := state[place{"0", "victim"}].Body; got != `{"true":1}` {
				t.Errorf("%s, %s: the victim is %s", file, what, got)
			}
			if !hasProblems(report) {
				t.Errorf("%s, %s: no problem is reported", file, what)
			}
		}
		check("a wrong value", l.flipIn(file, "begin", 0))
		check("a wrong length", l.flipIn(file, "0:attack\r\n$", len("0:attack\r\n$")))
	}
}

// span is a command in a file.
type span struct{ file, text string }

// newest returns the commands that have the newest version of a living item, but for those whose newest
// version is a touch.
func (l *lived) newest() map[place][]span {
	l.t.Helper()
	living, found := map[uint64]place{}, map[place][]span{}
	for at, it := range l.state {
		if it.Kind != record.Entry && it.Version != 0 {
			living[it.Version] = at
		}
	}
	for _, file := range l.files() {
		content := vfstest.Read(l.t, disk, filepath.Join(l.dir, file))
		c := aof.NewReader(bytes.NewReader(content), 0, int64(len(content)))
		for cmd, err := c.Next(); err == nil; cmd, err = c.Next() {
			if cmd.Del {
				continue
			}
			key := string(cmd.Key)
			value, err := c.AppendValue(nil, cmd)
			if err != nil {
				break
			}
			it, _, err := record.Decode(key, string(value))
			_, touch := record.TouchedKey(key)
			if at, ok := living[it.Version]; ok && err == nil && !touch && strings.HasSuffix(key, ":"+at.id) {
				found[at] = append(found[at], span{file, string(content[c.From:c.Off])})
			}
		}
	}
	return found
}

// Several sectors are random bytes: each copied item has a version it once had, and the report mentions every
// difference. What no sector has hit is copied.
func TestRepairOfHeavyDamage(t *testing.T) {
	t.Parallel()
	seed, folders, torn := drill.Seed(t), 0, 0
	l, random := newLived(t, seed), rand.New(rand.NewPCG(seed, 0))
	newest, sound := l.newest(), 0
	for _, file := range l.files() {
		if file == datadir.FormatName {
			continue
		}
		for range drill.Pick(2, 4, 100) {
			folders++
			dir := l.copy(file, func(b []byte) []byte {
				for range 1 + random.IntN(3) {
					at := random.IntN(len(b))
					for i := at; i < min(at+random.IntN(aof.SectorSize), len(b)); i++ {
						b[i] = byte(random.Uint32())
					}
				}
				return b
			})
			report, state := repaired(t, dir)
			if !hasProblems(report) {
				torn++ // an end
				continue
			}
			named := namedIn(report)
			compare(t, file, l.state, state, func(at place) bool {
				_, there := state[at]
				return named[at] || !there || report.Exposed > 0 || len(report.Policies) > 0
			})
			spoilt := string(vfstest.Read(t, disk, filepath.Join(dir, file)))
			for at, commands := range newest {
				if file != datadir.CatalogueName && slices.ContainsFunc(commands, func(s span) bool { return s.file != file || strings.Contains(spoilt, s.text) }) {
					if sound++; state[at].Version != l.state[at].Version {
						t.Errorf("%s: version %x of %v is whole in a file, and %x, of %d ms later, is copied", file, l.state[at].Version, at, state[at].Version, state[at].TS-l.state[at].TS)
					}
				}
			}
		}
	}
	if t.Logf("%d folders, %d with a torn end only; %d items that were not hit", folders, torn, sound); torn > folders/2 || sound < folders {
		t.Error("that tests little")
	}
}

// Sectors that the disk cannot read are damage, not a torn end, and the rest is copied.
func TestRepairWhenTheDiskCannotRead(t *testing.T) {
	t.Parallel()
	l := newLived(t, 12)
	for _, file := range l.files() {
		if file == datadir.FormatName || file == datadir.CatalogueName || file == datadir.ManifestName {
			continue
		}
		size := int64(len(vfstest.Read(t, disk, filepath.Join(l.dir, file))))
		for _, from := range []int64{0, size / 2 / aof.SectorSize * aof.SectorSize, (size - 1) / aof.SectorSize * aof.SectorSize} {
			bad := &vfstest.Faulty{FS: disk, OnRead: func(f vfs.File, at, to int64) error {
				if f.Name() == filepath.Join(l.dir, file) && at < from+aof.SectorSize && to > from {
					return &os.PathError{Op: "read", Path: f.Name(), Err: syscall.EIO}
				}
				return nil
			}}
			s, err := openFolder(bad, l.dir)
			drill.Check(t, err)
			to := filepath.Join(newDir(t), "new")
			report, err := s.repair(to, redating{}, func(string, *Report) error { return nil })
			s.close()
			drill.Check(t, err)
			reported := false
			for _, f := range report.Files {
				for _, p := range f.Problems {
					reported = reported || f.File == file && f.State == Damaged && strings.Contains(p.Reason, "disk cannot read") && p.From <= from && p.To >= min(size, from+aof.SectorSize)
				}
			}
			if !reported {
				t.Errorf("%s, sector at %d: %+v", file, from, report.Files)
			}
			state, err := starts(t, to)
			drill.Check(t, err)
			missing := 0
			for at := range l.state {
				if _, ok := state[at]; !ok {
					missing++
				}
			}
			if missing > aof.SectorSize/60 { // no record is smaller
				t.Errorf("%s, sector at %d: %d of %d items are gone", file, from, missing, len(l.state))
			}
		}
	}
}

// If a whole store is lost the report says that items may be lost.
func TestRepairSaysThatAStoreIsLost(t *testing.T) {
	t.Parallel()
	l := newLived(t, 14)
	catalogue := vfstest.Read(t, disk, filepath.Join(l.dir, datadir.CatalogueName))
	for what, content := range map[string][]byte{
		"missing": nil, "empty": {}, "another": catalogue, "another with a torn end": aof.AppendDel(slices.Clone(catalogue), "1:unconfirmed"),
	} {
		for _, name := range []string{datadir.CatalogueName, datadir.PartitionName(1)} {
			if name == datadir.CatalogueName && content != nil && len(content) > 0 {
				continue
			}
			dir := l.copy(name, func([]byte) []byte { return content })
			if content == nil {
				drill.Check(t, disk.Remove(filepath.Join(dir, name)))
			}
			if in := mustInspect(t, dir); in.State != Damaged {
				t.Errorf("%s %s: check says it is %s", name, what, in.State)
			}
			if report, _ := repaired(t, dir); report.Clean() {
				t.Errorf("%s %s: nothing is said to be lost: %+v", name, what, report)
			}
			if _, err := starts(t, dir); err == nil {
				t.Errorf("%s %s: starts", name, what)
			}
		}
	}
}

func TestRepairRefuses(t *testing.T) {
	t.Parallel()
	l := newLived(t, 9)
	if _, err := Run(disk, l.dir, filepath.Join(l.dir, "new"), 0, nil); err == nil || !strings.Contains(err.Error(), "lies within") {
		t.Errorf("into the folder itself: %v", err)
	}
	if _, err := Run(disk, l.dir, newDir(t), 0, nil); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("into an existing folder: %v", err)
	}
	to := filepath.Join(newDir(t), "new")
	failed := fmt.Errorf("the report cannot be written")
	if _, err := Run(disk, l.dir, to, 0, func(string, *Report) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if left, err := disk.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
		t.Errorf("a repair that failed leaves %v, %v", left, err)
	}
}

// listed is a keyspace with a list of n entries.
type listed struct{ *opened }

func newListed(t *testing.T, n int) listed {
	t.Helper()
	l := listed{open(t, 1)}
	drill.Check(t, l.AllowCollections())
	l.edit(func(x *keyspace.ListEdit) { l.push(x, 0, n) })
	return l
}

func (l listed) push(x *keyspace.ListEdit, from, to int) {
	for n := from; n < to; n++ {
		x.Push(false, fmt.Sprintf("entry-%02d-%s", n, strings.Repeat("v", 20)))
	}
}

func (l listed) edit(change func(x *keyspace.ListEdit)) {
	l.key("list", func(tx *keyspace.Tx) {
		x, _ := tx.EditList(tx.Container("0"), "list")
		change(&x)
		x.Close()
	})
}

// repairedList returns what a list has after a repair of a folder.
func repairedList(t *testing.T, dir string) (entries []string) {
	t.Helper()
	to := filepath.Join(newDir(t), "new")
	_, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil })
	drill.Check(t, err)
	after, err := openIn(t, to, livedUntil, 1)
	drill.Check(t, err)
	defer after.stop()
	after.key("list", func(tx *keyspace.Tx) {
		list, _, _ := tx.Elements(tx.Container("0"), "list")
		for entry := range list.Entries(0, list.Len(), false) {
			entries = append(entries, entry[:len("entry-00")])
		}
	})
	return entries
}

// A list that has lost an edge page keeps all that is in the others: what was popped off the lost one is not
// taken from them.
func TestRepairOfAListWithoutItsEdge(t *testing.T) {
	t.Parallel()
	o := newListed(t, 100)
	o.edit(func(x *keyspace.ListEdit) {
		x.Drop(true, 31) // the other pages have as many entries each
		for range 3 {
			x.Pop(true)
			x.Pop(false)
		}
		x.Pop(false)
	})
	o.checkpoint()
	l := o.copied(nil)
	drill.Check(t, Read(disk, l.dir, o.clock, func(record.Container) error { return nil }, func(_, _ string, it record.Item) error {
		if all := slices.Collect(elements.Each(it.Body)); len(all) != 62 || !strings.HasPrefix(all[0].Field, "entry-34") {
			t.Errorf("%d entries are read: %.300s", len(all), it.Body)
		}
		return nil
	}))
	for _, test := range []struct{ spoilt, first, last string }{
		{"", "entry-34", "entry-95"},
		{"entry-33", "entry-46", "entry-95"}, // of the first page
		{"entry-96", "entry-34", "entry-90"}, // of the last one
	} {
		dir := l.dir
		if test.spoilt != "" {
			dir = l.flipIn(datadir.PartitionName(0), test.spoilt, 1)
		}
		if got := repairedList(t, dir); got[0] != test.first || got[len(got)-1] != test.last || !slices.IsSorted(got) {
			t.Errorf("%q is damaged: the list has %d entries, %v", test.spoilt, len(got), got)
		}
	}
}

// Nor is it taken from an older version of the page.
func TestRepairOfAListWithAnOlderEdge(t *testing.T) {
	t.Parallel()
	o := newListed(t, 40)
	o.checkpoint()
	o.edit(func(x *keyspace.ListEdit) { o.push(x, 40, 42) })
	o.edit(func(x *keyspace.ListEdit) { x.Pop(false) })
	l := o.copied(nil)
	journals := l.journals()
	if got := repairedList(t, l.flipIn(journals[len(journals)-1], "entry-41", 1)); got[0] != "entry-00" || got[len(got)-1] != "entry-39" {
		t.Errorf("the list has %v", got)
	}
}

// Nor is what an older head says taken from a page that was written later, though that has as many entries.
func TestRepairOfAListWithAnOlderHead(t *testing.T) {
	t.Parallel()
	o := newListed(t, 100)
	o.edit(func(x *keyspace.ListEdit) {
		for range 3 {
			x.Pop(true)
		}
	})
	o.checkpoint()
	o.edit(func(x *keyspace.ListEdit) {
		for _, entry := range []string{"entry-0c", "entry-0b", "entry-0a"} {
			x.Push(true, entry)
		}
	})
	l := o.copied(nil)
	journals := l.journals()
	got := repairedList(t, l.flipIn(journals[len(journals)-1], ":list", 1))
	if len(got) != 100 || got[0] != "entry-0a" || got[3] != "entry-03" {
		t.Errorf("the list has %d entries, %v", len(got), got)
	}
}

// A rename whose delete is lost leaves two keys that name one list, of which a page has gone. The later one
// has it.
func TestRepairOfAListWithTwoKeys(t *testing.T) {
	t.Parallel()
	o := newListed(t, 60)
	o.checkpoint()
	o.edit(func(x *keyspace.ListEdit) { x.Drop(true, 25) })
	o.key("list", func(tx *keyspace.Tx) {
		c := tx.Container("0")
		tx.Move(c, "list", c, "renamed", 0, false)
		tx.Remove(c, "list")
	})
	l := o.copied(nil)
	journals := l.journals()
	_, state := repaired(t, l.flipIn(journals[len(journals)-1], ":list", 1))
	if _, ok := state[place{"0", "renamed"}]; !ok || len(state) != 1 {
		t.Errorf("what is copied is %v", state)
	}
}

// A key whose pages are all lost is no empty list: it is reported.
func TestRepairOfAListWithoutPages(t *testing.T) {
	t.Parallel()
	o := newListed(t, 0)
	o.edit(func(x *keyspace.ListEdit) { x.Push(true, strings.Repeat("long", 1000)) })
	o.checkpoint()
	report, state := repaired(t, o.copied(nil).flipIn(datadir.PartitionName(0), "longlong", 0))
	if named := namedIn(report); len(state) != 0 || !named[place{"0", "list"}] || len(report.Lost) == 0 {
		t.Errorf("what is copied is %v, the report names %v", state, named)
	}
}

// The key of a page in a damaged delete may be that of a partition that is not there.
func TestKeyOfNoPartition(t *testing.T) {
	t.Parallel()
	m := merger{folderReader: &folderReader{partitions: 2}}
	for key, want := range map[string]int{"1/2a00.0": 0, "1/2a01.0": 1, "1/2a07.0": 2, "1/2aff.0": 2, record.ClockKey: 2} {
		if got := m.laterOf(key); got != want {
			t.Errorf("the changes of %q are in place %d, want %d", key, got, want)
		}
	}
}

// Lists of entries that count up, whose pages and keys are damaged, count up after a repair, whatever was
// popped off them, and a start knows of them what their pages have.
func TestRepairOfDamagedLists(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 6, 300, func(t *testing.T, seed uint64) {
		random, o := rand.New(rand.NewPCG(seed, 5)), open(t, 1)
		drill.Check(t, o.AllowCollections())
		next := 0
		ids := []string{"a", "b", "c", "d"}
		for range 60 {
			id := ids[random.IntN(len(ids))]
			o.key(id, func(tx *keyspace.Tx) {
				c := tx.Container("0")
				x, _ := tx.EditList(c, id)
				for n := range random.IntN(40) {
					if x.Len() > 0 && n%3 == 0 {
						x.Pop(random.IntN(2) == 0)
					} else {
						x.Push(false, fmt.Sprintf("%06d%s", next, strings.Repeat("v", random.IntN(40))))
						next++
					}
				}
				x.Close()
				if other := ids[random.IntN(len(ids))]; x.Len() > 0 && other != id && random.IntN(8) == 0 {
					tx.Move(c, id, c, other, 0, false)
					tx.Remove(c, id)
				}
			})
			if o.clock.Advance(10 * time.Second); random.IntN(10) == 0 {
				o.checkpoint()
				o.PurgeOnce()
			}
		}
		l := o.copied(nil)
		for _, file := range append(l.journals(), datadir.PartitionName(0)) {
			dir := l.copy(file, func(b []byte) []byte {
				for range 1 + random.IntN(4) {
					if at := random.IntN(len(b) + 1); at < len(b) {
						b[at] ^= 1 << random.IntN(8)
					}
				}
				return b
			})
			to := filepath.Join(newDir(t), "new")
			_, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil })
			drill.Check(t, err)
			after, err := openIn(t, to, livedUntil, 1)
			drill.Check(t, err)
			for at := range after.dump() {
				after.key(at.id, func(tx *keyspace.Tx) {
					list, _, _ := tx.Elements(tx.Container(at.container), at.id)
					all := slices.Collect(list.Entries(0, list.Len(), false))
					if len(all) != list.Len() || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
						t.Errorf("%s: %v has %d entries, %.2000q", file, at, list.Len(), all)
					}
				})
			}
			after.stop()
		}
	})
}
