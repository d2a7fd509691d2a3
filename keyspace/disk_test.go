package keyspace

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// folderBytes returns the bytes of the files of a folder; a file with two names counts once.
func folderBytes(t *testing.T, fsys vfs.FS, dir string) (bytes int64) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	drill.Check(t, err)
	var files []os.FileInfo
next:
	for _, e := range entries {
		fi, err := e.Info()
		drill.Check(t, err)
		for _, other := range files {
			if vfs.SameFile(fi, other) {
				continue next
			}
		}
		files = append(files, fi)
		bytes += fi.Size()
	}
	return bytes
}

// TestFolderStaysInProportion: under a steady workload of dying documents the data folder stays in
// proportion. It has less than three times the bytes of the living ids and bodies, at every fsync, during
// checkpoints and compactions too. All sizes and limits are a fortieth of a server's.
func TestFolderStaysInProportion(t *testing.T) {
	t.Parallel()
	for _, living := range drill.Pick([]int{32 << 20}, []int{60 << 20}, []int{32 << 20, 60 << 20, 120 << 20}) {
		t.Run(fmt.Sprint(living>>20, " MiB"), func(t *testing.T) {
			testFolderStaysInProportion(t, living, 40)
		})
	}
}

func testFolderStaysInProportion(t *testing.T, living, scale int) {
	const (
		ttl      = 15 // seconds
		step     = 100 * time.Millisecond
		steps    = int(ttl * time.Second / step) // of a generation
		docBytes = 300
	)
	var worst, looks atomic.Int64
	var look func()
	disk := vfstest.New()
	disk.OnSync = func(vfs.File) error {
		if look != nil {
			look()
		}
		return nil
	}
	o := open(t, func(opt *Options) { opt.FS, opt.Partitions, opt.Fsync = disk, 8, No })
	// The test does by hand what happens in the background.
	o.stopBackground()
	o.SetCompaction(Compaction{Percentage: DefaultCompaction.Percentage, MinSize: DefaultCompaction.MinSize / int64(scale)})
	o.storage.Options.Least /= int64(scale)
	o.storage.Options.Pace = 0
	o.storage.LimitJournal()

	each := living / scale / docBytes / steps
	living = each * steps * docBytes
	n := 0
	for i := range 7 * steps {
		if i == 2*steps { // as many die as are written
			look = func() {
				looks.Add(1)
				worst.Store(max(worst.Load(), folderBytes(t, o.opt.FS, o.Dir())))
			}
		}
		for range each {
			n++
			id := fmt.Sprintf("document-%08d", n)
			var tx Tx
			o.BeginKey(&tx, id)
			tx.Put(tx.Container("0"), id, Document, `{"fill":"`+strings.Repeat("x", docBytes-len(id)-11)+`"}`, expiry.ExpireAt(tx.Now(), ttl))
			o.commit(&tx)
		}
		o.clock.Advance(step)
		o.PurgeOnce()
		if look != nil {
			look()
		}
		if !o.storage.Due(false) {
			continue
		}
		drill.Check(t, o.storage.Checkpoint())
		o.storage.CompactWasteful()
	}
	look = nil
	s := o.Stats()
	share := float64(worst.Load()) / float64(living)
	t.Logf("%.2f times what lives in %d looks, %d checkpoints, %d compactions", share, looks.Load(), s.Checkpoints, s.Compactions)
	if share >= 3 || s.Compactions == 0 || s.LastCompactErr != "" {
		t.Errorf("the folder grew to %.2f times what lives; %d compactions %s", share, s.Compactions, s.LastCompactErr)
	}
}
