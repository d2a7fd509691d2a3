package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"

	"github.com/rs/zerolog"
)

// limitRoom makes room in pieces of so many bytes until the test ends.
func limitRoom(t *testing.T, bytes int64) {
	t.Helper()
	ahead := roomAhead
	roomAhead = bytes
	t.Cleanup(func() { roomAhead = ahead })
}

// checkRoom checks what stands behind the last commit of the newest file: nothing but so many zeros.
func (j *journal) checkRoom(t *testing.T, want int64) {
	t.Helper()
	content := read(t, j.file.path)
	end := j.end.Load()
	if room := int64(len(content)) - end; room != want || j.file.room != want || j.file.end != end || !allZero(content[end:]) {
		t.Fatalf("behind %d bytes are %d more, %d are known of; want %d zeros", end, room, j.file.room, want)
	}
}

// Commits take the place of zeros, which are made a piece at a time, by always only.
func TestRoomIsMadeAheadOfCommits(t *testing.T) {
	const piece = 20_000
	limitRoom(t, piece)
	disk := newBrokenDisk()
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, &disk.faults)
	var want []string
	put := func(bytes int) {
		t.Helper()
		rec := strings.Repeat("x", bytes)
		j.put(t, "1:a", rec)
		want = append(want, "1:a="+rec)
	}
	put(100)
	j.checkRoom(t, 0)
	j.setFsync(Always)
	room := int64(0)
	for n := range 300 {
		before, syncs := j.end.Load(), disk.syncs.Load()
		put(10 * n % 1000)
		if room -= j.end.Load() - before; room <= 0 {
			room = piece
		}
		j.checkRoom(t, room)
		if disk.syncs.Load() != syncs+1 {
			t.Fatal("room takes an fsync of its own")
		}
	}
	for room > 0 {
		before := j.end.Load()
		put(3 * piece / worthRoom) // zeros for so large ones are not worth their while
		room = max(room-(j.end.Load()-before), 0)
		j.checkRoom(t, room)
	}
	put(100)
	j.checkRoom(t, piece)
	if size, onDisk := j.size(), j.onDisk.Load(); size != j.end.Load() || onDisk != size {
		t.Errorf("room counts: size %d, %d of it on disk", size, onDisk)
	}

	j.setFsync(EverySec)
	j.checkRoom(t, 0)
	put(100)
	j.checkRoom(t, 0)
	j.setFsync(Always)
	put(100)
	j.checkRoom(t, piece)
	end := j.end.Load()
	if _, err := j.rotate(); err != nil {
		t.Fatal(err)
	}
	if content := read(t, filepath.Join(dir, journalFile(1))); int64(len(content)) != end {
		t.Errorf("the file that is done has %d bytes, not %d", len(content), end)
	}
	j.checkRoom(t, 0)
	put(100)
	j.checkRoom(t, piece)
	if err := j.remove(2); err != nil {
		t.Fatal(err)
	}
	if size := j.size(); size != j.end.Load() {
		t.Errorf("after a count the size is %d, not %d", size, j.end.Load())
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if content := read(t, filepath.Join(dir, journalFile(2))); int64(len(content)) != j.end.Load() {
		t.Errorf("the last file has %d bytes, not %d", len(content), j.end.Load())
	}
	checkReplayed(t, dir, want[len(want)-1])
}

// What a kill leaves, with room behind it, is whole: a start says nothing, and neither do the tools.
func TestRoomAfterAKill(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	o.put("0", "b", `{"n":2}`, expiry.Inherit)
	o.journal.claim()
	room := o.journal.file.room
	o.journal.release()
	if room == 0 {
		t.Fatal("there is no room")
	}
	state := o.dump()
	killed := t.TempDir()
	copyFolder(t, o.opt.Dir, killed)
	if err := holds(t, killed, state); err != nil { // inspects it, too
		t.Error(err)
	}

	again := t.TempDir()
	copyFolder(t, o.opt.Dir, again)
	var log bytes.Buffer
	ks, err := Open(Options{Dir: again, Partitions: 3, Clock: o.clock, NoPurge: true, Log: zerolog.New(&log).Level(zerolog.WarnLevel)})
	if err != nil {
		t.Fatal(err)
	}
	if err := ks.Close(); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(again, "*.torn-*")); len(found) > 0 || log.Len() > 0 {
		t.Errorf("a start makes %v and says\n%s", found, log.String())
	}
}

// A backup has no room in it: nothing is written there.
func TestRoomIsNotInABackup(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	path := filepath.Join(t.TempDir(), "backup")
	if err := o.Backup(path); err != nil {
		t.Fatal(err)
	}
	files, err := journalFiles(path)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if content := read(t, f.path); content[len(content)-1] == 0 {
			t.Errorf("%s ends in zeros", f.path)
		}
	}
	if err := holds(t, path, o.dump()); err != nil {
		t.Error(err)
	}
}

// A disk without room for zeros has it for commits, down to the last byte.
func TestRoomThatIsNotThere(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, nil)
	want := []string{"1:a=" + muchText}
	j.put(t, "1:a", muchText)
	j.setFsync(Always)
	limit := j.end.Load() + 1000
	lift := limitFileSize(t, limit)
	for j.end.Load() < limit {
		left := int(limit - j.end.Load())
		rec := strings.Repeat("x", min(100, max(left-200, 0)))
		if size := int(commandSize(commitKeySize, commitHeaderSize+len(appendSet(nil, "1:a", rec)))); size > left || left < 600 {
			rec = strings.Repeat("x", len(rec)+left-size) // exactly
		}
		j.put(t, "1:a", rec)
		want = append(want, "1:a="+rec)
		j.checkRoom(t, 0)
	}
	if !j.cramped {
		t.Error("nobody has noticed that there is no room")
	}
	lift()
	j.put(t, "1:a", "the same file")
	j.checkRoom(t, 0)
	if _, err := j.rotate(); err != nil {
		t.Fatal(err)
	}
	j.put(t, "1:a", "another")
	j.checkRoom(t, roomAhead)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, dir, append(want, "1:a=the same file", "1:a=another")...)
}

// A commit that could be written over zeros only in part is taken back, and tried again.
func TestWriteThatFailsWithinTheRoom(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, nil)
	j.put(t, "1:a", muchText)
	j.setFsync(Always)
	j.put(t, "1:b", "before")
	j.checkRoom(t, roomAhead)
	before := read(t, j.file.path)[:j.end.Load()]
	lift := limitFileSize(t, j.end.Load()+100)
	ticket := j.append(appendSet(nil, "1:c", strings.Repeat("x", 1000)))
	if err := j.wait(ticket); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	if now := read(t, j.file.path); !bytes.Equal(now, before) {
		t.Errorf("%d bytes are there, not the %d that were committed", len(now), len(before))
	}
	lift()
	if err := j.commitAll(); err != nil || j.committed() < ticket {
		t.Fatal("writing does not go on:", err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, dir, "1:a="+muchText, "1:b=before", "1:c="+strings.Repeat("x", 1000))
}

// Zeros behind the last commit do not hide that it is damaged.
func TestEveryFlippedBitBeforeRoomIsDetected(t *testing.T) {
	content, _, _ := smallJournal(t)
	path := plant(t, journalFile(1), nil)
	room := make([]byte, 3*sectorSize)
	eachFlip(string(content), func(bad string, at int) {
		if err := os.WriteFile(path, append([]byte(bad), room...), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := replayed(filepath.Dir(path))
		var damage *DamageError
		if !errors.As(err, &damage) || int64(at) < damage.From || int64(at) >= damage.To {
			t.Fatalf("a flip at %d (%q) gives %v", at, bad[max(0, at-10):at+1], err)
		}
	})
	if found, _ := filepath.Glob(path + ".*"); len(found) > 0 {
		t.Errorf("files were made: %v", found)
	}
}

// Zeros at the end of a file that is not the newest are damage: it was made to end with its last commit.
func TestRoomInAnOlderFileIsRefused(t *testing.T) {
	content, _, _ := smallJournal(t)
	for _, n := range []int{1, 100_000} {
		path := plant(t, journalFile(1), append(bytes.Clone(content), make([]byte, n)...))
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), journalFile(2)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, _, err := replayed(filepath.Dir(path)); !errors.As(err, &damage) {
			t.Errorf("%d zeros give %v", n, err)
		}
	}
}

// A power cut leaves any of the sectors of a commit unwritten, each of which then holds the zeros that were
// there before. Whichever these are, the commit does not count, or all of it does: also when a client has
// written into it what looks like a later commit, or like zeros.
func TestTornCommitInRoom(t *testing.T) {
	forged := func(mark uint32) string { return forgedCommit(t, mark, 1<<20) }
	for name, rec := range map[string]func(mark uint32) string{
		"text":   func(uint32) string { return strings.Repeat("x", 5*sectorSize) },
		"zeros":  func(uint32) string { return strings.Repeat("\x00", 5*sectorSize) },
		"forged": func(mark uint32) string { return strings.Repeat(forged(mark+1)+strings.Repeat("\x00", 99), 12) },
		"small":  func(uint32) string { return "x" },
	} {
		for _, offset := range []int{0, 1, 2, 3, 100, 400} { // at which the commit begins in a sector
			dir := t.TempDir()
			j := mustOpenJournal(t, dir, 1, 1, Always, nil)
			j.put(t, "1:a", strings.Repeat("a", 150+offset))
			from := j.end.Load()
			j.put(t, "1:b", rec(j.mark))
			end := j.end.Load()
			content := read(t, j.file.path)
			if err := j.close(); err != nil {
				t.Fatal(err)
			}
			first, last := from/sectorSize, (end-1)/sectorSize
			for written := range 1 << (last - first + 1) {
				left := slices.Clone(content)
				for n := first; n <= last; n++ {
					if written>>(n-first)&1 == 0 {
						clear(left[max(from, n*sectorSize):min(end, (n+1)*sectorSize)])
					}
				}
				path := plant(t, journalFile(1), left)
				want := []string{"1:a=" + strings.Repeat("a", 150+offset)}
				if bytes.Equal(left, content) {
					want = append(want, "1:b="+rec(j.mark))
				}
				got, _, err := replayed(filepath.Dir(path))
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, from %d, sectors %b are written: %d commits, %v; want %d", name, from, written, len(got), err, len(want))
				}
			}
		}
	}
}

// What was on disk and is zeros now is damage if a later commit stands behind it.
func TestLostCommitBeforeRoomIsRefused(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, Always, nil)
	var ends []int64
	for n := range 4 {
		j.put(t, fmt.Sprint("1:", n), strings.Repeat("x", 700))
		ends = append(ends, j.end.Load())
	}
	content := read(t, j.file.path)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		lost := slices.Clone(content)
		clear(lost[ends[n]-700 : ends[n]])
		var damage *DamageError
		if _, _, err := replayed(filepath.Dir(plant(t, journalFile(1), lost))); !errors.As(err, &damage) {
			t.Errorf("commit %d is lost: %v", n+1, err)
		}
	}
}

func TestWithoutZeros(t *testing.T) {
	for _, size := range []int{0, 1, 10, readSize - 1, readSize, readSize + 1, 3 * readSize} {
		for _, room := range []int{0, 1, readSize - 1, readSize, readSize + 1, 2*readSize + 5} {
			file := append(bytes.Repeat([]byte{'\n'}, size), make([]byte, room)...)
			want := int64(size)
			if size == 0 {
				want = int64(room)
			}
			if end, err := withoutZeros(bytes.NewReader(file), int64(len(file))); err != nil || end != want {
				t.Errorf("%d bytes and %d zeros end at %d, %v", size, room, end, err)
			}
		}
	}
}
