package keyspace

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// endsInZeros reports whether a file of the journal in a folder ends in zeros.
func endsInZeros(t *testing.T, fsys vfs.FS, dir string) bool {
	t.Helper()
	files, err := journal.Files(fsys, dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if content := vfstest.Read(t, fsys, f.Path); content[len(content)-1] == 0 {
			return true
		}
	}
	return false
}

// After a kill the journal with its preallocated zeros is whole: neither a start nor the tools find a torn
// end.
func TestPreallocatedZerosAfterAKill(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	o.put("0", "b", `{"n":2}`, expiry.Inherit)
	state := o.dump()
	killed := newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.opt.Dir, killed)
	if !endsInZeros(t, o.opt.FS, killed) {
		t.Fatal("nothing is preallocated")
	}
	if err := holds(t, o.opt.FS, killed, state); err != nil { // inspects it too
		t.Error(err)
	}

	again := newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.opt.Dir, again)
	var log bytes.Buffer
	ks, err := Open(Options{FS: o.opt.FS, Dir: again, Partitions: 3, Clock: o.clock, NoPurge: true, Log: zerolog.New(&log).Level(zerolog.WarnLevel)})
	drill.Check(t, err)
	drill.Check(t, ks.Close())
	if found := namesIn(t, o.opt.FS, again); strings.Contains(strings.Join(found, " "), aof.TornSuffix) || log.Len() > 0 {
		t.Errorf("a start makes %v and logs\n%s", found, log.String())
	}
}

// A backup has no preallocated zeros.
func TestPreallocatedZerosAreNotInABackup(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	if !endsInZeros(t, o.opt.FS, o.Dir()) {
		t.Fatal("nothing is preallocated")
	}
	path := filepath.Join(newDir(o.opt.FS), "backup")
	drill.Check(t, o.Backup(path))
	if endsInZeros(t, o.opt.FS, path) {
		t.Error("a journal in the backup ends in zeros")
	}
	drill.Report(t, holds(t, o.opt.FS, path, o.dump()))
}
