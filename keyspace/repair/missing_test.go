package repair

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// generations are copies of one data folder at several moments. Each holds 500 documents more than the one
// before, and a checkpoint was made between them.
type generations struct {
	killed  []*lived // while the server ran: the last documents are in the journal
	stopped *lived   // at the end
	compact *lived   // stopped, and compacted before
	backup  *lived   // taken beside killed[2]
	other   *lived   // of another folder, stopped
}

func (g *generations) documents(n int) map[place]record.Item {
	state := maps.Clone(g.stopped.state)
	maps.DeleteFunc(state, func(at place, _ record.Item) bool {
		var i int
		fmt.Sscanf(at.id, "doc-%d", &i)
		return i >= 500*n
	})
	return state
}

func newGenerations(t *testing.T) *generations {
	t.Helper()
	g, dir := &generations{}, newDir(t)
	begin := func(dir string) *opened {
		o, err := openIn(t, dir, aoftest.Epoch, 3)
		drill.Check(t, err)
		o.dump() // leases the clock
		return o
	}
	stop := func(o *opened) *lived {
		state, dir := o.dump(), o.Dir()
		o.stop()
		return &lived{dir: dir, state: state, t: t}
	}
	fill := func(o *opened, n int) {
		o.policy("orders", expiry.Forever)
		for i := range 500 {
			id := fmt.Sprint("doc-", 500*n+i)
			o.put("orders", id, fmt.Sprintf(`{"n":%d}`, n), expiry.Inherit)
		}
	}
	o := begin(dir)
	for n := range 3 {
		fill(o, n)
		g.killed = append(g.killed, o.copied(o.dump()))
		if n < 2 {
			o.checkpoint()
		}
	}
	path := filepath.Join(newDir(t), "backup")
	drill.Check(t, o.Backup(path))
	g.backup = &lived{dir: path, state: o.dump(), t: t}
	g.stopped = stop(o)

	to := newDir(t)
	copyFolder(t, dir, to)
	o = begin(to)
	for i := range 1500 {
		if i%7 == 0 {
			o.put("orders", fmt.Sprint("doc-", i), `{"n":3}`, expiry.Inherit)
		}
	}
	o.Compact()
	for done := int64(0); done < 3; done = o.Stats().Compactions {
	}
	g.compact = stop(o)

	o = begin(newDir(t))
	fill(o, 0)
	g.other = stop(o)
	return g
}

// spoilt copies a folder and spoils it.
func (l *lived) spoilt(spoil func(dir string) error) string {
	l.t.Helper()
	to := newDir(l.t)
	copyFolder(l.t, l.dir, to)
	drill.Check(l.t, spoil(to))
	return to
}

// put replaces a file of a folder by that of another one.
func put(from *lived, name string) func(dir string) error {
	return func(dir string) error {
		content, err := vfs.ReadFile(disk, filepath.Join(from.dir, name))
		return errors.Join(err, writeFile(filepath.Join(dir, name), content))
	}
}

func cut(name string, size int64) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		if size < 0 {
			fi, err := disk.Stat(path)
			if err != nil {
				return err
			}
			size += fi.Size()
		}
		return truncate(path, size)
	}
}

func remove(names ...string) func(dir string) error {
	return func(dir string) (err error) {
		for _, name := range names {
			err = errors.Join(err, disk.Remove(filepath.Join(dir, name)))
		}
		return err
	}
}

// expectRefused: a start refuses the folder, says which file and which bytes, and changes nothing; Inspect
// calls that file damaged; Run copies exactly the state, and says that it is uncertain.
func expectRefused(t *testing.T, what, dir, file string, want map[place]record.Item) *Report {
	t.Helper()
	before := filesBut(t, dir, "LOCK")
	d, ok := errors.AsType[*aof.DamageError](startError(t, dir))
	if !ok || filepath.Base(d.File) != file || d.To < d.From || d.Reason == "" {
		t.Errorf("%s: a start says %v", what, d)
	}
	if !maps.Equal(before, filesBut(t, dir, "LOCK")) {
		t.Errorf("%s: the start has changed files", what)
	}
	if f := fileIn(t, checkDamaged(t, what, dir), file); f.State != Damaged || len(f.Problems) == 0 || ok && !slices.ContainsFunc(f.Problems, func(p Problem) bool { return strings.Contains(p.Reason, d.Reason) }) {
		t.Errorf("%s: check says %+v, a start %v", what, f, d)
	}
	report, got := repaired(t, dir)
	if report.Clean() {
		t.Errorf("%s: the repair says that nothing is uncertain: %+v", what, report)
	}
	if differ := compareQuietly(want, got); differ > 0 {
		t.Errorf("%s: %d items of %d are not what they were after a repair, which copied %d", what, differ, len(want), len(got))
	}
	if !maps.Equal(before, filesBut(t, dir, "LOCK")) {
		t.Errorf("%s: the repair has changed files", what)
	}
	return report
}

const store1 = "partition-001.db"

func in1(at place) bool { return at.partition(3) == 1 }

// A store that has lost its end is refused, wherever it was cut, after a stop and after a kill. A repair
// copies all that is still there.
func TestStoreWithoutItsEnd(t *testing.T) {
	t.Parallel()
	g := newGenerations(t)
	for what, l := range map[string]*lived{"stopped": g.stopped, "killed": g.killed[2], "backup": g.backup} {
		seals := l.seals(store1)
		least := 3
		if what == "backup" {
			least = 2 // it is sealed as a whole behind the first
		}
		if len(seals) < least {
			t.Fatalf("%s: %d seals", what, len(seals))
		}
		// One byte: all records are there, the seal of the last is not.
		expectRefused(t, what+" and cut by a byte", l.spoilt(cut(store1, -1)), store1, l.state)
		for i, s := range seals[:len(seals)-1] {
			dir := l.spoilt(cut(store1, s.At+aof.SealSize))
			expectRefused(t, fmt.Sprint(what, " and cut behind seal ", i), dir, store1, l.lackingFrom(t, s.At+aof.SealSize))
			at := (seals[i+1].From + seals[i+1].At) / 2
			expectRefused(t, fmt.Sprint(what, " and cut at ", at), l.spoilt(cut(store1, at)), store1, l.lackingFrom(t, at))
		}
	}
}

// lackingFrom is the state without the documents that are set in store1 behind an offset, and not in a
// journal.
func (l *lived) lackingFrom(t *testing.T, from int64) map[place]record.Item {
	t.Helper()
	content := vfstest.Read(t, disk, filepath.Join(l.dir, store1))
	state := maps.Clone(l.state)
	inJournal := ""
	for _, name := range l.journals() {
		inJournal += string(vfstest.Read(t, disk, filepath.Join(l.dir, name)))
	}
	for at := range l.state {
		set := strings.Index(string(content), ":"+at.id+"\r\n")
		if !in1(at) || set < 0 || strings.Contains(inJournal, ":"+at.id+"\r\n") {
			continue
		}
		if end := strings.Index(string(content[set:]), "}\r\n"); int64(set+end+len("}\r\n")) > from {
			delete(state, at)
		}
	}
	return state
}

// A file of an earlier moment, or of another folder, is refused. A repair copies what the files hold.
func TestOlderFiles(t *testing.T) {
	t.Parallel()
	g := newGenerations(t)
	for what, l := range map[string]*lived{"stopped": g.stopped, "backup": g.backup} {
		older, first := g.documents(3), g.documents(1)
		maps.DeleteFunc(older, func(at place, _ record.Item) bool { _, there := first[at]; return in1(at) && !there })
		report := expectRefused(t, what+" with an older store", l.spoilt(put(g.killed[1], store1)), store1, older)
		if report.Exposed == 0 || report.Unknown == 0 {
			t.Errorf("%s with an older store: %+v", what, report)
		}
		expectRefused(t, what+" with an older catalogue", l.spoilt(put(g.killed[1], datadir.CatalogueName)), datadir.CatalogueName, l.state)
		foreign := g.documents(3)
		maps.DeleteFunc(foreign, func(at place, _ record.Item) bool { return in1(at) })
		for at, it := range g.other.state {
			if in1(at) {
				foreign[at] = it
			}
		}
		expectRefused(t, what+" with a store of another folder", l.spoilt(put(g.other, store1)), store1, foreign)
	}
	// A store of before a compaction.
	before := maps.Clone(g.compact.state)
	for at := range before {
		if in1(at) {
			before[at] = g.stopped.state[at]
		}
	}
	expectRefused(t, "a store of before a compaction", g.compact.spoilt(put(g.stopped, store1)), store1, before)
	if _, err := starts(t, g.compact.spoilt(func(string) error { return nil })); err != nil {
		t.Error("compacted:", err)
	}
	// While the server runs the manifest cannot know all that is behind a checkpoint, but never less.
	l := g.killed[2]
	older, first, second := g.documents(3), g.documents(1), g.documents(2)
	maps.DeleteFunc(older, func(at place, _ record.Item) bool {
		_, there := first[at]
		_, journalled := second[at]
		return in1(at) && !there && journalled
	})
	expectRefused(t, "killed, with an older store", l.spoilt(put(g.killed[1], store1)), store1, older)
	expectRefused(t, "killed, with an older catalogue", l.spoilt(put(g.killed[1], datadir.CatalogueName)), datadir.CatalogueName, l.state)
}

// A journal that is missing, cut short or an older copy is refused.
func TestJournalsThatAreNotAsTheyWere(t *testing.T) {
	t.Parallel()
	g := newGenerations(t)
	killed := g.killed[2]
	stopped := &lived{dir: killed.spoilt(func(dir string) error { stopCleanly(t, dir); return nil }), state: killed.state, t: t}
	stores := g.documents(2) // what a checkpoint has brought to the stores
	for what, l := range map[string]*lived{"stopped": stopped, "killed": killed} {
		newest := newestJournal(t, l.dir)
		expectRefused(t, what+", newest removed", l.spoilt(remove(newest)), newest, stores)
		expectRefused(t, what+", all removed", l.spoilt(remove(l.journals()...)), l.journals()[0], stores)
		foreign := func(dir string) error {
			return writeFile(filepath.Join(dir, newest), aof.FirstSeal(7).Append(nil))
		}
		expectRefused(t, what+", newest replaced", l.spoilt(foreign), newest, stores)
	}
	// Only a stop says where the newest ends.
	newest := newestJournal(t, stopped.dir)
	seals := stopped.seals(newest)
	for _, s := range []aof.Seal{seals[0], seals[len(seals)/2], seals[len(seals)-2]} {
		end := s.At + aof.SealSize
		report := expectRefused(t, fmt.Sprint("newest cut behind its seal at ", s.At), stopped.spoilt(cut(newest, end)), newest, stopped.lackingCommits(t, newest, end, stores))
		if report.Unknown == 0 {
			t.Errorf("newest cut: %+v", report)
		}
	}
	for _, name := range []string{newest, journal.FileName(99)} { // what the manifest does not name
		dir := stopped.spoilt(func(dir string) error {
			m, err := datadir.ReadManifest(disk, dir)
			if err != nil {
				return err
			}
			if name == newest {
				delete(m.Journals, name)
				return m.Write(disk, dir)
			}
			return writeFile(filepath.Join(dir, name), nil)
		})
		if in := mustInspect(t, dir); in.State != Damaged || startError(t, dir) == nil {
			t.Errorf("%s, which the manifest does not name, is accepted", name)
		}
	}
}

// lackingCommits is the state of the stores and of what the newest journal holds up to an offset.
func (l *lived) lackingCommits(t *testing.T, newest string, end int64, stores map[place]record.Item) map[place]record.Item {
	t.Helper()
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, newest))[:end])
	state := maps.Clone(l.state)
	maps.DeleteFunc(state, func(at place, _ record.Item) bool {
		_, there := stores[at]
		return !there && !strings.Contains(content, ":"+at.id+"\r\n")
	})
	return state
}

// Without its manifest, or with an older or a damaged one, a folder is refused. A repair loses nothing, and
// says that a missing file would not have been noticed.
func TestManifestThatIsNotAsItWas(t *testing.T) {
	t.Parallel()
	g := newGenerations(t)
	flip := func(dir string) error {
		path := filepath.Join(dir, datadir.ManifestName)
		content, err := vfs.ReadFile(disk, path)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		return writeFile(path, content)
	}
	for what, l := range map[string]*lived{"stopped": g.stopped, "killed": g.killed[2], "backup": g.backup} {
		for how, spoil := range map[string]func(dir string) error{"removed": remove(datadir.ManifestName), "emptied": cut(datadir.ManifestName, 0), "damaged": flip} {
			report := expectRefused(t, what+", manifest "+how, l.spoilt(spoil), datadir.ManifestName, l.state)
			if !report.NoManifest || report.Unknown+report.Exposed+len(report.Lost)+len(report.Older)+len(report.Doubtful) > 0 {
				t.Errorf("%s, manifest %s: %+v", what, how, report)
			}
		}
		for how, from := range map[string]*lived{"older": g.killed[0], "of another folder": g.other} {
			dir := l.spoilt(put(from, datadir.ManifestName))
			if in := mustInspect(t, dir); in.State != Damaged || startError(t, dir) == nil {
				t.Errorf("%s: a manifest that is %s is accepted", what, how)
			}
			report, state := repaired(t, dir)
			if report.Clean() || compareQuietly(l.state, state) > 0 {
				t.Errorf("%s, manifest %s: the repair says %+v", what, how, report)
			}
		}
	}
}

// What must still start: folders after a stop, a kill and a compaction, backups, and what a repair has made.
func TestSoundFoldersStart(t *testing.T) {
	t.Parallel()
	g := newGenerations(t)
	folders := append(slices.Clone(g.killed), g.stopped, g.compact, g.backup, g.other)
	for i, l := range folders {
		for range 2 {
			if in := mustInspect(t, l.dir); in.State != Sound {
				t.Errorf("folder %d: %+v", i, in)
			}
			if state, err := starts(t, l.dir); err != nil || compareQuietly(l.state, state) > 0 {
				t.Errorf("folder %d: %v", i, err)
			}
		}
		report, state := repaired(t, l.dir)
		if !report.Clean() || compareQuietly(l.state, state) > 0 {
			t.Errorf("folder %d: %+v", i, report)
		}
	}
}

// Whatever a missing byte damages: a start, check, repair and export name one range, and check lists none
// that overlaps.
func TestAMissingByteIsOneRange(t *testing.T) {
	t.Parallel()
	l := newLived(t, 31)
	size := len(vfstest.Read(t, disk, filepath.Join(l.dir, store1)))
	for at := 1; at < size; at += max(size/drill.Pick(6, 12, 200), 1) {
		dir := l.copy(store1, func(b []byte) []byte { return append(b[:at:at], b[at+1:]...) })
		d, ok := errors.AsType[*aof.DamageError](startError(t, dir))
		if !ok {
			t.Fatalf("without byte %d: no damage", at)
		}
		same := func(what string, p Problem) {
			if p.From != d.From || p.To != d.To || !strings.HasPrefix(p.Reason, d.Reason) {
				t.Errorf("without byte %d: a start says %v, %s bytes %d to %d: %s", at, d, what, p.From, p.To, p.Reason)
			}
		}
		problems := fileIn(t, checkDamaged(t, "a missing byte", dir), store1).Problems
		if len(problems) != 1 {
			t.Errorf("without byte %d: check lists %+v", at, problems)
		}
		same("check", problems[0])
		report, _ := repaired(t, dir)
		same("repair", fileIn(t, report.Files, store1).Problems[0])
		if lost := len(report.Lost) + report.Unknown; lost == 0 {
			t.Errorf("without byte %d: nothing is lost or unknown", at)
		}
		err := Read(disk, dir, clock.NewManual(livedUntil), func(record.Container) error { return nil }, func(string, string, record.Item) error { return nil })
		if e, ok := errors.AsType[*aof.DamageError](err); !ok || e.From != d.From || e.To != d.To {
			t.Errorf("without byte %d: a start says %v, export %v", at, d, err)
		}
	}
}
