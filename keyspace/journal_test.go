package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/buntdb"
)

func mustOpenJournal(t *testing.T, dir string, generation uint64, ticket LSN, fsync Fsync, faults *faults) *journal {
	t.Helper()
	j, err := openJournalWith(dir, generation, ticket, fsync, quiet, faults)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// write commits a text as the record under a key.
func (j *journal) put(t *testing.T, key, rec string) LSN {
	t.Helper()
	ticket := j.append(appendSet(nil, key, rec))
	if err := j.wait(ticket); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// replayed gives the entries of all journals in a folder as text, and the last ticket.
func replayed(dir string) (entries []string, last LSN, err error) {
	_, last, err = replayJournals(dir, quiet, epoch, func(key, rec string, deleted bool) error {
		if deleted {
			entries = append(entries, "-"+key)
		} else {
			entries = append(entries, key+"="+rec)
		}
		return nil
	})
	return entries, last, err
}

func checkReplayed(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got, _, err := replayed(dir); err != nil || !slices.Equal(got, want) {
		t.Fatalf("the journals hold %q, %v; want %q", got, err, want)
	}
}

// small makes a journal's file with three commits and returns it with the places at which they
// end. What a crash may not take, the first commit, was forced to disk.
func smallJournal(t *testing.T) (content []byte, ends []int64, entries []string) {
	t.Helper()
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	j.put(t, "1:a", "alpha")
	ends = append(ends, j.size())
	if err := j.sync(); err != nil {
		t.Fatal(err)
	}
	group := appendSet(appendDel(nil, "1:a"), "1:b", "\r\n*3\r\n \x00\x00\n-1 ")
	if err := j.wait(j.append(group)); err != nil {
		t.Fatal(err)
	}
	ends = append(ends, j.size())
	j.put(t, "1:c", "")
	ends = append(ends, j.size())
	content = read(t, filepath.Join(dir, journalFile(1)))
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return content, ends, []string{"1:a=alpha", "-1:a", "1:b=\r\n*3\r\n \x00\x00\n-1 ", "1:c="}
}

func TestJournalReplaysInOrderAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 7, 41, EverySec, nil)
	if ticket := j.put(t, "1:a", "1"); ticket != 41 {
		t.Errorf("the first ticket is %d", ticket)
	}
	pending := j.append(appendDel(nil, "1:a"))
	if g, err := j.rotate(); err != nil || g != 8 {
		t.Fatalf("rotate gives %d, %v", g, err)
	}
	if j.committed() < pending {
		t.Error("rotate left something behind")
	}
	j.put(t, "1:b", "2")
	if g, err := j.rotate(); err != nil || g != 9 {
		t.Fatalf("rotate gives %d, %v", g, err)
	}
	if g, err := j.rotate(); err != nil || g != 9 {
		t.Fatalf("with nothing written rotate gives %d, %v", g, err)
	}
	last := j.append(appendSet(nil, "1:c", "3"))
	if err := j.close(); err != nil { // commits what is pending
		t.Fatal(err)
	}
	checkReplayed(t, dir, "1:a=1", "-1:a", "1:b=2", "1:c=3")
	generation, ticket, err := replayJournals(dir, quiet, epoch, func(string, string, bool) error { return nil })
	if err != nil || generation != 9 || ticket != last {
		t.Errorf("generation %d, ticket %d, %v; want 9, %d", generation, ticket, err, last)
	}
}

func TestJournalIsAFileThatBuntdbReads(t *testing.T) {
	content, ends, _ := smallJournal(t)
	db, err := buntdb.Open(plant(t, "journal.db", content))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *buntdb.Tx) error {
		n, err := tx.Len()
		if n != len(ends)+1 { // the head is one
			t.Errorf("%d items", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestJournalRemovesWholeGenerations(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, nil)
	sizes := []int64{j.size()}
	for n := range 3 {
		j.put(t, "1:a", strings.Repeat("x", n))
		sizes = append(sizes, j.size())
		if _, err := j.rotate(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.remove(3); err != nil {
		t.Fatal(err)
	}
	if want := sizes[3] - sizes[2] + journalHeadSize; j.size() != want {
		t.Errorf("the size is %d, not %d", j.size(), want)
	}
	checkReplayed(t, dir, "1:a=xx")
	if err := j.remove(100); err != nil {
		t.Fatal(err)
	}
	j.put(t, "1:b", "the newest stays") // removed, it would be written in vain
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, dir, "1:b=the newest stays")
}

func TestNoJournalReplaysToNothing(t *testing.T) {
	if generation, ticket, err := replayJournals(t.TempDir(), quiet, epoch, nil); generation != 0 || ticket != 0 || err != nil {
		t.Errorf("generation %d, ticket %d, %v", generation, ticket, err)
	}
}

// gate gives faults whose first write waits until it is opened.
func gate() (x *faults, reached, open chan struct{}) {
	reached, open = make(chan struct{}), make(chan struct{})
	var once sync.Once
	return &faults{write: func() error {
		once.Do(func() { close(reached); <-open })
		return nil
	}}, reached, open
}

func TestGroupCommitSharesCommitsAndFsyncs(t *testing.T) {
	x, reached, open := gate()
	j := mustOpenJournal(t, t.TempDir(), 1, 1, Always, x)
	defer j.close()
	var wg sync.WaitGroup
	errs := make([]error, 51)
	wg.Go(func() { errs[0] = j.wait(j.append(appendDel(nil, "1:first"))) })
	<-reached // the first is being written and everybody else comes too late for it
	parked := make(chan struct{}, 50)
	for n := range 50 {
		ticket := j.append(appendDel(nil, "1:a"))
		if ticket != 2 {
			t.Fatalf("ticket %d", ticket)
		}
		wg.Go(func() {
			parked <- struct{}{}
			errs[n+1] = j.wait(ticket)
		})
	}
	for range 50 {
		<-parked
	}
	close(open)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if j.commits.Load() != 2 || j.fsyncs.Load() != 2 {
		t.Errorf("51 groups took %d commits and %d fsyncs", j.commits.Load(), j.fsyncs.Load())
	}
}

func TestWaitForWhatWasNeverHandedOut(t *testing.T) {
	j := mustOpenJournal(t, t.TempDir(), 1, 1, EverySec, nil)
	defer j.close()
	if err := j.wait(0); err != nil {
		t.Error(err)
	}
	if j.wait(1) == nil {
		t.Error("a ticket that was never handed out is committed")
	}
	j.put(t, "1:a", "still works")
}

func TestJournalForcesToDiskAsThePolicySays(t *testing.T) {
	disk := newBrokenDisk()
	j := mustOpenJournal(t, t.TempDir(), 1, 1, No, &disk.faults)
	defer j.close()
	j.put(t, "1:a", "1")
	if disk.syncs.Load() != 0 {
		t.Error("policy no forces to disk")
	}
	j.setFsync(Always)
	if disk.syncs.Load() != 1 {
		t.Error("what was committed before is not on disk after a change to always")
	}
	j.put(t, "1:a", "2")
	if disk.syncs.Load() != 2 {
		t.Error("policy always does not force to disk")
	}
	if err := j.sync(); err != nil || disk.syncs.Load() != 2 {
		t.Error("sync forces to disk what is there already")
	}
}

func TestBatchThatCouldNotBeWrittenIsKept(t *testing.T) {
	disk := newBrokenDisk()
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, &disk.faults)
	j.put(t, "1:a", "1")
	disk.failWrites.Store(true)
	first := j.append(appendSet(nil, "1:b", "2"))
	if err := j.wait(first); !errors.Is(err, errDisk) {
		t.Fatalf("wait gives %v", err)
	}
	if !errors.Is(j.err(), errDisk) {
		t.Errorf("err gives %v", j.err())
	}
	second := j.append(appendSet(nil, "1:c", "3"))
	if err := j.wait(second); !errors.Is(err, errDisk) || second == first {
		t.Errorf("ticket %d after %d: %v", second, first, err)
	}
	disk.failWrites.Store(false)
	if err := j.wait(second); err != nil || j.err() != nil || j.committed() != second {
		t.Errorf("after the disk works again: %v, %v", err, j.err())
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, dir, "1:a=1", "1:b=2", "1:c=3")
}

func TestAllWhoWaitLearnThatWritingFails(t *testing.T) {
	x, reached, open := gate()
	hold := x.write
	x.write = func() error { hold(); return errDisk }
	j := mustOpenJournal(t, t.TempDir(), 1, 1, EverySec, x)
	errs := make(chan error)
	go func() { errs <- j.wait(j.append(appendDel(nil, "1:a"))) }()
	<-reached
	for range 10 {
		ticket := j.append(appendDel(nil, "1:b"))
		go func() { errs <- j.wait(ticket) }()
	}
	close(open)
	for range 11 {
		if err := <-errs; !errors.Is(err, errDisk) {
			t.Errorf("one learns %v", err)
		}
	}
	if err := j.close(); !errors.Is(err, errDisk) {
		t.Errorf("close hides what is lost: %v", err)
	}
	if err := j.wait(2); err != errJournalClosed {
		t.Errorf("after close: %v", err)
	}
}

func TestWritingResumesByItself(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, nil)
	j.put(t, "1:a", muchText)
	lift := limitFileSize(t, j.size()+100) // so that a part of the next commit is written
	ticket := j.append(appendSet(nil, "1:b", strings.Repeat("x", 1000)))
	if err := j.wait(ticket); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	lift()
	for j.err() != nil { // nobody waits or writes any more
		runtime.Gosched()
	}
	if j.committed() != ticket {
		t.Error("writing works, but the batch is not committed")
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, dir, "1:a="+muchText, "1:b="+strings.Repeat("x", 1000))
}

func TestFailedFsyncIsFinal(t *testing.T) {
	for _, policy := range []Fsync{Always, EverySec} {
		disk := newBrokenDisk()
		j := mustOpenJournal(t, t.TempDir(), 1, 1, policy, &disk.faults)
		j.put(t, "1:a", "1")
		disk.failSyncs.Store(true)
		ticket := j.append(appendDel(nil, "1:a"))
		if err := j.wait(ticket); (policy == Always) != errors.Is(err, errDisk) {
			t.Errorf("policy %d: wait gives %v", policy, err)
		}
		if err := j.sync(); !errors.Is(err, errDisk) {
			t.Errorf("policy %d: sync gives %v", policy, err)
		}
		disk.failSyncs.Store(false)
		syncs, writes := disk.syncs.Load(), disk.writes.Load()
		err := j.wait(j.append(appendDel(nil, "1:b")))
		_, rotated := j.rotate()
		for _, err := range []error{err, j.err(), j.sync(), rotated, j.commitAll(), j.close()} {
			if !errors.Is(err, errDisk) {
				t.Errorf("policy %d: a failed fsync is forgotten: %v", policy, err)
			}
		}
		if disk.syncs.Load() != syncs || disk.writes.Load() != writes {
			t.Errorf("policy %d: the disk is tried again", policy)
		}
		if j.committed() >= ticket && policy == Always {
			t.Error("what is not on disk is called committed")
		}
	}
}

// While a background fsync is slow, commits wait for its end instead of piling up in memory that
// only the disk could empty.
func TestCommitsWaitForASlowFsync(t *testing.T) {
	var mu sync.Mutex
	var events []string
	note := func(s string) { mu.Lock(); defer mu.Unlock(); events = append(events, s) }
	j := mustOpenJournal(t, t.TempDir(), 1, 1, EverySec, &faults{write: func() error { note("write"); return nil }})
	defer j.close()
	j.syncMu.Lock()
	j.slow.Store(true)
	done := make(chan error)
	go func() { done <- j.wait(j.append(appendDel(nil, "1:a"))) }()
	for range 1000 {
		runtime.Gosched()
	}
	note("fsync ends")
	j.syncMu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(events, []string{"fsync ends", "write"}) {
		t.Errorf("in order: %v", events)
	}
	if j.slow.Load() {
		t.Error("it stays slow for ever")
	}
}

// A background fsync holds nobody up for as long as a disk may need that keeps pace. If it takes longer,
// commits wait for its end.
func TestBackgroundFsyncHoldsNobodyUp(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the disk counts as slow")
	}
	reached, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var writes atomic.Int64
	j := mustOpenJournal(t, t.TempDir(), 1, 1, EverySec, &faults{
		write: func() error { writes.Add(1); return nil },
		sync: func(f *os.File) error {
			once.Do(func() { close(reached); <-open })
			return nil
		},
	})
	defer j.close()
	j.put(t, "1:a", "before")
	<-reached
	for n := range 100 {
		j.put(t, "1:a", fmt.Sprint(n)) // returns
	}
	if j.synced.Load() != 0 {
		t.Error("the fsync has not ended, but counts")
	}

	for began := time.Now(); !j.slow.Load(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 30*slowSync {
			t.Fatal("nobody notices that the disk is slow")
		}
	}
	written := writes.Load()
	done := make(chan error)
	go func() { done <- j.wait(j.append(appendDel(nil, "1:a"))) }()
	select {
	case <-done:
		t.Error("a commit does not wait for the slow disk")
	case <-time.After(50 * time.Millisecond):
		if writes.Load() != written {
			t.Error("a commit is written while the disk is slow")
		}
	}
	close(open)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if j.synced.Load() == 0 {
		t.Error("the commit did not wait for the end of the fsync")
	}
}

func TestJournalCutAnywhere(t *testing.T) {
	content, ends, entries := smallJournal(t)
	perCommit := []int{1, 3, 4} // entries up to each
	for size := range len(content) + 1 {
		path := plant(t, journalFile(1), content[:size])
		whole, want := int64(0), 0
		if int64(size) >= journalHeadSize {
			whole = journalHeadSize
		}
		for i, end := range ends {
			if end <= int64(size) {
				whole, want = end, perCommit[i]
			}
		}
		checkReplayed(t, filepath.Dir(path), entries[:want]...)
		if whole < int64(size) {
			checkKept(t, path, content[whole:size])
		}
		if !bytes.Equal(read(t, path), content[:whole]) {
			t.Fatalf("cut at %d: the file is not cut at %d", size, whole)
		}
		// What is not the newest was finished before the next was begun.
		path = plant(t, journalFile(1), content[:size])
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), journalFile(2)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, _, err := replayed(filepath.Dir(path)); errors.As(err, &damage) != (whole < int64(size)) {
			t.Fatalf("an older journal cut at %d gives %v", size, err)
		}
	}
}

// A journal of a version that wrote no heads is read like any other.
func TestJournalWithoutAHead(t *testing.T) {
	content, _, entries := smallJournal(t)
	checkReplayed(t, filepath.Dir(plant(t, journalFile(1), content[journalHeadSize:])), entries...)
}

func TestEveryFlippedBitOfAJournalIsDetected(t *testing.T) {
	content, _, _ := smallJournal(t)
	path := plant(t, journalFile(1), nil)
	eachFlip(string(content), func(bad string, at int) {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := replayed(filepath.Dir(path))
		var damage *DamageError
		if !errors.As(err, &damage) {
			t.Fatalf("a flip at %d (%q) gives %v", at, bad[max(0, at-10):at+1], err)
		}
		if int64(at) < damage.From || int64(at) >= damage.To {
			t.Fatalf("a flip at %d is reported as %v", at, damage)
		}
	})
	if found, _ := filepath.Glob(path + ".*"); len(found) > 0 {
		t.Errorf("files were made: %v", found)
	}
}

// A power cut leaves sectors unwritten in any order. That is damage if a later commit knows that
// they were on disk.
func TestJournalWithHoles(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, No, nil)
	var entries []string
	var ends []int64
	onDisk := int64(0)
	for n := range 30 {
		rec := strings.Repeat("x", 150)
		j.put(t, fmt.Sprint("1:", n), rec)
		entries = append(entries, fmt.Sprintf("1:%d=%s", n, rec))
		ends = append(ends, j.size())
		if n == 14 {
			onDisk = j.size()
			if err := j.sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	content := read(t, filepath.Join(dir, journalFile(1)))
	j.close()
	for from := 0; from < len(content); from += sectorSize {
		to := min(from+sectorSize, len(content))
		holed := bytes.Clone(content)
		clear(holed[from:to])
		path := plant(t, journalFile(1), holed)
		got, last, err := replayed(filepath.Dir(path))
		if int64(from) < onDisk {
			var damage *DamageError
			if !errors.As(err, &damage) || damage.From >= int64(to) || damage.To <= int64(from) {
				t.Fatalf("a hole from %d, which was on disk, gives %v", from, err)
			}
			continue
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= int64(from) {
			whole++
		}
		if err != nil || int(last) != whole || !slices.Equal(got, entries[:whole]) {
			t.Fatalf("with a hole from %d %d commits are left, %v; want %d", from, last, err, whole)
		}
		checkKept(t, path, holed[ends[whole-1]:])
	}
}

func TestJournalThatEndsInZeros(t *testing.T) {
	content, ends, entries := smallJournal(t)
	for _, n := range []int{1, 2, 15, 16, 17, 511, 512, 513, 100_000} { // room for more commits
		path := plant(t, journalFile(1), append(bytes.Clone(content), make([]byte, n)...))
		checkReplayed(t, filepath.Dir(path), entries...)
		if found, _ := filepath.Glob(path + ".*"); len(found) > 0 || !bytes.Equal(read(t, path), content) {
			t.Errorf("%d zeros: the file has not become what was written; beside it %v", n, found)
		}
	}
	for n := range int64(30) { // a commit that was begun, then zeros
		path := plant(t, journalFile(1), append(bytes.Clone(content[:ends[1]+n]), make([]byte, 20)...))
		checkReplayed(t, filepath.Dir(path), entries[:3]...)
	}
	zeros := append(append(bytes.Clone(content), 0, 0, 0), content...)
	var damage *DamageError
	if _, _, err := replayed(filepath.Dir(plant(t, journalFile(1), zeros))); !errors.As(err, &damage) {
		t.Errorf("zeros in the middle give %v", err)
	}
}

// Clients write what they like into values: also what looks like a commit that proves damage, in a
// value which a power cut has torn.
func TestJournalIsNotFooledByForgedCommits(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, EverySec, nil)
	j.put(t, "1:a", "kept")
	end := j.size()
	forged := commitCommand(t, 3, j.mark+1, 1<<30, nil)
	j.put(t, "1:b", forged+"the rest")
	content := read(t, filepath.Join(dir, journalFile(1)))
	j.close()
	path := plant(t, journalFile(1), content[:len(content)-5])
	checkReplayed(t, filepath.Dir(path), "1:a=kept")
	checkKept(t, path, content[end:len(content)-5])
}

func TestReplayRefusesWhatIsNotASequence(t *testing.T) {
	content, ends, _ := smallJournal(t)
	for name, files := range map[string]map[uint64][]byte{
		"a commit is missing":     {1: append(bytes.Clone(content[:ends[0]]), content[ends[1]:]...)},
		"a commit is there twice": {1: append(bytes.Clone(content), content[ends[1]:]...)},
		"a file is missing":       {1: content, 3: nil},
		"a file is there twice":   {1: content, 2: content},
		"an item is deleted":      {1: append(bytes.Clone(content), "*2\r\n$3\r\ndel\r\n$16\r\n0000000000000001\r\n"...)},
	} {
		dir := t.TempDir()
		for generation, content := range files {
			if err := os.WriteFile(filepath.Join(dir, journalFile(generation)), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := replayed(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReplayStopsAtAnErrorOfTheVisitor(t *testing.T) {
	content, _, _ := smallJournal(t)
	dir := filepath.Dir(plant(t, journalFile(1), content))
	_, _, err := replayJournals(dir, quiet, epoch, func(string, string, bool) error { return errDisk })
	if !errors.Is(err, errDisk) {
		t.Errorf("error is %v", err)
	}
}

func FuzzEntries(f *testing.F) {
	f.Add(appendDel(appendSet(nil, "1:a", "rec"), "1:b"))
	f.Add([]byte("+99999999999999999999 1 a b\n"))
	f.Add([]byte("-5 1:a\n"))
	f.Fuzz(func(t *testing.T, entries []byte) {
		var again []byte
		r := replayer{visit: func(key, rec string, deleted bool) error {
			if deleted {
				again = appendDel(again, key)
			} else {
				again = appendSet(again, key, rec)
			}
			return nil
		}}
		if r.visitEntries(entries) == nil && len(again) > len(entries) {
			t.Fatalf("%q is read as %q", entries, again)
		}
	})
}

// FuzzScan feeds files to both readers: they must come to an end without panicking, and what the
// reader of stores takes for confirmed buntdb must read in the same way.
func FuzzScan(f *testing.F) {
	f.Add(seal{mark: 1}.bytes())
	f.Add([]byte("*3\r\n$3\r\nset\r\n$16\r\n0000000000000001\r\n$50\r\n1 "))
	f.Add([]byte("*2\r\n$3\r\ndel\r\n$3\r\n1:a\r\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, end, err := scanStore(bytes.NewReader(file), "file", int64(len(file)), nil)
		if err == nil && (end < sealSize || end > int64(len(file))) {
			t.Fatalf("%d of %d bytes are confirmed", end, len(file))
		}
		r := replayer{visit: func(string, string, bool) error { return nil }}
		var b *breakOff
		if err := r.read(bytes.NewReader(file), "file", int64(len(file))); errors.As(err, &b) {
			judgeJournal(bytes.NewReader(file), "file", b, r.mark, int64(len(file)))
		}
	})
}

// Writers, rotation, removal and fsyncs at once: nothing that wait has confirmed is lost or comes
// out of order, unless its journal was removed.
func TestJournalUnderLoad(t *testing.T) {
	dir := t.TempDir()
	j := mustOpenJournal(t, dir, 1, 1, Always, nil)
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				ticket := j.append(appendSet(nil, fmt.Sprint(w), fmt.Sprint(n)))
				if n%3 == 0 {
					if err := j.wait(ticket); err != nil || j.committed() < ticket {
						t.Errorf("wait gives %v", err)
					}
				}
			}
		})
	}
	rotations := make(chan struct{})
	go func() {
		defer close(rotations)
		for n := range 20 {
			if _, err := j.rotate(); err != nil {
				t.Error(err)
			}
			if n%5 == 0 {
				j.setFsync([]Fsync{Always, EverySec}[n%2])
			}
			if err := j.sync(); err != nil {
				t.Error(err)
			}
			if err := j.commitAll(); err != nil {
				t.Error(err)
			}
			j.size()
		}
	}()
	wg.Wait()
	<-rotations
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	next := make(map[string]int)
	_, _, err := replayJournals(dir, quiet, epoch, func(key, rec string, _ bool) error {
		if rec != fmt.Sprint(next[key]) {
			return fmt.Errorf("writer %s: %s comes in place of %d", key, rec, next[key])
		}
		next[key]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		if next[fmt.Sprint(w)] != each {
			t.Errorf("%d of %d groups of writer %d are there", next[fmt.Sprint(w)], each, w)
		}
	}
}

// TestJournalKeepsNoValues: what is committed is on disk, and in the tables; the journal need not hold it
// once more.
func TestJournalKeepsNoValues(t *testing.T) {
	j := mustOpenJournal(t, t.TempDir(), 1, 1, No, nil)
	group := appendSet(nil, "1:a", strings.Repeat("x", 100<<10))
	before := liveHeap()
	const commits = 300
	for range commits {
		if err := j.wait(j.append(group)); err != nil {
			t.Fatal(err)
		}
	}
	if held, written := liveHeap()-before, int64(commits*len(group)); held > written/5 {
		t.Errorf("%d bytes are held after %d were committed", held, written)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 50} {
		b.Run(fmt.Sprint(writers, " writers"), func(b *testing.B) {
			j, err := openJournal(b.TempDir(), 1, 1, EverySec, quiet)
			if err != nil {
				b.Fatal(err)
			}
			defer j.close()
			group := appendSet(nil, "12:order-123456", strings.Repeat("x", 340))
			b.ReportAllocs()
			b.SetParallelism(writers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := j.wait(j.append(group)); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(j.commits.Load()), "groups/commit")
		})
	}
}
