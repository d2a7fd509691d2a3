package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/deaths"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// TestCrashesLogEachDeathOnce: the server is killed, or the power is cut, at any fsync beside burials,
// deletes, checkpoints and compactions. Each item whose write was committed then lives or is logged, once.
// This holds with the policy Always.
func TestCrashesLogEachDeathOnce(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	manual := clock.NewManual(epoch)
	disk := vfstest.NewMemory()
	type cut struct {
		image     *vfstest.Memory
		committed int
	}
	var cuts []cut
	committed, logged, deleted := 0, false, 0
	s := anHour
	s.Deletes = true
	disk.BeforeSync = func(d vfstest.Disk, _ string) error {
		if logged && r.IntN(3) == 0 {
			images := []*vfstest.Memory{d.Clone(), d.Least(), d.Some(r), d.All()}
			cuts = append(cuts, cut{images[r.IntN(len(images))], committed})
		}
		return nil
	}
	ks, err := Open(Options{FS: disk, Dir: vfstest.Dir, preallocate: 20_000, Partitions: 3, Fsync: Always, Clock: manual, NoPurge: true, noCheckpoints: true})
	drill.Check(t, err)
	var tx Tx
	ks.BeginAll(&tx)
	drill.Check(t, tx.SetLog(tx.CreateContainer("jobs", 10, expiry.Strict), s))
	drill.Check(t, ks.Wait(tx.Close()))
	logged = true
	for i := range 300 {
		id := fmt.Sprint("id", i)
		ks.BeginKey(&tx, id)
		tx.Put(tx.Container("jobs"), id, Document, `{}`, expiry.Inherit)
		drill.Check(t, ks.Wait(tx.Close()))
		committed = i + 1
		if i%7 == 6 {
			id := fmt.Sprint("id", i-r.IntN(7))
			ks.BeginKey(&tx, id)
			if tx.Delete(tx.Container("jobs"), id) {
				deleted++
			}
			drill.Check(t, ks.Wait(tx.Close()))
		}
		manual.Advance(200 * time.Millisecond)
		if i%10 == 9 {
			ks.PurgeOnce()
			drill.Check(t, ks.CommitNow(ks.journal.Last()))
		}
		if i%40 == 39 {
			drill.Check(t, ks.Save())
			drill.Check(t, ks.storage.CompactAll())
		}
	}
	logged = false
	drill.Check(t, ks.Close())
	for n, c := range cuts {
		opt := Options{FS: c.image, Dir: vfstest.Dir, Clock: clock.NewManual(epoch), NoPurge: true}
		ks, err := Open(opt)
		if err != nil {
			t.Fatalf("cut %d: %v", n, err)
		}
		ks.purge.Drain(func() bool { return false })
		drill.Check(t, ks.Check())
		found, etags := map[string]int{}, map[uint64]bool{}
		ks.BeginNone(&tx)
		jobs := tx.Container("jobs")
		tx.Deaths(jobs).Range(streamid.ID{}, streamid.Max, false, func(e deaths.Entry) bool {
			if etags[e.Etag] {
				t.Errorf("cut %d: etag %d is logged twice", n, e.Etag)
			}
			etags[e.Etag] = true
			found[e.Item]++
			return true
		})
		tx.Scan(jobs, 0, 1<<30, func(id string, _ Item) { found[id]++ })
		if s, _ := tx.Deaths(jobs).State(); s.Added != int64(len(etags)) || s.Length != s.Added {
			t.Errorf("cut %d: %d entries, the state is %+v", n, len(etags), s)
		}
		tx.Close()
		for i := range c.committed {
			if id := fmt.Sprint("id", i); found[id] != 1 {
				t.Errorf("cut %d of %d: %s is there %d times", n, len(cuts), id, found[id])
			}
		}
		drill.Check(t, ks.Close())
	}
	if t.Logf("%d cuts, %d deleted", len(cuts), deleted); len(cuts) < 50 || deleted < 20 {
		t.Error("that tests little")
	}
}
