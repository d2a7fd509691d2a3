package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/tidwall/buntdb"
)

func TestBuntdbReadsAJournal(t *testing.T) {
	t.Parallel()
	content, _, _ := smallJournal(t)
	db, err := buntdb.Open(aoftest.Plant(t, "journal.db", content))
	drill.Check(t, err)
	defer db.Close()
	var keys []string
	err = db.View(func(tx *buntdb.Tx) error {
		return tx.Ascend("", func(key, rec string) bool {
			keys = append(keys, key)
			if key == "1:c" && rec != aoftest.Rec(key, "") {
				t.Errorf("the record of %s is %q", key, rec)
			}
			return true
		})
	})
	if want := []string{"1:b", "1:c", aof.SealKey}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("buntdb finds %q, %v; want %q", keys, err, want)
	}
}

// A cut journal has the commits that are left whole. One that is cut within its head is damaged: the head is
// on disk before the file gets its name.
func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	content, ends, changes := smallJournal(t)
	perCommit := []int{1, 3, 4} // changes up to each
	for size := range len(content) + 1 {
		disk := planted(t, content[:size])
		if int64(size) < headSize {
			if _, _, err := replayed(disk); !errors.As(err, new(*aof.DamageError)) {
				t.Fatalf("a head cut at %d returns %v", size, err)
			}
			checkNothingKept(t, disk)
			continue
		}
		whole, want := headSize, 0
		for i, end := range ends {
			if end <= int64(size) {
				whole, want = end, perCommit[i]
			}
		}
		checkReplayed(t, disk, changes[:want]...)
		if whole < int64(size) {
			aoftest.CheckKept(t, disk, path(1), content[whole:size])
		}
		if !bytes.Equal(vfstest.Read(t, disk, path(1)), content[:whole]) {
			t.Fatalf("cut at %d: the file is not cut at %d", size, whole)
		}
		// A file that is not the newest was finished before the next was begun.
		disk = planted(t, content[:size])
		vfstest.Write(t, disk, path(2), emptyFile())
		if _, _, err := replayed(disk); errors.As(err, new(*aof.DamageError)) != (whole < int64(size)) {
			t.Fatalf("an older journal cut at %d returns %v", size, err)
		}
	}
}

// A large journal that is cut anywhere has the commits that are left whole.
func TestLargeJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, No)
	ends := []int{int(headSize)} // of the head and the commits
	var changes []string
	r := drill.Rand(t)
	for n := range 400 {
		body := strings.Repeat(fmt.Sprint(n), 1+r.IntN(200))
		j.put(t, fmt.Sprint("1:", n), body)
		ends = append(ends, int(j.Size()))
		changes = append(changes, fmt.Sprintf("1:%d=%s", n, body))
		if n%100 == 50 {
			drill.Check(t, j.Sync())
		}
	}
	content := vfstest.Read(t, disk, path(1))
	drill.Check(t, j.Close())

	aoftest.EachCut(t, len(content), func(left int) {
		vfstest.Write(t, disk, path(1), content[:left])
		whole := 0
		for whole+1 < len(ends) && ends[whole+1] <= left {
			whole++
		}
		checkReplayed(t, disk, changes[:whole]...)
		if ends[whole] < left {
			aoftest.CheckKept(t, disk, path(1), content[ends[whole]:left])
		}
	})
}

func TestEveryFlippedBitOfAJournalIsDetected(t *testing.T) {
	t.Parallel()
	content, _, _ := smallJournal(t)
	disk := planted(t, nil)
	aoftest.EachFlip(string(content), func(bad string, at int) {
		vfstest.Write(t, disk, path(1), []byte(bad))
		checkDamaged(t, disk, int64(at), fmt.Sprintf("a flip at %d (%q)", at, bad[max(0, at-10):at+1]))
	})
	checkNothingKept(t, disk)
}

// Commits that take many sectors and do not fit a reader's buffer, none of them forced to disk.
func TestFlippedBitsOfALargeJournalAreDetected(t *testing.T) {
	t.Parallel()
	content := emptyFile()
	long := strings.Repeat("long", 10_000)
	for lsn, o := range []ops{
		{aoftest.Set("1:a", long), aoftest.Del("1:" + long), aoftest.Set("1:b", "")},
		{aoftest.Del("1:" + long)},
		{aoftest.Set("1:"+long, long), aoftest.Del("1:a")},
	} {
		content = appendCommit(content, 7, LSN(lsn+1), o, nil)
	}
	inner, outer := drill.Pick(1999, 997, 61), drill.Pick(7, 3, 1)
	for at, c := range content {
		if at%outer != 0 || at%inner != 0 && strings.Contains(long, string(content[max(at-8, 0):min(at+8, len(content))])) {
			continue // within the long text all bytes are alike
		}
		content[at] ^= 1 << (at % 8)
		last := LSN(0)
		_, _, _, err := Scan(bytes.NewReader(content), "journal", int64(len(content)), false, &last, func(aof.Op) error { return nil })
		var damage *aof.DamageError
		if !errors.As(err, &damage) || int64(at) < damage.From || int64(at) >= damage.To {
			t.Fatalf("a flip at %d (%q) returns %v", at, content[max(0, at-10):at+1], err)
		}
		content[at] = c
	}
}

// A power cut leaves sectors unwritten in any order. That is damage if a later seal says that they were on
// disk.
func TestJournalWithHoles(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, No)
	var commits [][]string // the changes of each
	ends := []int64{headSize}
	onDisk := int64(0)
	for n := range 30 {
		key := fmt.Sprint("1:", n)
		o := ops{aoftest.Set(key, strings.Repeat("x", 50+n*7))}
		if n%3 == 0 {
			o = append(o, aoftest.Del(key+strings.Repeat("y", 40*n)))
		}
		j.commit(t, o)
		commits = append(commits, text(o...))
		ends = append(ends, j.Size())
		if n == 14 {
			onDisk = j.Size()
			drill.Check(t, j.Sync())
		}
	}
	content := vfstest.Read(t, disk, path(1))
	drill.Check(t, j.Close())
	check := func(holed []byte, first int64, what string) {
		t.Helper()
		disk := planted(t, holed)
		whole := 0
		for whole < len(commits) && ends[whole+1] <= first {
			whole++
		}
		got, last, err := replayed(disk)
		if err != nil || int(last) != whole || !slices.Equal(got, slices.Concat(commits[:whole]...)) {
			t.Fatalf("with %s %d commits are left, %v; want %d", what, last, err, whole)
		}
		if ends[whole] < int64(len(bytes.TrimRight(holed, "\x00"))) {
			aoftest.CheckKept(t, disk, path(1), holed[ends[whole]:])
		}
	}
	for from := 0; from < len(content); from += aof.SectorSize {
		to := min(from+aof.SectorSize, len(content))
		holed := bytes.Clone(content)
		clear(holed[from:to])
		if int64(from) >= onDisk {
			check(holed, int64(from), fmt.Sprint("a hole from ", from))
			continue
		}
		var damage *aof.DamageError
		_, _, err := replayed(planted(t, holed))
		if !errors.As(err, &damage) || damage.From >= int64(to) || damage.To <= int64(from) {
			t.Fatalf("a hole from %d, which was on disk, returns %v", from, err)
		}
	}
	// Any sectors of those that were not forced to disk, and an end that was not written.
	r := drill.Rand(t)
	for range drill.Pick(60, 100, 2000) {
		holed := bytes.Clone(content[:onDisk+r.Int64N(int64(len(content))-onDisk)])
		first := int64(len(holed))
		holes := 1 + r.IntN(5)
		for from := len(holed) - len(holed)%aof.SectorSize; from > int(onDisk); from -= aof.SectorSize {
			if r.IntN(8) < holes {
				clear(holed[from:min(from+aof.SectorSize, len(holed))])
				first = int64(from)
			}
		}
		check(holed, first, fmt.Sprintf("holes in %q", holed[onDisk:]))
	}
}

func TestJournalThatEndsInZeros(t *testing.T) {
	t.Parallel()
	content, ends, changes := smallJournal(t)
	for _, n := range []int{1, 2, 15, 16, 17, 511, 512, 513, 100_000} { // preallocated
		disk := planted(t, append(bytes.Clone(content), make([]byte, n)...))
		checkReplayed(t, disk, changes...)
		checkNothingKept(t, disk)
		if !bytes.Equal(vfstest.Read(t, disk, path(1)), content) {
			t.Errorf("%d zeros: the file is not cut to its commits", n)
		}
	}
	for n := range ends[2] - ends[1] { // a commit that was begun, then zeros
		disk := planted(t, append(bytes.Clone(content[:ends[1]+n]), make([]byte, 20)...))
		checkReplayed(t, disk, changes[:3]...)
	}
	zeros := append(append(bytes.Clone(content), 0, 0, 0), content...)
	disk := planted(t, zeros)
	checkDamaged(t, disk, int64(len(content)), "zeros in the middle")
}

func TestReplayRefusesABrokenSequence(t *testing.T) {
	t.Parallel()
	content, ends, _ := smallJournal(t)
	first, second := set("1:a", "1"), set("1:b", "2")
	one := appendCommit(emptyFile(), 7, 1, first, nil)
	with := func(change func(*aof.Seal)) []byte { return appendCommit(bytes.Clone(one), 7, 2, second, change) }
	next := func(lsn LSN) []byte { return appendCommit(emptyFile(), 7, lsn, second, nil) }
	for name, files := range map[string]map[uint64][]byte{
		"a commit is missing":             {1: append(bytes.Clone(content[:ends[0]]), content[ends[1]:]...)},
		"a commit is there twice":         {1: append(bytes.Clone(content), content[ends[1]:]...)},
		"a file is missing":               {1: content, 3: emptyFile()},
		"a file is there twice":           {1: content, 2: content},
		"a seal is deleted":               {1: aof.AppendOps(bytes.Clone(content), del(aof.SealKey))},
		"the head is missing":             {1: content[headSize:]},
		"there are two heads":             {1: append(emptyFile(), emptyFile()...)},
		"the first LSN is the last":       {1: one, 2: next(1)},
		"an LSN is missing between files": {1: one, 2: next(3)},
		"an LSN is missing":               {1: with(func(s *aof.Seal) { s.LSN++ })},
		"an LSN is there twice":           {1: with(func(s *aof.Seal) { s.LSN-- })},
		"a commit has no LSN":             {1: with(func(s *aof.Seal) { s.LSN = 0 })},
		"a commit is of another file":     {1: with(func(s *aof.Seal) { s.Mark++ })},
		"a commit covers too little":      {1: with(func(s *aof.Seal) { s.From++ })},
		"a commit covers too much":        {1: with(func(s *aof.Seal) { s.From = 0 })},
		"a commit is of another place":    {1: with(func(s *aof.Seal) { s.At++ })},
		"a checksum is wrong":             {1: with(func(s *aof.Seal) { s.Sum++ })},
		"a commit proves itself":          {1: with(func(s *aof.Seal) { s.OnDisk = s.At })},
		"a record is wrong":               {1: appendCommit(bytes.Clone(one), 7, 2, ops{{Key: "1:b", Rec: "2"}}, nil)},
		"a record is another key's":       {1: appendCommit(bytes.Clone(one), 7, 2, ops{{Key: "1:c", Rec: second[0].Rec}}, nil)},
	} {
		disk := vfstest.New()
		for generation, content := range files {
			vfstest.Write(t, disk, path(generation), content)
		}
		_, _, err := replayed(disk)
		if name == "a file is missing" && err != nil {
			continue
		}
		if !errors.As(err, new(*aof.DamageError)) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	disk := vfstest.New()
	vfstest.Write(t, disk, path(1), with(nil))
	vfstest.Write(t, disk, path(2), next(3))
	checkReplayed(t, disk, "1:a=1", "1:b=2", "1:b=2")
}

// A journal without a seal is refused by its name and its range.
func TestReplayNamesTheRangeWithoutASeal(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]string{
		0:            "is damaged: it is empty, although a seal",
		headSize - 1: fmt.Sprintf("is damaged at bytes 0 to %d: there is no seal", headSize-1),
		4 << 10:      "is damaged at bytes 0 to 4096: there is no seal",
	} {
		content := make([]byte, size)
		disk := vfstest.New()
		vfstest.Write(t, disk, path(1), content)
		_, _, err := replayed(disk)
		d, ok := errors.AsType[*aof.DamageError](err)
		if !ok || d.File != path(1) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: error is %v", size, err)
		}
	}
}

func TestReplayStopsAtAnErrorOfTheVisitor(t *testing.T) {
	t.Parallel()
	content, _, _ := smallJournal(t)
	disk := planted(t, content)
	_, _, err := replayFolder(disk, func(aof.Op) error { return vfstest.ErrDisk })
	if !errors.Is(err, vfstest.ErrDisk) {
		t.Errorf("error is %v", err)
	}
}

// FuzzScan overwrites a part of a journal and cuts it. A scan confirms only written commits, in their order.
func FuzzScan(f *testing.F) {
	content := emptyFile()
	var changes []string
	commits := []int{0} // changes up to each
	ends := []int64{headSize}
	for n := range 6 {
		key := fmt.Sprint("1:", n)
		o := ops{aoftest.Set(key, strings.Repeat(key, 20*n)), aoftest.Del(key), aoftest.Set("1:z", "\x00\r\n*3\r\n")}
		onDisk := ends[max(0, n-2)]
		content = appendCommit(content, 7, LSN(n+1), o, func(s *aof.Seal) { s.OnDisk = onDisk })
		changes = append(changes, text(o...)...)
		commits = append(commits, len(changes))
		ends = append(ends, int64(len(content)))
	}
	f.Add(uint16(0), uint16(1), []byte("7"))
	f.Add(uint16(100), uint16(200), []byte("*3\r\n$3\r\nset\r\n$3\r\n1:0\r\n$9\r\n"))
	f.Add(uint16(0), uint16(500), make([]byte, aof.SectorSize))
	f.Add(uint16(3), uint16(900), forgedText(900))
	f.Fuzz(func(t *testing.T, cut, at uint16, over []byte) {
		file := bytes.Clone(content)
		copy(file[int(at)%len(file):], over)
		file = file[:len(file)-int(cut)%len(file)]
		var got []string
		last := LSN(0)
		_, end, _, err := Scan(bytes.NewReader(file), "journal", int64(len(file)), true, &last, func(o aof.Op) error {
			got = append(got, text(o)...)
			return nil
		})
		if int(last) >= len(commits) || len(got) != commits[last] || !slices.Equal(got, changes[:len(got)]) {
			t.Fatalf("%d commits hold %q", last, got)
		}
		if err != nil {
			return
		}
		if end != ends[last] || !bytes.Equal(file[:end], content[:end]) {
			t.Fatalf("%d commits end at %d", last, end)
		}
		if bytes.HasPrefix(content, file) && int(last)+1 < len(ends) && ends[last+1] <= int64(len(file)) {
			t.Fatalf("%d commits are left of %d bytes", last, len(file))
		}
	})
}

// forgedText is a seal with the right mark at another offset than it names.
func forgedText(from int64) []byte {
	return aof.Seal{Mark: 7, From: from, At: from + 1, LSN: 2, OnDisk: from}.Append(nil)
}
