package keyspace

import (
	"maps"
	"testing"

	"mayfly/expiry/clock"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// A kill leaves names in the folder that are not on disk. The start after it relies on them, so it brings
// them there before names of its own. The server is killed before each fsync of a life, and the power is cut
// before each fsync of the start after it. Any of the new names may be left.
func TestPowerCutAfterAKill(t *testing.T) {
	t.Parallel()
	kills, images := 0, 0
	disk := vfstest.NewMemory()
	opt := Options{FS: disk, Dir: vfstest.Dir, preallocate: 20_000, Partitions: 1, Fsync: Always, Clock: clock.NewManual(epoch), NoPurge: true}
	disk.BeforeSync = func(d vfstest.Disk, path string) error {
		if path != vfstest.Dir { // names change in the foreground, where nothing waits for a commit
			return nil
		}
		kills++
		after, killed := opt, d.Clone()
		var left []*vfstest.Memory
		killed.BeforeSync = func(d vfstest.Disk, _ string) error {
			left = append(left, d.Names(vfstest.Dir)...)
			return nil
		}
		after.FS = killed
		ks, err := Open(after)
		if err != nil {
			t.Errorf("kill %d: %v", kills, err)
			return nil
		}
		killed.Look(func(vfstest.Disk) { killed.BeforeSync = nil })
		want := readAll(ks)
		drill.Report(t, ks.Close())
		for cut, image := range left {
			images++
			after.FS = image
			names := namesIn(t, image, vfstest.Dir)
			ks, err := Open(after)
			if err != nil {
				t.Errorf("kill %d, image %d, with %v: %v", kills, cut, names, err)
				continue
			}
			if got := readAll(ks); !maps.Equal(got, want) {
				t.Errorf("kill %d, image %d: %v was there, %v is left", kills, cut, want, got)
			}
			drill.Report(t, ks.Close())
		}
		return nil
	}
	if acknowledged := liveAndFail(opt); len(acknowledged) == 0 {
		t.Error("nothing was written")
	}
	t.Logf("%d kills, %d images", kills, images)
}
