package repair

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// mayhem is one way to spoil a folder. do returns a description.
type mayhem struct {
	name string
	// mayCut: in the newest journal of a server that was killed, a start may take it for the end that a crash
	// leaves, and cut off what came last.
	mayCut bool
	do     func(m *spoiler) string
}

// spoiler spoils files of a folder.
type spoiler struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	other string // a sound folder with another history
	older string // the same folder as it was before
}

func (m *spoiler) path(name string) string { return filepath.Join(m.dir, name) }

func (m *spoiler) any(pattern string) string {
	found, err := glob(m.path(pattern))
	if err != nil || len(found) == 0 {
		m.t.Fatal(pattern, err)
	}
	return filepath.Base(found[m.r.IntN(len(found))])
}

func (m *spoiler) change(name string, f func(b []byte) []byte) {
	drill.Check(m.t, writeFile(m.path(name), f(vfstest.Read(m.t, disk, m.path(name)))))
}

func (m *spoiler) must(err error) {
	drill.Check(m.t, err)
}

var mayhemKinds = []mayhem{
	{"bits flipped", true, func(m *spoiler) (what string) {
		for range 1 + m.r.IntN(4) {
			name := m.any("*.db")
			m.change(name, func(b []byte) []byte {
				at := m.r.IntN(len(b))
				b[at] ^= 1 << m.r.IntN(8)
				what += fmt.Sprint(name, " at ", at, " ")
				return b
			})
		}
		return what
	}},
	{"truncated", true, func(m *spoiler) string {
		name := m.any("*.db")
		at := 0
		m.change(name, func(b []byte) []byte { at = m.r.IntN(len(b)); return b[:at] })
		return fmt.Sprint(name, " to ", at)
	}},
	{"zeros at the end", true, func(m *spoiler) string {
		name := m.any("*.db")
		at, more := 0, 0
		m.change(name, func(b []byte) []byte {
			at, more = m.r.IntN(len(b)), m.r.IntN(3)*5000
			return append(append(b[:at:at], make([]byte, len(b)-at)...), make([]byte, more)...)
		})
		return fmt.Sprint(name, " from ", at, ", and ", more, " more")
	}},
	{"a hole of a hundred megabytes", true, func(m *spoiler) string {
		name := m.any("*.db")
		m.must(truncate(m.path(name), 100<<20))
		return name
	}},
	{"bytes inserted or taken out", true, func(m *spoiler) string {
		name := m.any("*.db")
		at, n := 0, 0
		m.change(name, func(b []byte) []byte {
			at, n = m.r.IntN(len(b)), 1+m.r.IntN(700)
			if m.r.IntN(2) == 0 {
				return append(b[:at:at], b[min(at+n, len(b)):]...)
			}
			return append(append(b[:at:at], b[m.r.IntN(len(b)):][:min(n, 1)]...), b[at:]...)
		})
		return fmt.Sprint(name, " at ", at, ", ", n)
	}},
	{"a piece twice", true, func(m *spoiler) string {
		name := m.any("*.db")
		m.change(name, func(b []byte) []byte { return append(b, b[m.r.IntN(len(b)):]...) })
		return name
	}},
	{"two stores exchanged", false, func(m *spoiler) string {
		m.must(disk.Rename(m.path(datadir.PartitionName(0)), m.path("x")))
		m.must(disk.Rename(m.path(datadir.PartitionName(1)), m.path(datadir.PartitionName(0))))
		m.must(disk.Rename(m.path("x"), m.path(datadir.PartitionName(1))))
		return ""
	}},
	{"a store in the place of another", false, func(m *spoiler) string {
		m.must(writeFile(m.path(datadir.PartitionName(2)), vfstest.Read(m.t, disk, m.path(datadir.PartitionName(m.r.IntN(2))))))
		return ""
	}},
	{"the catalogue in the place of a store, or the reverse", false, func(m *spoiler) string {
		from, to := datadir.CatalogueName, datadir.PartitionName(0)
		if m.r.IntN(2) == 0 {
			from, to = to, from
		}
		content := vfstest.Read(m.t, disk, m.path(from))
		if m.r.IntN(2) == 0 { // with an end that was never confirmed
			content = aof.AppendDel(content, "1:unconfirmed")
		}
		m.must(writeFile(m.path(to), content))
		return from + " as " + to
	}},
	{"a compaction under way and a file missing", false, func(m *spoiler) string {
		name := m.any("[cp]*")
		m.must(disk.Rename(m.path(name), m.path(name+store.TempSuffix)))
		return name
	}},
	{"a journal in the place of a store, or the reverse", false, func(m *spoiler) string {
		from, to := m.any("journal-*.db"), datadir.PartitionName(1)
		if m.r.IntN(2) == 0 {
			from, to = to, from
		}
		m.must(writeFile(m.path(to), vfstest.Read(m.t, disk, m.path(from))))
		return from + " as " + to
	}},
	{"a file missing", false, func(m *spoiler) string {
		name := m.any("[cfmp]*")
		m.must(disk.Remove(m.path(name)))
		return name
	}},
	{"an empty file", false, func(m *spoiler) string {
		name := m.any("[cfmp]*")
		m.must(writeFile(m.path(name), nil))
		return name
	}},
	{"a folder in the place of a file", false, func(m *spoiler) string {
		name := m.any("[cfmp]*")
		m.must(disk.Remove(m.path(name)))
		m.must(disk.Mkdir(m.path(name), 0o700))
		return name
	}},
	{"a journal of another folder", false, func(m *spoiler) string {
		found, _ := glob(filepath.Join(m.other, "journal-*.db"))
		name := filepath.Base(found[0])
		mine := m.any("journal-*.db")
		n, _ := record.ReadDecimal(strings.TrimSuffix(strings.TrimPrefix(mine, "journal-"), ".db"))
		m.must(writeFile(m.path(journal.FileName(n+1)), vfstest.Read(m.t, disk, filepath.Join(m.other, name))))
		return name
	}},
	{"an older copy of a file", false, func(m *spoiler) string {
		names := []string{datadir.ManifestName, datadir.CatalogueName}
		for n := range 3 {
			names = append(names, datadir.PartitionName(n))
		}
		name := names[m.r.IntN(len(names))]
		m.must(writeFile(m.path(name), vfstest.Read(m.t, disk, filepath.Join(m.older, name))))
		return name
	}},
	{"a store of another folder", false, func(m *spoiler) string {
		name := datadir.PartitionName(m.r.IntN(3))
		m.must(writeFile(m.path(name), vfstest.Read(m.t, disk, filepath.Join(m.other, name))))
		return name
	}},
	{"a journal missing", false, func(m *spoiler) string {
		name := m.any("journal-*.db")
		m.must(disk.Remove(m.path(name)))
		return name
	}},
	{"a journal that skips some", false, func(m *spoiler) string {
		m.must(writeFile(m.path(journal.FileName(999)), nil))
		return ""
	}},
}

// TestMayhem spoils folders in ways that no crash does: of servers that were stopped, and that were killed. A
// start refuses and names the file, or serves everything. Of a server that was killed it may lack an end of
// the newest journal that looks unconfirmed. Inspect agrees with the start. Run copies what it can, and
// reports whether something may be lost. Nothing panics, hangs or takes much memory.
func TestMayhem(t *testing.T) {
	seed, mayhems := drill.Seed(t), drill.Pick(10, 30, 2000)
	r := rand.New(rand.NewPCG(seed, 0))
	l, other := newLived(t, seed), newLived(t, seed+1)
	refused, cut := 0, 0
	for n := range mayhems {
		kind := mayhemKinds[n%len(mayhemKinds)]
		dir := newDir(t)
		copyFolder(t, l.dir, dir)
		what, stopped := kind.name+": ", n/len(mayhemKinds)%2 == 0
		if stopped {
			stopCleanly(t, dir)
			what = "after a stop, " + what
		}
		newest := newestJournal(t, dir)
		before := filesBut(t, dir, newest)
		what += kind.do(&spoiler{t, r, dir, other.dir, l.older})
		mayCut := kind.mayCut && !stopped && maps.Equal(before, filesBut(t, dir, newest))
		began := time.Now()
		var allocated, after runtime.MemStats
		runtime.ReadMemStats(&allocated)

		in, inspected := Inspect(disk, dir)
		to := filepath.Join(newDir(t), "repaired")
		report, repaired := Run(disk, dir, to, 0, func(string, *Report) error { return nil })
		state, err := starts(t, dir)
		cutAtStart := 0
		switch {
		case err != nil:
			refused++
			if inspected == nil && in.State != Damaged {
				t.Errorf("%s\nrefused, but check says it is %s: %v", what, in.State, err)
			}
			d, ok := errors.AsType[*aof.DamageError](err)
			if ok && (d.To < d.From || d.File == "") || !ok && !strings.Contains(err.Error(), dir) {
				t.Errorf("%s\nrefused without saying where: %v", what, err)
			}
		case inspected != nil || in.State == Damaged:
			t.Errorf("%s\nstarts, but check says %v %+v", what, inspected, in)
		default:
			lacks := compareQuietly(l.state, state)
			if lacks > 0 {
				cut++
			}
			if lacks > 0 && mayCut {
				cutAtStart = lacks
			} else if lacks > 0 {
				t.Errorf("%s\nstarts, and %d items are not what they were", what, lacks)
			}
		}
		if repaired == nil {
			state, err := starts(t, to)
			if err != nil {
				t.Errorf("%s\nwhat was repaired does not start: %v", what, err)
			}
			torn := slices.ContainsFunc(report.Files, func(f FileReport) bool { return f.State == Torn })
			// An end that is cut where a commit ends leaves no trace: a crash before those commits leaves the
			// same files.
			if lacks := compareQuietly(l.state, state); lacks > cutAtStart && report.Clean() && (stopped || !torn) {
				t.Errorf("%s\nthe repair says that nothing is lost, and %d items are not what they were", what, lacks)
			}
		} else if inspected == nil {
			t.Errorf("%s\ncannot be repaired: %v", what, repaired)
		}
		runtime.ReadMemStats(&after)
		if took, took2 := time.Since(began), after.TotalAlloc-allocated.TotalAlloc; took > 30*time.Second || took2 > 512<<20 {
			t.Errorf("%s\ntook %v and %d bytes", what, took, took2)
		}
		disk.RemoveAll(dir)
	}
	t.Logf("%d folders: %d refused, %d started without an end", mayhems, refused, cut)
}

// stopCleanly makes the folder of a server that was killed one of a server that was stopped: the manifest
// names the exact end of the newest journal, as in a backup.
func stopCleanly(t *testing.T, dir string) {
	t.Helper()
	m, err := datadir.ReadManifest(disk, dir)
	drill.Check(t, err)
	path := filepath.Join(dir, newestJournal(t, dir))
	content := bytes.TrimRight(vfstest.Read(t, disk, path), "\x00")
	last := journal.LSN(0)
	seal, end, _, err := journal.Scan(bytes.NewReader(content), path, int64(len(content)), true, &last, func(aof.Op) error { return nil })
	if err != nil || end != int64(len(content)) {
		t.Fatal(path, end, len(content), err)
	}
	m.Clean, m.Journals[filepath.Base(path)] = true, datadir.FileState{Mark: seal.Mark, End: end}
	drill.Check(t, truncate(path, end), m.Write(disk, dir))
}

// newestJournal returns the name of the newest journal in a folder.
func newestJournal(t *testing.T, dir string) string {
	t.Helper()
	files, err := journal.Files(disk, dir)
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), "journals", err)
	}
	return filepath.Base(files[len(files)-1].Path)
}

// filesBut returns the checksums of all files in a folder but one.
func filesBut(t *testing.T, dir, but string) map[string]uint32 {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	drill.Check(t, err)
	sums := make(map[string]uint32)
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != but {
			sums[e.Name()] = record.Sum(0, string(vfstest.Read(t, disk, filepath.Join(dir, e.Name()))))
		}
	}
	return sums
}

func compareQuietly(want, got map[place]record.Item) (differ int) {
	for at, it := range want {
		if got[at] != it {
			differ++
		}
	}
	for at := range got {
		if _, ok := want[at]; !ok {
			differ++
		}
	}
	return differ
}
