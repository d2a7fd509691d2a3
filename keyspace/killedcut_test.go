package keyspace

import (
	"maps"
	"slices"
	"testing"

	"mayfly/expiry/clock"
)

// subsets returns all images that differ by the changes of names of which a power cut leaves some. The files have
// only what was forced to disk.
func (d *recordedDisk) subsets() (images []folderImage) {
	changes := d.changes()
	for left := range 1 << len(changes) {
		image := d.least()
		for n, changed := range changes {
			if left>>n&1 == 0 {
				continue
			}
			for _, name := range changed {
				if f := d.names[name]; f != nil {
					image[name] = f.onDisk
				} else {
					delete(image, name)
				}
			}
		}
		images = append(images, image)
	}
	return images
}

// A kill leaves names in the folder that are not on disk. The start after it relies on them, so it brings them there
// before names of its own. The server is killed before each fsync of a life, and the power is cut before each fsync of
// the start after it. Any of the new names may be left.
func TestPowerCutAfterAKill(t *testing.T) {
	recordFsyncs(t)
	opt := Options{Dir: t.TempDir(), Partitions: 1, Fsync: Always, Clock: clock.NewManual(epoch), NoPurge: true}
	kills, images := 0, 0
	var disk *recordedDisk
	disk = recordDisk(t, opt.Dir, func() {
		if disk.syncs != nil { // names change in the foreground, where nothing waits for a commit
			return
		}
		kills++
		after := opt
		after.Dir = t.TempDir()
		disk.now().write(t, after.Dir)
		var cuts []folderImage
		var started *recordedDisk
		started = recordDisk(t, after.Dir, func() { cuts = append(cuts, started.subsets()...) })
		started.isBehind(disk, nil, nil)
		ks, err := Open(after)
		if err != nil {
			t.Errorf("kill %d: %v", kills, err)
			return
		}
		started.mu.Lock()
		left := cuts
		started.mu.Unlock()
		want := readAll(ks)
		if err := ks.Close(); err != nil {
			t.Error(err)
		}
		started.release()
		for cut, image := range left {
			images++
			after.Dir = t.TempDir()
			image.write(t, after.Dir)
			ks, err := Open(after)
			if err != nil {
				t.Errorf("kill %d, image %d, with %v: %v", kills, cut, slices.Sorted(maps.Keys(image)), err)
				continue
			}
			if got := readAll(ks); !maps.Equal(got, want) {
				t.Errorf("kill %d, image %d: %v was there, %v is left", kills, cut, want, got)
			}
			if err := ks.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	defer disk.release()
	if acknowledged := liveAndFail(opt); len(acknowledged) == 0 {
		t.Error("nothing was written")
	}
	t.Logf("%d kills, %d images", kills, images)
}
