package keyspace

import (
	"bytes"
	"path/filepath"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/journal"

	"github.com/rs/zerolog"
)

// endsInZeros reports whether a file of the journal in a folder ends in zeros.
func endsInZeros(t *testing.T, dir string) bool {
	t.Helper()
	files, err := journal.Files(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if content := aoftest.Read(t, f.Path); content[len(content)-1] == 0 {
			return true
		}
	}
	return false
}

// After a kill the journal with its preallocated zeros is whole: neither a start nor the tools find a torn end.
func TestPreallocatedZerosAfterAKill(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	o.put("0", "b", `{"n":2}`, expiry.Inherit)
	state := o.dump()
	killed := t.TempDir()
	copyFolder(t, o.opt.Dir, killed)
	if !endsInZeros(t, killed) {
		t.Fatal("nothing is preallocated")
	}
	if err := holds(t, killed, state); err != nil { // inspects it too
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
	if found, _ := filepath.Glob(filepath.Join(again, "*"+aof.TornSuffix+"*")); len(found) > 0 || log.Len() > 0 {
		t.Errorf("a start makes %v and logs\n%s", found, log.String())
	}
}

// A backup has no preallocated zeros.
func TestPreallocatedZerosAreNotInABackup(t *testing.T) {
	o := open(t, func(opt *Options) { opt.Partitions, opt.Fsync = 3, Always })
	o.put("0", "a", `{"n":1}`, expiry.Inherit)
	if !endsInZeros(t, o.Dir()) {
		t.Fatal("nothing is preallocated")
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := o.Backup(path); err != nil {
		t.Fatal(err)
	}
	if endsInZeros(t, path) {
		t.Error("a journal in the backup ends in zeros")
	}
	if err := holds(t, path, o.dump()); err != nil {
		t.Error(err)
	}
}
