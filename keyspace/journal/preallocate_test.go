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
)

// checkPreallocated checks that exactly this many zeros follow the last commit of the newest file.
func (j *Journal) checkPreallocated(t *testing.T, want int64) {
	t.Helper()
	content := vfstest.Read(t, j.fs, j.file.Path())
	end := j.end.Load()
	if zeros := int64(len(content)) - end; zeros != want || j.file.Preallocated() != want || j.file.End() != end || len(bytes.Trim(content[end:], "\x00")) > 0 {
		t.Fatalf("behind %d bytes are %d more, %d are known of; want %d zeros", end, zeros, j.file.Preallocated(), want)
	}
}

// Commits overwrite zeros, which are written in pieces and only with the policy Always.
func TestPreallocationGoesAheadOfCommits(t *testing.T) {
	t.Parallel()
	const piece = 20_000
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	j.ahead = piece
	var want []string
	put := func(bytes int) {
		t.Helper()
		body := strings.Repeat("x", bytes)
		j.put(t, "1:a", body)
		want = append(want, "1:a="+body)
	}
	put(100)
	j.checkPreallocated(t, 0)
	j.SetPolicy(Always)
	zeros := int64(0)
	for n := range 300 {
		before, syncs := j.end.Load(), disk.Syncs.Load()
		put(10 * n % 1000)
		if zeros -= j.end.Load() - before; zeros <= 0 {
			zeros = piece
		}
		j.checkPreallocated(t, zeros)
		if disk.Syncs.Load() != syncs+1 {
			t.Fatal("preallocation takes an fsync of its own")
		}
	}
	for zeros > 0 {
		before := j.end.Load()
		put(3 * piece / preallocateShare) // for these it is not worth its while
		zeros = max(zeros-(j.end.Load()-before), 0)
		j.checkPreallocated(t, zeros)
	}
	put(100)
	j.checkPreallocated(t, piece)
	if size, onDisk := j.Size(), j.onDisk.Load(); size != j.end.Load() || onDisk != size {
		t.Errorf("zeros count: size %d, %d of it on disk", size, onDisk)
	}

	j.SetPolicy(EverySec)
	j.checkPreallocated(t, 0)
	put(100)
	j.checkPreallocated(t, 0)
	j.SetPolicy(Always)
	put(100)
	j.checkPreallocated(t, piece)
	end := j.end.Load()
	if _, err := j.Rotate(); err != nil {
		t.Fatal(err)
	}
	if content := vfstest.Read(t, disk, path(1)); int64(len(content)) != end {
		t.Errorf("the finished file has %d bytes, not %d", len(content), end)
	}
	j.checkPreallocated(t, 0)
	put(100)
	j.checkPreallocated(t, piece)
	drill.Check(t, j.Remove(2))
	if size := j.Size(); size != j.end.Load() {
		t.Errorf("after a count the size is %d, not %d", size, j.end.Load())
	}
	drill.Check(t, j.Close())
	if content := vfstest.Read(t, disk, path(2)); int64(len(content)) != j.end.Load() {
		t.Errorf("the last file has %d bytes, not %d", len(content), j.end.Load())
	}
	checkReplayed(t, disk, want[len(want)-1])
}

// A disk that is too full for zeros still takes commits, down to the last byte.
func TestPreallocationOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	want := []string{"1:a=" + aoftest.MuchText}
	j.put(t, "1:a", aoftest.MuchText)
	j.SetPolicy(Always)
	sizes := []int{100, 0, 100, 1000, 37}
	limit := j.end.Load()
	for _, size := range sizes {
		limit += commitSize(size)
	}
	disk.Most.Store(limit)
	for _, size := range sizes {
		body := strings.Repeat("x", size)
		j.put(t, "1:a", body)
		want = append(want, "1:a="+body)
		j.checkPreallocated(t, 0)
	}
	if end := j.end.Load(); end != limit || !j.diskFull {
		t.Errorf("%d of %d bytes are written; disk full: %t", end, limit, j.diskFull)
	}
	disk.Most.Store(0)
	j.put(t, "1:a", "the same file")
	j.checkPreallocated(t, 0)
	if _, err := j.Rotate(); err != nil {
		t.Fatal(err)
	}
	j.put(t, "1:a", "another")
	j.checkPreallocated(t, defaultPreallocate)
	drill.Check(t, j.Close())
	checkReplayed(t, disk, append(want, "1:a=the same file", "1:a=another")...)
}

// commitSize is the size in bytes of a commit of one item under 1:a with a body of this size.
func commitSize(body int) int64 {
	return aof.SetSize(len("1:a"), len(aoftest.Rec("1:a", ""))+body) + aof.SealSize
}

// A commit that was written over zeros in part is cut off, and repeated.
func TestWriteThatFailsOverZeros(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	j.put(t, "1:a", aoftest.MuchText)
	j.SetPolicy(Always)
	j.put(t, "1:b", "before")
	j.checkPreallocated(t, defaultPreallocate)
	before := vfstest.Read(t, j.fs, j.file.Path())[:j.end.Load()]
	disk.Most.Store(j.end.Load() + 100)
	lsn := j.Append(set("1:c", strings.Repeat("x", 1000)))
	if err := j.Wait(lsn); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	if now := vfstest.Read(t, j.fs, j.file.Path()); !bytes.Equal(now, before) {
		t.Errorf("%d bytes are there, not the %d that were committed", len(now), len(before))
	}
	disk.Most.Store(0)
	if err := j.CommitAll(); err != nil || j.Committed() < lsn {
		t.Fatal("writing does not continue:", err)
	}
	drill.Check(t, j.Close())
	checkReplayed(t, disk, "1:a="+aoftest.MuchText, "1:b=before", "1:c="+strings.Repeat("x", 1000))
}

// Zeros behind the last commit do not hide that it is damaged.
func TestEveryFlippedBitBeforeZerosIsDetected(t *testing.T) {
	t.Parallel()
	content, _, _ := smallJournal(t)
	disk := planted(t, nil)
	zeros := make([]byte, 3*aof.SectorSize)
	aoftest.EachFlip(string(content), func(bad string, at int) {
		vfstest.Write(t, disk, path(1), append([]byte(bad), zeros...))
		checkDamaged(t, disk, int64(at), fmt.Sprintf("a flip at %d (%q)", at, bad[max(0, at-10):at+1]))
	})
	checkNothingKept(t, disk)
}

// Zeros at the end of a finished file are damage: it ends with its last commit.
func TestZerosInAnOlderFileAreRefused(t *testing.T) {
	t.Parallel()
	content, _, _ := smallJournal(t)
	for _, n := range []int{1, 100_000} {
		disk := planted(t, append(bytes.Clone(content), make([]byte, n)...))
		vfstest.Write(t, disk, path(2), emptyFile())
		checkDamaged(t, disk, int64(len(content)), fmt.Sprint(n, " zeros"))
	}
}

// scanNewest scans the content of a newest file as a replay does, and returns its changes as text.
func scanNewest(content []byte) (changes []string, err error) {
	file, last := bytes.NewReader(content), LSN(0)
	_, _, _, err = Scan(file, "journal", int64(len(content)), true, &last, func(o aof.Op) error {
		changes = append(changes, text(o)...)
		return nil
	})
	return changes, err
}

// A power cut leaves any sectors of the last commit unwritten. They keep their zeros. Whichever these are,
// the commit counts as a whole or not at all, even if a client has written zeros or forged seals into it.
func TestTornCommitOverZeros(t *testing.T) {
	t.Parallel()
	long := func(c string) string { return strings.Repeat(c, 5*aof.SectorSize) }
	forged := strings.Repeat(placeholder+strings.Repeat("\x00", 99), 10)
	for name, o := range map[string]func(from int64, mark uint32) ops{
		"text":    func(int64, uint32) ops { return set("1:b", long("x")) },
		"zeros":   func(int64, uint32) ops { return set("1:b", long("\x00")) },
		"small":   func(int64, uint32) ops { return set("1:b", "") },
		"nothing": func(int64, uint32) ops { return nil },
		"deletes": func(int64, uint32) ops { return append(del("1:"+long("x")), del("1:c")...) },
		"several": func(int64, uint32) ops {
			return slices.Concat(del("1:"+strings.Repeat("d", 700)), set("1:b", strings.Repeat("x", 700)), del("1:c"), set("1:d", ""))
		},
		"forged": func(from int64, mark uint32) ops {
			return set("1:b", forge(from, "1:b", forged, aof.Seal{Mark: mark + 1, From: from, LSN: 3, OnDisk: 1 << 20}))
		},
		"misplaced": func(from int64, mark uint32) ops {
			seal := aof.Seal{Mark: mark + 1, From: from, At: from + 1, LSN: 3, OnDisk: 1 << 20}
			return set("1:b", strings.ReplaceAll(forged, placeholder, string(seal.Append(nil))))
		},
	} {
		for _, offset := range []int64{0, 1, 2, 100, 377, 400, 499, 509, 510, 511} { // at which the commit begins in a sector
			const least = 150
			before := strings.Repeat("a", least+int((offset-headSize-commitSize(least))%aof.SectorSize+aof.SectorSize)%aof.SectorSize)
			content := appendCommit(emptyFile(), 7, 1, set("1:a", before), nil)
			from := int64(len(content))
			if from%aof.SectorSize != offset {
				t.Fatalf("the commit begins at %d", from)
			}
			second := o(from, 7)
			content = appendCommit(content, 7, 2, second, func(s *aof.Seal) { s.OnDisk = from })
			end := int64(len(content))
			content = append(content, make([]byte, 2*aof.SectorSize)...)
			first, last := from/aof.SectorSize, (end-1)/aof.SectorSize
			for written := range 1 << (last - first + 1) {
				left := slices.Clone(content)
				for n := first; n <= last; n++ {
					if written>>(n-first)&1 == 0 {
						clear(left[max(from, n*aof.SectorSize):min(end, (n+1)*aof.SectorSize)])
					}
				}
				want := text(set("1:a", before)...)
				if bytes.Equal(left, content) {
					want = append(want, text(second...)...)
				}
				if got, err := scanNewest(left); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, from %d, sectors %b are written: %d changes, %v; want %d", name, offset, written, len(got), err, len(want))
				}
			}
		}
	}
}

// Zeros in place of a commit that was on disk are damage if a later commit follows.
func TestLostCommitBeforeZerosIsRefused(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, Always)
	var ends []int64
	for n := range 4 {
		j.put(t, fmt.Sprint("1:", n), strings.Repeat("x", 1200))
		ends = append(ends, j.end.Load())
	}
	content := vfstest.Read(t, j.fs, j.file.Path())
	drill.Check(t, j.Close())
	from, r, step := headSize, drill.Rand(t), drill.Pick[int64](100, 20, 1)
	for n, end := range ends[:3] {
		for at := from; at < end; at += 1 + r.Int64N(step) {
			lost := slices.Clone(content)
			clear(lost[at:end])
			if _, err := scanNewest(lost); !errors.As(err, new(*aof.DamageError)) {
				t.Fatalf("commit %d is lost from %d on: %v", n+1, at, err)
			}
		}
		from = end
	}
}
