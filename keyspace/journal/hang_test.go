package journal

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// TestHangs has a disk hang in each step that commits wait for, and in those that they do not wait for. Only
// the former tell.
func TestHangs(t *testing.T) {
	t.Parallel()
	put := func(j *Journal) error { return j.Wait(j.Append(set("1:a", "2"))) }
	rotate := func(j *Journal) error {
		_, err := j.Rotate()
		return err
	}
	for _, tt := range []struct {
		name   string
		policy Policy
		write  bool // a write hangs, else an fsync
		after  int  // so many others
		do     func(*Journal) error
		around bool // the first file is made by Begin
		tells  bool
	}{
		{name: "the write of a commit", write: true, do: put, tells: true},
		{name: "the fsync of a commit", policy: Always, do: put, tells: true},
		{name: "the end of a file", policy: Always, after: 1, do: rotate, tells: true},
		{name: "the first file", write: true, do: (*Journal).Begin, around: true, tells: true},
		{name: "a change of the policy", policy: No, do: func(j *Journal) error { j.SetPolicy(Always); return nil }, tells: true},
		{name: "the next file", write: true, do: rotate},
		{name: "the fsync of each second", policy: No, do: (*Journal).Sync},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			disk, reached, goOn := vfstest.New(), make(chan struct{}), make(chan struct{})
			hang := sync.OnceFunc(func() { close(reached); <-goOn })
			var armed atomic.Bool
			var met atomic.Int64
			hook := func() error {
				if armed.Load() && met.Add(1) > int64(tt.after) {
					hang()
				}
				return nil
			}
			if tt.write {
				disk.OnWrite = func(vfs.File, []byte, int64) error { return hook() }
			} else {
				disk.OnSync = func(vfs.File) error { return hook() }
			}
			opt := Options{FS: disk, Dir: vfstest.Dir, First: 1, Policy: tt.policy, Log: zerolog.Nop()}
			if tt.around {
				opt.Around = func(makeFile func() error) error { return makeFile() }
			}
			j, err := Open(opt)
			drill.Check(t, err)
			if !tt.around {
				j.put(t, "1:a", "1")
			}
			armed.Store(true)
			done := make(chan error, 1)
			go func() { done <- tt.do(j) }()
			<-reached
			if tells := j.step.Hangs(1<<62, time.Second); tells != tt.tells {
				t.Errorf("while it hangs, the journal says %t, want %t", tells, tt.tells)
			}
			close(goOn)
			drill.Report(t, <-done, j.Close())
			if j.step.Hangs(1<<62, time.Second) {
				t.Error("nothing hangs, but the journal says so")
			}
		})
	}
}
