package keyspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forgedCommit looks like a later commit of a file that says that the first so many bytes were on disk.
// Only the mark, which clients cannot know, is wrong.
func forgedCommit(t *testing.T, mark uint32, onDisk int64) string {
	t.Helper()
	return commitCommand(t, 99, mark, onDisk, appendDel(nil, "1:precious"))
}

// commitCommand is the command of a commit as it stands in a file.
func commitCommand(t *testing.T, ticket LSN, mark uint32, onDisk int64, entries []byte) string {
	t.Helper()
	value := append(make([]byte, commitHeaderSize), entries...)
	key, err := encodeCommit(value, ticket, mark, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s$%d\r\n%s\r\n$%d\r\n%s\r\n", setHead, len(key), key, len(value), value)
}

// twoGenerations makes a journal whose newest file holds some commits, and gives that file's name and
// content and where its commits end.
func twoGenerations(t *testing.T, recs func(mark uint32) []string) (path string, content []byte, ends []int64) {
	t.Helper()
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	j.put(t, "1:precious", "1")
	if _, err := j.rotate(); err != nil {
		t.Fatal(err)
	}
	begin := j.size()
	for n, rec := range recs(j.mark) {
		j.put(t, fmt.Sprint("1:", n), rec)
		ends = append(ends, j.size()-begin+journalHeadSize)
		if err := j.sync(); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(dir, journalFile(2))
	content = read(t, path)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return path, content, ends
}

// The first commit of a file is torn, so that nothing before it tells the mark, and its value holds what
// looks like a proof: the file is cut, wherever it ends.
func TestForgedCommitInATornFirstCommit(t *testing.T) {
	path, content, _ := twoGenerations(t, func(mark uint32) []string {
		return []string{forgedCommit(t, mark+1, 1) + strings.Repeat("x", 300) + forgedCommit(t, mark+2, 10) + "end"}
	})
	for size := range content {
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		checkReplayed(t, filepath.Dir(path), "1:precious=1")
		whole := 0
		if size >= int(journalHeadSize) {
			whole = int(journalHeadSize)
		}
		if size > whole {
			checkKept(t, path, content[whole:size])
		}
	}
}

// The same when sectors of the first commit are lost, the first one and its header with it: the head of
// the file was on disk before and tells the mark.
func TestForgedCommitBehindALostBeginning(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	forged := forgedCommit(t, j.mark+1, 1<<20)
	j.put(t, "1:a", forged+strings.Repeat("x", 2*sectorSize)+forged)
	j.put(t, "1:b", forged)
	path := filepath.Join(dir, journalFile(1))
	content := read(t, path)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{int(journalHeadSize), sectorSize, 2 * sectorSize} {
		for lost := from - from%sectorSize + sectorSize; lost <= 3*sectorSize; lost += sectorSize {
			for _, size := range []int{len(content), len(content) - 5} {
				holed := slices.Clone(content[:size])
				clear(holed[from:lost])
				if err := os.WriteFile(path, holed, 0o600); err != nil {
					t.Fatal(err)
				}
				checkReplayed(t, dir)
				checkKept(t, path, holed[journalHeadSize:])
			}
		}
	}
}

// The same with sectors that were not written, and with a second commit, whole or torn, that holds
// forged ones, too.
func TestForgedCommitsAroundHoles(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	forged := forgedCommit(t, j.mark+1, 1)
	j.put(t, "1:a", forged+strings.Repeat("x", 4*sectorSize)+forged)
	end := j.size()
	j.put(t, "1:b", forged+strings.Repeat("y", sectorSize)+forged)
	content := read(t, filepath.Join(dir, journalFile(1)))
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	for from := sectorSize; from+sectorSize < int(end); from += sectorSize {
		for _, size := range []int{len(content), len(content) - 5, int(end) + 200, int(end)} {
			holed := slices.Clone(content[:size])
			clear(holed[from : from+sectorSize])
			path := plant(t, journalFile(1), holed)
			checkReplayed(t, filepath.Dir(path))
			checkKept(t, path, holed[journalHeadSize:])
		}
	}
}

func TestForgedCommitInALaterCommit(t *testing.T) {
	path, content, ends := twoGenerations(t, func(mark uint32) []string {
		return []string{"kept", forgedCommit(t, mark+1, 300) + strings.Repeat("x", 300)}
	})
	for size := int(ends[0]); size < len(content); size++ {
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		checkReplayed(t, filepath.Dir(path), "1:precious=1", "1:0=kept")
	}
}

// What was on disk and is not what it was is refused, first commit or not, also when it looks torn.
func TestDamagedFirstCommitIsRefused(t *testing.T) {
	path, content, ends := twoGenerations(t, func(mark uint32) []string {
		return []string{forgedCommit(t, mark+1, 1) + strings.Repeat("x", 3*sectorSize), "later"}
	})
	for from := 0; from+sectorSize <= int(ends[0]); from += sectorSize {
		for _, end := range []int{len(content), len(content) + 100} { // then in zeros
			damaged := make([]byte, end)
			copy(damaged, content)
			clear(damaged[from : from+sectorSize])
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			if _, _, err := replayed(filepath.Dir(path)); !errors.As(err, &damage) || damage.From > int64(from) {
				t.Fatalf("a hole from %d in the first commit gives %v", from, err)
			}
		}
	}
}

// A repair of a file whose first commit is damaged does not take the mark from what clients have made up,
// however often.
func TestForgedCommitsDoNotHideTheMark(t *testing.T) {
	_, content, ends := twoGenerations(t, func(mark uint32) []string {
		return []string{strings.Repeat(forgedCommit(t, mark+1, 1), 10), strings.Repeat(forgedCommit(t, mark+1, 1), 10)}
	})
	content[ends[0]-3] ^= 1
	f, err := os.Open(plant(t, "journal", content))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, _, err := extent(f, 0, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	s := journalSalvage{walker: &walker{f: &patientReader{from: f}}, end: int64(len(content))}
	if err := s.findMark(); err != nil || s.mark != want.mark {
		t.Errorf("the mark is %08x, %v; want %08x", s.mark, err, want.mark)
	}
}

// Forged lengths use the search up without proving anything: the beginning of the file is lost, and what
// follows are beginnings of commits that would all reach to its end.
func TestExhaustedSearchProvesNothing(t *testing.T) {
	forged := []byte{}
	const size = 64 << 10
	for len(forged) < size/2 {
		rest := size - len(forged) - 100
		forged = fmt.Appendf(forged, "%s$16\r\n%016d\r\n$%d\r\n1 00000000 00000000 %010d %016d ", setHead, 1, rest+commitHeaderSize-1000, rest-1000, 1)
	}
	file := make([]byte, size)
	copy(file[sectorSize:], forged)
	path := plant(t, journalFile(1), file)
	checkReplayed(t, filepath.Dir(path))
	checkKept(t, path, file)
}
