package journal

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// Clients may write anything into values, also bytes that look like a seal. They cannot know the mark.

// forgeries returns bodies for an item whose command begins at from, in a file of this mark. In each, the
// placeholders are replaced by seals that say that the range from end on was on disk. Some of the seals name
// their own offset.
func forgeries(from, end int64, mark uint32, body string) (bodies []string) {
	for _, s := range []aof.Seal{
		{From: end, OnDisk: 1 << 40},
		{From: end, OnDisk: end + 1},
		{From: end},
		{From: 0, OnDisk: from},
		{From: end + 1, OnDisk: 1 << 40},
	} {
		s.Mark, s.LSN = mark+1, 99
		bodies = append(bodies, forge(from, "1:0", body, s))
		s.At = s.From
		bodies = append(bodies, strings.ReplaceAll(body, placeholder, string(s.Append(nil))))
	}
	return bodies
}

// forgedFiles calls f with the contents of journals' files, the changes in them, and the offsets at which
// their head and their commits end. Their first commit has forged seals in one body, and so has the second,
// if there is one.
func forgedFiles(body, second string, f func(content []byte, changes []string, ends []int64)) {
	const mark = 7
	for n := range forgeries(0, 0, mark, body) {
		content := emptyFile()
		ends := []int64{int64(len(content))}
		var changes []string
		for lsn, body := range []string{body, second} {
			if body == "" {
				continue
			}
			from := int64(len(content))
			o := set("1:0", forgeries(from, from, mark, body)[n])
			content = appendCommit(content, mark, LSN(lsn+1), o, nil)
			ends = append(ends, int64(len(content)))
			changes = append(changes, text(o...)...)
		}
		f(content, changes, ends)
	}
}

// checkCut checks that a newest file is torn, and has these changes.
func checkCut(t *testing.T, content []byte, want []string, what string) {
	t.Helper()
	if got, err := scanNewest(content); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%s: %d changes, %v; want %d", what, len(got), err, len(want))
	}
}

// The first commit of a file is torn: the file is cut, wherever it ends.
func TestForgedSealInATornFirstCommit(t *testing.T) {
	t.Parallel()
	forgedFiles(placeholder+strings.Repeat("x", 300)+placeholder+"end", "", func(content []byte, _ []string, _ []int64) {
		for size := int(headSize); size < len(content); size++ {
			checkCut(t, content[:size], nil, fmt.Sprint("cut at ", size))
		}
	})
}

func TestForgedSealInALaterCommit(t *testing.T) {
	t.Parallel()
	forgedFiles("kept", placeholder+strings.Repeat("x", 300)+placeholder, func(content []byte, changes []string, ends []int64) {
		for size := int(ends[1]); size < len(content); size++ {
			checkCut(t, content[:size], changes[:1], fmt.Sprint("cut at ", size))
		}
	})
}

// The same in files of a journal, of two generations.
func TestTornJournalWithForgedSealsIsCut(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	j.put(t, "1:precious", "1")
	if _, err := j.Rotate(); err != nil {
		t.Fatal(err)
	}
	j.put(t, "1:a", "kept")
	end := j.end.Load()
	j.put(t, "1:0", forge(end, "1:0", placeholder+"the rest", aof.Seal{Mark: j.mark + 1, From: end, LSN: 3, OnDisk: 1 << 30}))

	content := vfstest.Read(t, disk, path(2))
	drill.Check(t, j.Close())
	for size := int(end); size < len(content); size += 7 {
		vfstest.Write(t, disk, path(2), content[:size])
		checkReplayed(t, disk, "1:precious=1", "1:a=kept")
		if size > int(end) {
			aoftest.CheckKept(t, disk, path(2), content[end:size])
		}
	}
}

// Sectors of the first commit are lost, its beginning with them.
func TestForgedSealBehindALostBeginning(t *testing.T) {
	t.Parallel()
	forgedFiles(placeholder+strings.Repeat("x", 2*aof.SectorSize)+placeholder, placeholder, func(content []byte, _ []string, _ []int64) {
		for _, from := range []int{int(headSize), aof.SectorSize, 2 * aof.SectorSize} {
			for lost := from - from%aof.SectorSize + aof.SectorSize; lost <= 3*aof.SectorSize; lost += aof.SectorSize {
				for _, size := range []int{len(content), len(content) - 5} {
					holed := slices.Clone(content[:size])
					clear(holed[from:min(lost, size)])
					checkCut(t, holed, nil, fmt.Sprintf("bytes %d to %d of %d are lost", from, lost, size))
				}
			}
		}
	})
}

// Sectors of the first commit were not written. A second one, whole or torn, has forged seals too.
func TestForgedSealsAroundHoles(t *testing.T) {
	t.Parallel()
	first := placeholder + strings.Repeat("x", 4*aof.SectorSize) + placeholder
	second := placeholder + strings.Repeat("y", aof.SectorSize) + placeholder
	forgedFiles(first, second, func(content []byte, _ []string, ends []int64) {
		end := int(ends[1])
		for from := aof.SectorSize; from < end; from += aof.SectorSize {
			for _, size := range []int{len(content), len(content) - 5, end + 200, end} {
				holed := slices.Clone(content[:size])
				clear(holed[from:min(from+aof.SectorSize, size)])
				checkCut(t, holed, nil, fmt.Sprintf("a hole from %d in %d bytes", from, size))
			}
		}
	})
}

// A range that was on disk and has changed is refused, first commit or not, even if it looks torn.
func TestDamagedFirstCommitIsRefused(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, No)
	j.put(t, "1:0", forge(headSize, "1:0", placeholder+strings.Repeat("x", 3*aof.SectorSize), aof.Seal{Mark: j.mark + 1, LSN: 1}))
	end := int(j.Size())
	drill.Check(t, j.Sync())
	j.put(t, "1:1", "later")

	content := vfstest.Read(t, disk, path(1))
	drill.Check(t, j.Close())
	for from := 0; from < end; from += aof.SectorSize {
		for _, zeros := range []int{0, 100} {
			damaged := append(bytes.Clone(content), make([]byte, zeros)...)
			clear(damaged[from:min(from+aof.SectorSize, end)])
			vfstest.Write(t, disk, path(1), damaged)
			checkDamaged(t, disk, int64(max(from, int(headSize))), fmt.Sprintf("a hole from %d in the first commit", from))
		}
	}
	checkNothingKept(t, disk)
}

// countingReader counts the bytes that are read.
type countingReader struct {
	*bytes.Reader
	bytes int64
}

func (r *countingReader) ReadAt(b []byte, at int64) (n int, err error) {
	n, err = r.Reader.ReadAt(b, at)
	r.bytes += int64(n)
	return n, err
}

// A torn commit full of forged seals is cut, and the scan reads no more than without them.
func TestManyForgedSealsProveNothing(t *testing.T) {
	t.Parallel()
	forgedFiles(strings.Repeat(placeholder, 100), "", func(content []byte, _ []string, _ []int64) {
		content = content[:len(content)-1]
		clear(content[aof.SectorSize : 2*aof.SectorSize])
		checkCut(t, content, nil, "a torn commit")
		file, last := &countingReader{Reader: bytes.NewReader(content)}, LSN(0)
		if _, _, _, err := Scan(file, "journal", int64(len(content)), true, &last, nil); err != nil {
			t.Fatal(err)
		}
		if limit := 4 * int64(len(content)); file.bytes > limit {
			t.Errorf("%d bytes are read of a file of %d", file.bytes, len(content))
		}
	})
}
