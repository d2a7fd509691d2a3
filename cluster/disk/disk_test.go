package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// TestMain makes segments small: a few Saves fill one. The library has one size for the whole process.
func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 8 << 10
	os.Exit(m.Run())
}

// tempDir returns a folder in memory where the machine has one: the tests sync thousands of times.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "raftlog")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{Dir: filepath.Join(tempDir(t), "wal"), Cluster: 7, ID: 1}
}

func entries(term uint64, from, to uint64, size int) (entries []*raftpb.Entry) {
	for i := from; i <= to; i++ {
		data := []byte(strings.Repeat(fmt.Sprintf("%d.%d ", term, i), size/4+1))[:size]
		entries = append(entries, &raftpb.Entry{Term: &term, Index: &i, Data: data})
	}
	return entries
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

var voters = &raftpb.ConfState{Voters: []uint64{1, 2, 3}}

func snapshot(index, term uint64) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: voters}}
}

// created returns the options and the log of a founder, opened.
func created(t *testing.T) (Options, *Log) {
	t.Helper()
	o := options(t)
	drill.Check(t, Create(o, snapshot(1, 1).GetMetadata()))
	o.Applied, o.Term = 1, 1
	return o, opened(t, o)
}

func opened(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	drill.Check(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func save(t *testing.T, l *Log, hs *raftpb.HardState, entries []*raftpb.Entry) {
	t.Helper()
	drill.Check(t, l.Save(hs, entries, nil))
}

// describe returns what raft reads: the range of the entries with their terms, and the hard state.
func describe(t *testing.T, l *Log) string {
	t.Helper()
	first, _ := l.Memory().FirstIndex()
	last, _ := l.Memory().LastIndex()
	var b strings.Builder
	for i := first - 1; i <= last; i++ {
		term, err := l.Memory().Term(i)
		drill.Check(t, err)
		fmt.Fprintf(&b, "%d:%d ", i, term)
	}
	hs, _, _ := l.Memory().InitialState()
	fmt.Fprintf(&b, "term %d vote %d commit %d", hs.GetTerm(), hs.GetVote(), hs.GetCommit())
	return b.String()
}

func expect(t *testing.T, l *Log, want string) {
	t.Helper()
	if got := describe(t, l); got != want {
		t.Errorf("the log is %s\nwant %s", got, want)
	}
	bytes := int64(0)
	for _, size := range l.sizes {
		bytes += size
	}
	first, _ := l.Memory().FirstIndex()
	last, _ := l.Memory().LastIndex()
	if l.bytes.Load() != bytes || uint64(len(l.sizes)) != last+1-first || l.base != first-1 {
		t.Errorf("%d bytes, %d sizes with %d, base %d for entries %d to %d", l.bytes.Load(), len(l.sizes), bytes, l.base, first, last)
	}
}

func TestLogReopens(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	expect(t, l, "1:1 term 1 vote 0 commit 1")
	save(t, l, hard(2, 1, 1), entries(2, 2, 4, 100))
	save(t, l, hard(2, 1, 4), nil)
	save(t, l, hard(3, 2, 4), entries(3, 4, 6, 100)) // replaces entry 4
	want := "1:1 2:2 3:2 4:3 5:3 6:3 term 3 vote 2 commit 4"
	expect(t, l, want)
	for range 3 {
		drill.Check(t, l.Close())
		l = opened(t, o)
		expect(t, l, want)
	}
	save(t, l, nil, entries(3, 7, 7, 10))
	l.Close()
	l = opened(t, o)
	expect(t, l, "1:1 2:2 3:2 4:3 5:3 6:3 7:3 term 3 vote 2 commit 4")
}

// TestLogIsOpenedOnce shows that two incarnations cannot share a log.
func TestLogIsOpenedOnce(t *testing.T) {
	t.Parallel()
	o, _ := created(t)
	if l, err := Open(o); err == nil {
		l.Close()
		t.Fatal("opened twice")
	}
}

func TestOpenPosition(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T) Options {
		o, l := created(t)
		save(t, l, hard(2, 1, 1), entries(2, 2, 4, 100))
		save(t, l, hard(3, 1, 3), entries(3, 5, 6, 100))
		drill.Check(t, l.Close())
		return o
	}
	all := "1:1 2:2 3:2 4:2 5:3 6:3 "
	for _, tt := range []struct {
		applied, term uint64
		installed     *raftpb.ConfState
		want          string // of describe, or of the error
	}{
		{1, 1, nil, all + "term 3 vote 1 commit 3"},
		{3, 2, nil, all + "term 3 vote 1 commit 3"},
		{5, 3, nil, all + "term 3 vote 1 commit 5"}, // the note of the commit was not synced
		{5, 3, voters, all + "term 3 vote 1 commit 5"},
		{6, 3, nil, all + "term 3 vote 1 commit 6"},
		{0, 0, nil, "the log begins after entry 1, the local files end at 0"},
		{7, 3, nil, "the log ends at entry 6, the local files at 7"},
		{5, 2, nil, "entry 5 is of term 3, in the local files of term 2"},
		{9, 3, voters, "9:3 term 3 vote 1 commit 9"},
		{9, 4, voters, "9:4 term 4 vote 0 commit 9"},
		{5, 4, voters, "5:4 term 4 vote 0 commit 5"},
	} {
		t.Run(fmt.Sprint(tt.applied, tt.term, tt.installed != nil), func(t *testing.T) {
			o := build(t)
			o.Applied, o.Term, o.Installed = tt.applied, tt.term, tt.installed
			l, err := Open(o)
			if err != nil {
				var damage *DamageError
				if !errors.As(err, &damage) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				return
			}
			expect(t, l, tt.want)
			l.Close()
			l = opened(t, o) // with Installed again, as after a crash between the steps
			expect(t, l, tt.want)
			l.Close()
			o.Installed = nil
			expect(t, opened(t, o), tt.want)
		})
	}
}

// TestSaveSnapshot shows that stores of a peer begin the log anew, after a restart too, whatever the log had
// before.
func TestSaveSnapshot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		index, term uint64
		more        bool
		want        string
	}{
		{9, 3, false, "9:3 term 3 vote 1 commit 9"},
		{9, 3, true, "9:3 10:3 11:3 term 3 vote 1 commit 9"},
		{4, 3, false, "4:3 term 3 vote 1 commit 4"}, // entries 5 and 6 have another past
		{4, 3, true, "4:3 5:3 6:3 term 3 vote 1 commit 4"},
	} {
		o, l := created(t)
		save(t, l, hard(2, 1, 1), entries(2, 2, 6, 100))
		drill.Check(t, l.Save(hard(3, 1, tt.index), nil, snapshot(tt.index, tt.term)))
		if tt.more {
			save(t, l, nil, entries(3, tt.index+1, tt.index+2, 10))
		}
		expect(t, l, tt.want)
		l.Close()
		o.Applied, o.Term = tt.index, tt.term
		expect(t, opened(t, o), tt.want)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	l.Close()
	for _, other := range []Options{{Cluster: 8, ID: 1}, {Cluster: 7, ID: 2}} {
		other.Dir, other.Applied, other.Term = o.Dir, 1, 1
		if _, err := Open(other); !errors.Is(err, ErrForeign) {
			t.Errorf("id %d of cluster %d: %v", other.ID, other.Cluster, err)
		}
	}
	if _, err := Open(Options{Dir: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
	if Exists(filepath.Dir(o.Dir)) || !Exists(o.Dir) {
		t.Error("Exists is wrong")
	}
}

// createdKeeping is created for a log that keeps so many bytes that others may lack.
func createdKeeping(t *testing.T, keep int64) (Options, *Log) {
	t.Helper()
	o, l := created(t)
	l.Close()
	o.Keep = keep
	return o, opened(t, o)
}

// TestCompact shows that the log keeps what the local files lack, what Keep says, what is retained, and no
// more.
func TestCompact(t *testing.T) {
	t.Parallel()
	o, l := createdKeeping(t, 100<<10)
	const size = 1000
	last := uint64(1)
	add := func(n uint64) {
		for range n {
			save(t, l, hard(1, 0, last), entries(1, last+1, last+1, size))
			last++
		}
	}
	first := func() uint64 { i, _ := l.Memory().FirstIndex(); return i }
	compact := func(durable uint64) {
		t.Helper()
		drill.Check(t, l.Compact(durable, voters))
		expect(t, l, describe(t, l))
	}
	add(400)
	compact(50)
	if first() != 51 {
		t.Errorf("begins at %d although the local files end at 50", first())
	}
	compact(last)
	if memory, _ := l.Size(); memory > o.Keep || memory < o.Keep*8/10 || first() > last-80 {
		t.Errorf("%d bytes from %d on to %d, want about %d", memory, first(), last, o.Keep)
	}
	before := first()
	add(5)
	compact(last)
	if first() != before {
		t.Error("compacted for little")
	}
	most := 4 * o.Keep
	l.Retain(before+20, most)
	add(200)
	compact(last)
	if first() != before+21 {
		t.Errorf("begins at %d, want %d, which a node waits for", first(), before+21)
	}
	add(600)
	compact(last)
	if memory, _ := l.Size(); memory > most+4*size || memory < most/2 {
		t.Errorf("%d bytes are retained, most are %d", memory, most)
	}
	if all, _ := l.Size(); l.Behind(first()-1) != all || l.Behind(0) != all || l.Behind(last-1) != size+entryOverhead || l.Behind(last) != 0 || l.Behind(last+9) != 0 {
		t.Errorf("of %d bytes, %d are behind the first, %d before the last", all, l.Behind(first()), l.Behind(last-1))
	}
	l.Retain(0, 0)
	compact(last)
	if memory, files := l.Size(); memory > o.Keep || files > o.Keep+4*wal.SegmentSizeBytes {
		t.Errorf("%d bytes in memory, %d in files", memory, files)
	}
	want := describe(t, l)
	o.Applied, o.Term = last, 1
	l.Close()
	l = opened(t, o)
	expect(t, l, strings.Replace(want, fmt.Sprintf("commit %d", last-1), fmt.Sprintf("commit %d", last), 1))
	o.Applied = l.base - 1
	l.Close()
	if _, err := Open(o); err == nil {
		t.Error("opened although the local files end before the log")
	}
}

// TestCompactGoesOn shows that a segment that cannot be deleted ends nothing, and goes the next time.
func TestCompactGoesOn(t *testing.T) {
	t.Parallel()
	o, l := createdKeeping(t, 8<<10)
	last := uint64(1)
	cut := func() uint64 {
		t.Helper()
		for range 100 {
			last++
			save(t, l, nil, entries(1, last, last, 1000))
		}
		drill.Check(t, l.Compact(last, voters))
		files, err := listSegments(o.Dir)
		drill.Check(t, err)
		return files[0].sequence
	}
	path := filepath.Join(o.Dir, "0000000000000000-0000000000000000.wal")
	drill.Check(t, os.Rename(path, path+".aside"), os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	if first := cut(); first != 0 {
		t.Errorf("the first segment is %d", first)
	}
	drill.Check(t, os.RemoveAll(path), os.Rename(path+".aside", path))
	if first := cut(); first == 0 {
		t.Error("the segment is left")
	}
}

// TestLeftSegments shows that segments allocated ahead are deleted in a folder of any name.
func TestLeftSegments(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Dir = filepath.Join(filepath.Dir(o.Dir), "[a-", "wal")
	drill.Check(t, Create(o, snapshot(1, 1).GetMetadata()))
	o.Applied, o.Term = 1, 1
	left := filepath.Join(o.Dir, "9.tmp")
	drill.Check(t, os.WriteFile(left, []byte("left"), 0o600))
	opened(t, o)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a segment is left: %v", err)
	}
}

// TestLaterVersion shows that a log of another version is not taken for one of another node.
func TestLaterVersion(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Applied, o.Term = 1, 1
	w, err := wal.Create(nil, o.Dir, append([]byte{version + 1}, o.metadata()[1:]...))
	drill.Check(t, err)
	drill.Check(t, w.Close())
	if _, err := Open(o); err == nil || errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "is of version 2; this program reads version 1") {
		t.Errorf("got %v", err)
	}
}

// TestHardStateSurvivesSegments shows that a vote is found again although the segment that it was written to
// is gone.
func TestHardStateSurvivesSegments(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	save(t, l, hard(5, 3, 1), nil)
	l.Close()
	o.Keep = 8 << 10
	l = opened(t, o)
	for i := uint64(2); i < 100; i++ {
		save(t, l, nil, entries(5, i, i, 1000))
	}
	drill.Check(t, l.Compact(99, voters))
	l.Close()
	if files, _ := listSegments(o.Dir); files[0].sequence == 0 {
		t.Fatal("the first segment is still there")
	}
	o.Applied, o.Term = 99, 5
	hs, _, _ := opened(t, o).Memory().InitialState()
	if hs.GetTerm() != 5 || hs.GetVote() != 3 || hs.GetCommit() != 99 {
		t.Errorf("hard state %v", hs)
	}
}

// history is a log of several segments with every kind of record, and what is known at the end of each Save.
func history(t *testing.T) (Options, []string) {
	t.Helper()
	o, l := created(t)
	var known []string
	last := uint64(1)
	for i := uint64(1); i <= 41; i++ { // the last one has an entry
		term := 1 + i/10
		n := i % 4
		save(t, l, hard(term, i%3, last), entries(term, last+1, last+n, int(50+i*20)))
		last += n
		known = append(known, describe(t, l))
	}
	drill.Check(t, l.Close())
	return o, known
}

// copyTo makes a log of the same files.
func copyTo(t *testing.T, o Options) Options {
	t.Helper()
	dir := filepath.Join(tempDir(t), "wal")
	drill.Check(t, os.CopyFS(dir, os.DirFS(o.Dir)))
	o.Dir = dir
	return o
}

// TestDamage damages each region of each segment, by other bytes and by zeros. No damage is read as if it
// were the log: it is an error, or changes nothing, or is a cut of the last Save, which looks like that of a
// power cut.
func TestDamage(t *testing.T) {
	t.Parallel()
	random, stride := drill.Rand(t), drill.Pick(1999, 997, 61)
	o, known := history(t)
	whole, beforeLast := known[len(known)-1], known[len(known)-2:]
	files, err := listSegments(o.Dir)
	if err != nil || len(files) < 4 {
		t.Fatalf("%d segments, %v", len(files), err)
	}
	var errs, harmless, cuts int
	for number, s := range files {
		content, err := os.ReadFile(s.path)
		drill.Check(t, err)
		if number == len(files)-1 {
			stride = 61 // cuts are rare
		}
		for at := random.IntN(stride); at < len(content); at += stride {
			for _, damage := range []func([]byte){
				func(b []byte) { b[at] ^= 0x40 },
				func(b []byte) { clear(b[at:min(at+8, len(b))]) },
				func(b []byte) { clear(b[at&^511 : min(at&^511+512, len(b))]) },
				func(b []byte) { clear(b[at&^4095 : min(at&^4095+4096, len(b))]) },
			} {
				damaged := slices.Clone(content)
				damage(damaged)
				if slices.Equal(damaged, content) {
					continue
				}
				c := copyTo(t, o)
				drill.Check(t, os.WriteFile(filepath.Join(c.Dir, filepath.Base(s.path)), damaged, 0o600))
				l, err := Open(c)
				var asDamage *DamageError
				switch {
				case errors.As(err, &asDamage), errors.Is(err, ErrForeign):
					errs++
					continue
				case err != nil:
					t.Fatalf("segment %d, offset %d: %v", number, at, err)
				}
				got := describe(t, l)
				l.Close()
				switch {
				case got == whole:
					harmless++
				case number == len(files)-1 && slices.ContainsFunc(beforeLast, func(k string) bool { return isPrefix(got, k) }):
					cuts++
				default:
					t.Fatalf("segment %d, offset %d: read as %s\nwant %s", number, at, got, whole)
				}
			}
		}
	}
	if errs == 0 || cuts == 0 {
		t.Errorf("%d errors, %d without effect, %d cuts", errs, harmless, cuts)
	}
	t.Logf("%d errors, %d without effect, %d cuts of the end", errs, harmless, cuts)
}

// isPrefix reports whether a log is the other one without some of its end.
func isPrefix(got, of string) bool {
	got, _, _ = strings.Cut(got, "term")
	of, _, _ = strings.Cut(of, "term")
	return strings.HasPrefix(of, got)
}

func TestMissingSegment(t *testing.T) {
	t.Parallel()
	o, _ := history(t)
	files, err := listSegments(o.Dir)
	drill.Check(t, err)
	for i := range files[:len(files)-1] {
		c := copyTo(t, o)
		drill.Check(t, os.Remove(filepath.Join(c.Dir, filepath.Base(files[i].path))))
		var damage *DamageError
		if _, err := Open(c); !errors.As(err, &damage) {
			t.Errorf("without segment %d: %v", i, err)
		}
	}
	// Without the last one the log looks like an earlier one; the local files know better.
	c := copyTo(t, o)
	drill.Check(t, os.Remove(filepath.Join(c.Dir, filepath.Base(files[len(files)-1].path))))
	c.Applied, c.Term = 62, 5
	var damage *DamageError
	if _, err := Open(c); !errors.As(err, &damage) {
		t.Errorf("without the last segment: %v", err)
	}
}

// TestPowerCut cuts the last Save at each sector, with all subsets of sectors at random lost: what was synced
// before is there, and of the last Save a part at most.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	for range drill.Pick(4, 8, 60) {
		o, l := created(t)
		last := uint64(1)
		for i := range random.Uint64N(6) {
			save(t, l, hard(2, 1, last), entries(2, last+1, last+1+i%3, 50+random.IntN(250)))
			last += 1 + i%3
		}
		before := describe(t, l)
		path := filepath.Join(o.Dir, "0000000000000000-0000000000000000.wal")
		synced, err := os.ReadFile(path)
		drill.Check(t, err)
		save(t, l, hard(2, 1, last), entries(2, last+1, last+1+random.Uint64N(5), 50+random.IntN(350)))
		after := describe(t, l)
		written, err := os.ReadFile(path)
		drill.Check(t, err)
		l.Close()
		first := 0
		for synced[first] == written[first] {
			first++
		}
		for trial := range 20 {
			image := slices.Clone(written)
			for sector := first / 512; sector*512 < len(written) && !isZero(written[sector*512:]); sector++ {
				if random.IntN(2) == 0 {
					copy(image[sector*512:sector*512+512], synced[sector*512:])
				}
			}
			drill.Check(t, os.RemoveAll(o.Dir), os.Mkdir(o.Dir, 0o700), os.WriteFile(path, image, 0o600))
			l, err := Open(o)
			if err != nil {
				t.Fatalf("trial %d: %v", trial, err)
			}
			got := describe(t, l)
			cutBefore, _, _ := strings.Cut(before, "term")
			if !isPrefix(got, after) || !strings.HasPrefix(got, cutBefore) {
				t.Fatalf("trial %d: %s\nis not between %s\nand %s", trial, got, before, after)
			}
			save(t, l, nil, entries(3, last+1, last+2, 3000))
			want := describe(t, l)
			l.Close()
			l = opened(t, o)
			expect(t, l, want)
			l.Close()
		}
	}
}

// TestWriteError shows that a log that could not be written says so from then on, and opens again with all it
// had.
func TestWriteError(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	save(t, l, hard(2, 1, 1), entries(2, 2, 4, 100))
	want := describe(t, l)
	if err := l.wal.Close(); err != nil { // the disk is gone
		t.Fatal(err)
	}
	err := l.Save(nil, entries(2, 5, 5, 100), nil)
	if err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("first error %v", err)
	}
	if err := l.Save(nil, entries(2, 5, 5, 100), nil); !errors.Is(err, ErrFailed) {
		t.Errorf("second error %v", err)
	}
	if err := l.Compact(4, voters); !errors.Is(err, ErrFailed) {
		t.Errorf("Compact: %v", err)
	}
	expect(t, opened(t, o), want)
}

// TestRandomHistories saves, compacts, takes stores and opens again at random, beside a model of what raft
// expects.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	for round := range drill.Pick(4, 8, 150) {
		o, l := createdKeeping(t, 6<<10)
		terms := []uint64{0, 1} // by index; those before base do not matter
		base, applied, term, vote, commit := uint64(1), uint64(1), uint64(1), uint64(0), uint64(1)
		want := func() string {
			var b strings.Builder
			for i := base; i < uint64(len(terms)); i++ {
				fmt.Fprintf(&b, "%d:%d ", i, terms[i])
			}
			fmt.Fprintf(&b, "term %d vote %d commit %d", term, vote, commit)
			return b.String()
		}
		for step := range 80 {
			switch n := random.IntN(20); {
			case n < 10: // append, often over what is not committed
				if random.IntN(4) == 0 {
					term, vote = term+1, random.Uint64N(3)
				}
				from := commit + 1 + random.Uint64N(uint64(len(terms))-commit)
				to := from + random.Uint64N(4)
				e := entries(term, from, to, random.IntN(1500))
				terms = terms[:from]
				for range e {
					terms = append(terms, term)
				}
				save(t, l, hard(term, vote, commit), e)
			case n < 14:
				commit += random.Uint64N(uint64(len(terms)) - commit)
				save(t, l, hard(term, vote, commit), nil)
			case n < 17:
				applied += random.Uint64N(commit - applied + 1)
				drill.Check(t, l.Compact(applied, voters))
				base, _ = l.Memory().FirstIndex()
				base--
			case n < 18: // stores of a peer
				at := commit + 1 + random.Uint64N(10)
				if random.IntN(2) == 0 || at < uint64(len(terms)) { // raft takes none that its log agrees with
					term, vote = term+1, 0
				}
				for uint64(len(terms)) <= at {
					terms = append(terms, 0)
				}
				terms = terms[:at+1]
				terms[at] = term
				base, applied, commit = at, at, at
				if random.IntN(2) == 0 {
					drill.Check(t, l.Save(hard(term, vote, commit), nil, snapshot(at, term)))
					break
				}
				l.Close()
				i := o
				i.Applied, i.Term, i.Installed = at, term, voters
				l = opened(t, i)
			default:
				l.Close()
				o.Applied, o.Term = applied, terms[applied]
				l = opened(t, o)
			}
			if got := describe(t, l); got != want() {
				t.Fatalf("round %d, step %d: the log is\n%s\nwant\n%s", round, step, got, want())
			}
			expect(t, l, want())
		}
		l.Close()
	}
}

// FuzzOpen opens files that no program has written. They are an error or a log that goes on.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	o := Options{Dir: filepath.Join(dir, "seed"), Cluster: 7, ID: 1}
	drill.Check(f, Create(o, snapshot(1, 1).GetMetadata()))
	o.Applied, o.Term = 1, 1
	l, err := Open(o)
	drill.Check(f, err)
	for i := uint64(2); i < 8; i++ {
		drill.Check(f, l.Save(hard(1+i/4, 1, i-1), entries(1+i/4, i, i, 60), nil))
	}
	l.Close()
	const name = "0000000000000000-0000000000000000.wal"
	whole, err := os.ReadFile(filepath.Join(o.Dir, name))
	drill.Check(f, err)
	for _, n := range []int{0, 8, 100, 600, len(whole)} {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 16<<10 {
			return
		}
		o := options(t)
		o.Applied, o.Term = 1, 1
		drill.Check(t, os.MkdirAll(o.Dir, 0o700))
		drill.Check(t, os.WriteFile(filepath.Join(o.Dir, name), file, 0o600))
		l, err := Open(o)
		if err != nil {
			return
		}
		want := describe(t, l)
		l.Close()
		l = opened(t, o)
		expect(t, l, want)
		l.Close()
	})
}
