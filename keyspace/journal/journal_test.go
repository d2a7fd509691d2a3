package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

func TestJournalReplaysInOrderAcrossFiles(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 7, 41, EverySec)
	if lsn := j.put(t, "1:a", "1"); lsn != 41 {
		t.Errorf("the first lsn is %d", lsn)
	}
	pending := j.Append(del("1:a"))
	if g, err := j.Rotate(); err != nil || g != 8 {
		t.Fatalf("rotate returns %d, %v", g, err)
	}
	if j.Committed() < pending {
		t.Error("rotate left something behind")
	}
	j.put(t, "1:b", "2")
	if g, err := j.Rotate(); err != nil || g != 9 {
		t.Fatalf("rotate returns %d, %v", g, err)
	}
	if g, err := j.Rotate(); err != nil || g != 9 {
		t.Fatalf("with nothing written rotate returns %d, %v", g, err)
	}
	last := j.Append(set("1:c", "3"))
	if err := j.Close(); err != nil { // commits what is pending
		t.Fatal(err)
	}
	checkReplayed(t, disk, "1:a=1", "-1:a", "1:b=2", "1:c=3")
	generation, lsn, err := replayFolder(disk, func(aof.Op) error { return nil })
	if err != nil || generation != 9 || lsn != last {
		t.Errorf("generation %d, lsn %d, %v; want 9, %d", generation, lsn, err, last)
	}
}

func TestJournalRemovesWholeGenerations(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	sizes := []int64{j.Size()}
	for n := range 3 {
		j.put(t, "1:a", strings.Repeat("x", n))
		sizes = append(sizes, j.Size())
		if _, err := j.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	drill.Check(t, j.Remove(3))
	if want := sizes[3] - sizes[2] + headSize; j.Size() != want {
		t.Errorf("the size is %d, not %d", j.Size(), want)
	}
	checkReplayed(t, disk, "1:a=xx")
	drill.Check(t, j.Remove(100))
	j.put(t, "1:b", "the newest stays") // removed, it would be written in vain
	drill.Check(t, j.Close())
	checkReplayed(t, disk, "1:b=the newest stays")
}

func TestNoJournalReplaysToNothing(t *testing.T) {
	t.Parallel()
	if generation, lsn, err := replayFolder(vfstest.New(), nil); generation != 0 || lsn != 0 || err != nil {
		t.Errorf("generation %d, lsn %d, %v", generation, lsn, err)
	}
}

func TestGroupCommitSharesCommitsAndFsyncs(t *testing.T) {
	t.Parallel()
	disk, reached, open := gate(nil)
	j := mustOpen(t, disk, 1, 1, Always)
	defer j.Close()
	var wg sync.WaitGroup
	errs := make([]error, 51)
	wg.Go(func() { errs[0] = j.Wait(j.Append(del("1:first"))) })
	<-reached // the first is being written: the others come too late for its commit
	waiting := make(chan struct{}, 50)
	for n := range 50 {
		lsn := j.Append(del("1:a"))
		if lsn != 2 {
			t.Fatalf("lsn %d", lsn)
		}
		wg.Go(func() {
			waiting <- struct{}{}
			errs[n+1] = j.Wait(lsn)
		})
	}
	for range 50 {
		<-waiting
	}
	close(open)
	wg.Wait()
	drill.Check(t, errs...)
	if j.Commits() != 2 || j.Fsyncs() != 2 {
		t.Errorf("51 changes took %d commits and %d fsyncs", j.Commits(), j.Fsyncs())
	}
}

func TestWaitForAnUnknownLSN(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, vfstest.New(), 1, 1, EverySec)
	defer j.Close()
	drill.Report(t, j.Wait(0))
	if j.Wait(1) == nil {
		t.Error("an unknown LSN is committed")
	}
	j.put(t, "1:a", "still works")
}

func TestJournalForcesToDiskAsThePolicySays(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, No)
	defer j.Close()
	disk.Syncs.Store(0)
	j.put(t, "1:a", "1")
	if disk.Syncs.Load() != 0 {
		t.Error("policy no forces to disk")
	}
	j.SetPolicy(Always)
	if disk.Syncs.Load() != 1 {
		t.Error("earlier commits are not on disk after a change to always")
	}
	j.put(t, "1:a", "2")
	if disk.Syncs.Load() != 2 {
		t.Error("policy always does not force to disk")
	}
	if err := j.Sync(); err != nil || disk.Syncs.Load() != 2 {
		t.Error("sync forces commits to disk twice")
	}
}

func TestFailedBatchIsKept(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	j.put(t, "1:a", "1")
	disk.FailWrites.Store(true)
	first := j.Append(set("1:b", "2"))
	if err := j.Wait(first); !errors.Is(err, vfstest.ErrDisk) {
		t.Fatalf("wait returns %v", err)
	}
	if !errors.Is(j.Err(), vfstest.ErrDisk) {
		t.Errorf("err returns %v", j.Err())
	}
	second := j.Append(set("1:c", "3"))
	if err := j.Wait(second); !errors.Is(err, vfstest.ErrDisk) || second == first {
		t.Errorf("lsn %d after %d: %v", second, first, err)
	}
	disk.FailWrites.Store(false)
	if err := j.Wait(second); err != nil || j.Err() != nil || j.Committed() != second {
		t.Errorf("after the disk works again: %v, %v", err, j.Err())
	}
	drill.Check(t, j.Close())
	checkReplayed(t, disk, "1:a=1", "1:b=2", "1:c=3")
}

func TestAllWaitersGetTheErrorOfAWrite(t *testing.T) {
	t.Parallel()
	disk, reached, open := gate(vfstest.ErrDisk)
	j := mustOpen(t, disk, 1, 1, EverySec)
	errs := make(chan error)
	go func() { errs <- j.Wait(j.Append(del("1:a"))) }()
	<-reached
	for range 10 {
		lsn := j.Append(del("1:b"))
		go func() { errs <- j.Wait(lsn) }()
	}
	close(open)
	for range 11 {
		if err := <-errs; !errors.Is(err, vfstest.ErrDisk) {
			t.Errorf("one gets %v", err)
		}
	}
	if err := j.Close(); !errors.Is(err, vfstest.ErrDisk) {
		t.Errorf("close hides the loss: %v", err)
	}
	if err := j.Wait(2); err != errClosed {
		t.Errorf("after close: %v", err)
	}
}

func TestWritingResumesByItself(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, EverySec)
	j.put(t, "1:a", aoftest.MuchText)
	disk.Most.Store(j.Size() + 100) // so that a part of the next commit is written
	lsn := j.Append(set("1:b", strings.Repeat("x", 1000)))
	if err := j.Wait(lsn); err == nil {
		t.Fatal("a full disk goes unseen")
	}
	disk.Most.Store(0)
	for j.Err() != nil { // no goroutine waits or writes any more
		runtime.Gosched()
	}
	if j.Committed() != lsn {
		t.Error("writing works, but the batch is not committed")
	}
	drill.Check(t, j.Close())
	checkReplayed(t, disk, "1:a="+aoftest.MuchText, "1:b="+strings.Repeat("x", 1000))
}

func TestFailedFsyncIsFinal(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{Always, EverySec} {
		disk := vfstest.New()
		j := mustOpen(t, disk, 1, 1, policy)
		j.put(t, "1:a", "1")
		disk.FailSyncs.Store(true)
		lsn := j.Append(del("1:a"))
		if err := j.Wait(lsn); (policy == Always) != errors.Is(err, vfstest.ErrDisk) {
			t.Errorf("policy %d: wait returns %v", policy, err)
		}
		if err := j.Sync(); !errors.Is(err, vfstest.ErrDisk) {
			t.Errorf("policy %d: sync returns %v", policy, err)
		}
		disk.FailSyncs.Store(false)
		syncs, writes := disk.Syncs.Load(), disk.Writes.Load()
		err := j.Wait(j.Append(del("1:b")))
		_, rotated := j.Rotate()
		for _, err := range []error{err, j.Err(), j.Sync(), rotated, j.CommitAll(), j.Close()} {
			if !errors.Is(err, vfstest.ErrDisk) {
				t.Errorf("policy %d: a failed fsync is forgotten: %v", policy, err)
			}
		}
		if disk.Syncs.Load() != syncs || disk.Writes.Load() != writes {
			t.Errorf("policy %d: the disk is tried again", policy)
		}
		if j.Committed() >= lsn && policy == Always {
			t.Error("a commit is not on disk but committed")
		}
	}
}

// TestWaitSynced forces a commit to disk at once: by one fsync, however many wait. Who waits no longer
// leaves, also while the disk hangs.
func TestWaitSynced(t *testing.T) {
	t.Parallel()
	disk, reached, goOn := vfstest.New(), make(chan struct{}), make(chan struct{})
	j := mustOpen(t, disk, 1, 1, No)
	lsn := j.Append(set("1:a", "1"))
	if err := j.WaitSynced(t.Context(), lsn); err == nil {
		t.Error("what is not committed is forced to disk")
	}
	drill.Check(t, j.Wait(lsn))
	hang := sync.OnceFunc(func() { close(reached); <-goOn })
	disk.OnSync = func(vfs.File) error { hang(); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- j.WaitSynced(ctx, lsn) }()
	<-reached
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left gets %v", err)
	}
	syncs := j.Fsyncs()
	var group errgroup.Group
	for range 50 {
		group.Go(func() error { return j.WaitSynced(t.Context(), lsn) })
	}
	close(goOn)
	drill.Check(t, group.Wait())
	if got := j.Fsyncs() - syncs; got != 1 || j.Synced() < lsn {
		t.Errorf("%d fsyncs, and %d of %d is on disk", got, j.Synced(), lsn)
	}
	disk.FailSyncs.Store(true)
	lsn = j.Append(set("1:a", "2"))
	drill.Check(t, j.Wait(lsn))
	if err := j.WaitSynced(t.Context(), lsn); !errors.Is(err, vfstest.ErrDisk) {
		t.Errorf("on a disk that fails: %v", err)
	}
	if err := j.Close(); !errors.Is(err, vfstest.ErrDisk) {
		t.Errorf("close: %v", err)
	}
}

// While a background fsync is slow, commits wait for its end: a power cut must not take more than about two
// seconds.
func TestCommitsWaitForASlowFsync(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []string
	note := func(s string) { mu.Lock(); defer mu.Unlock(); events = append(events, s) }
	disk := vfstest.New()
	disk.OnWrite = func(_ vfs.File, _ []byte, at int64) error {
		if at > 0 { // not the head of a file
			note("write")
		}
		return nil
	}
	j := mustOpen(t, disk, 1, 1, EverySec)
	defer j.Close()
	j.syncMu.Lock()
	j.slow.Store(true)
	done := make(chan error)
	go func() { done <- j.Wait(j.Append(del("1:a"))) }()
	for range 1000 {
		runtime.Gosched()
	}
	note("fsync ends")
	j.syncMu.Unlock()
	drill.Check(t, <-done)
	if !slices.Equal(events, []string{"fsync ends", "write"}) {
		t.Errorf("in order: %v", events)
	}
	if j.slow.Load() {
		t.Error("it stays slow for ever")
	}
}

// Commits do not wait for a background fsync unless it takes longer than slowSync.
func TestCommitsContinueDuringABackgroundFsync(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // it waits until the disk counts as slow
	reached, open, ended := make(chan struct{}), make(chan struct{}), make(chan int64, 1)
	var once sync.Once
	var opened atomic.Bool
	disk := vfstest.New()
	disk.OnSync = func(vfs.File) error {
		if opened.Load() {
			once.Do(func() { close(reached); <-open; ended <- disk.Writes.Load() })
		}
		return nil
	}
	j := mustOpen(t, disk, 1, 1, EverySec)
	opened.Store(true)
	defer j.Close()
	j.put(t, "1:a", "before")
	<-reached
	for n := range 100 {
		j.put(t, "1:a", fmt.Sprint(n)) // returns
	}
	if j.synced.Load() != 0 {
		t.Error("the fsync has not ended, but counts")
	}
	drill.Await(t, "the disk to count as slow", j.slow.Load)
	written := disk.Writes.Load()
	done := make(chan error)
	go func() { done <- j.Wait(j.Append(del("1:a"))) }()
	for range 1000 {
		runtime.Gosched()
	}
	close(open)
	drill.Report(t, <-done)
	if now := <-ended; now != written {
		t.Error("a commit is written while the disk is slow")
	}
	if j.synced.Load() == 0 {
		t.Error("the commit did not wait for the end of the fsync")
	}
}

// Under writes, rotations and fsyncs no commit that Wait has confirmed is lost or out of order.
func TestJournalUnderLoad(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, Always)
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				lsn := j.Append(set(fmt.Sprint(w), fmt.Sprint(n)))
				if n%3 == 0 {
					if err := j.Wait(lsn); err != nil || j.Committed() < lsn {
						t.Errorf("wait returns %v", err)
					}
				}
			}
		})
	}
	rotations := make(chan struct{})
	go func() {
		defer close(rotations)
		for n := range 20 {
			if _, err := j.Rotate(); err != nil {
				t.Error(err)
			}
			if n%5 == 0 {
				j.SetPolicy([]Policy{Always, EverySec}[n%2])
			}
			drill.Report(t, j.Sync())
			drill.Report(t, j.CommitAll())
			j.Size()
		}
	}()
	wg.Wait()
	<-rotations
	drill.Check(t, j.Close())
	next := make(map[string]int)
	_, _, err := replayFolder(disk, func(o aof.Op) error {
		key := strings.Clone(o.Key)
		if want := aoftest.Rec(key, fmt.Sprint(next[key])); o.Rec != want {
			return fmt.Errorf("writer %s: %s comes in place of %s", key, o.Rec, want)
		}
		next[key]++
		return nil
	})
	drill.Check(t, err)
	for w := range writers {
		if next[fmt.Sprint(w)] != each {
			t.Errorf("%d of %d changes of writer %d are there", next[fmt.Sprint(w)], each, w)
		}
	}
}

// Commits are on disk and in the tables. The journal keeps no copy in memory.
func TestJournalKeepsNoValues(t *testing.T) {
	j, err := Open(Options{FS: vfs.OS, Dir: t.TempDir(), Policy: No, Log: zerolog.Nop()})
	drill.Check(t, err)
	const bodySize = 100 << 10 // bytes
	large := set("1:a", strings.Repeat("x", bodySize))
	before := aoftest.LiveHeap()
	const commits = 300
	for range commits {
		drill.Check(t, j.Wait(j.Append(large)))
	}
	if held, written := aoftest.LiveHeap()-before, int64(commits*bodySize); held > written/5 {
		t.Errorf("%d bytes are held after %d were committed", held, written)
	}
	drill.Check(t, j.Close())
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 50} {
		b.Run(fmt.Sprint(writers, " writers"), func(b *testing.B) {
			j, err := Open(Options{FS: vfs.OS, Dir: b.TempDir(), Policy: EverySec, Log: zerolog.Nop()})
			drill.Check(b, err)
			defer j.Close()
			small := set("12:order-123456", strings.Repeat("x", 340))
			b.ReportAllocs()
			b.SetParallelism(writers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					drill.Report(b, j.Wait(j.Append(small)))
				}
			})
			b.ReportMetric(float64(b.N)/float64(j.Commits()), "changes/commit")
		})
	}
}
