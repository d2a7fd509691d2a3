package keyspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/repair"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// A start that cuts off ends removes the oldest of the earlier ones.
func TestStartsBoundTornEnds(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "a", "{}", expiry.Inherit)
	o.stop()
	var log bytes.Buffer
	o.opt.Log = zerolog.New(zerolog.SyncWriter(&log))
	const kept = 300 // by package datadir
	for n := range kept + 3 {
		name := fmt.Sprintf("%s.torn-%d", datadir.PartitionName(0), epoch-1000+n)
		drill.Check(t, writeFile(o.opt.FS, filepath.Join(o.opt.Dir, name), []byte("x")))
	}
	o.start()
	ends := slices.DeleteFunc(namesIn(t, o.opt.FS, o.opt.Dir), func(name string) bool { return !strings.Contains(name, aof.TornSuffix) })
	if len(ends) != kept || !strings.Contains(log.String(), "removing an end") {
		t.Errorf("%d are left: %s", len(ends), &log)
	}
	o.opt.Log = zerolog.Nop()
}

// Half a backup is not mistaken for a data folder, neither by a server nor by the tools.
func TestUnfinishedFoldersAreNotUsed(t *testing.T) {
	t.Parallel()
	l := newLived(t, 11)
	drill.Check(t, writeFile(l.fs, filepath.Join(l.dir, "UNFINISHED"), nil))
	_, started := starts(t, l.fs, l.dir)
	_, inspected := repair.Inspect(l.fs, l.dir)
	for what, err := range map[string]error{"a start": started, "a check": inspected} {
		if err == nil || !strings.Contains(err.Error(), "unfinished") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The next backup to the same path removes the remains of a crash, but nothing else.
func TestBackupBesideExistingFiles(t *testing.T) {
	t.Parallel()
	o := open(t)
	want := o.put("0", "a", "{}", expiry.Inherit)
	for _, test := range []struct {
		left    string
		refused bool
	}{{datadir.CatalogueName, false}, {"thesis.txt", true}} {
		path := filepath.Join(newDir(o.opt.FS), "backup")
		part := path + ".part"
		drill.Check(t, o.opt.FS.Mkdir(part, 0o700))
		for _, name := range []string{"UNFINISHED", test.left} {
			drill.Check(t, writeFile(o.opt.FS, filepath.Join(part, name), []byte("left")))
		}
		before := fingerprint(t, o.opt.FS, part)
		err := o.Backup(path)
		if test.refused {
			if err == nil || fingerprint(t, o.opt.FS, part) != before {
				t.Errorf("beside %s: %v", test.left, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("beside %s: %v", test.left, err)
		}
		if _, err := o.opt.FS.Lstat(part); !os.IsNotExist(err) {
			t.Errorf("beside %s: %v", test.left, err)
		}
		b := &opened{t: t, clock: o.clock, opt: Options{FS: o.opt.FS, Dir: path, Clock: o.clock, NoPurge: true}}
		b.start()
		if items := b.dump(); len(items) != 1 || items[place{"0", "a"}] != want {
			t.Errorf("beside %s the backup holds %v", test.left, items)
		}
		b.stop()
	}
}
