package keyspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry"
)

// leave makes files as a making that was interrupted would leave them.
func leave(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("left by "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What a crash leaves of a backup is in nobody's way: the next to the same path clears it away.
func TestBackupAfterOneThatACrashEnded(t *testing.T) {
	for _, names := range [][]string{
		{},
		{unfinishedName},
		{unfinishedName, formatName, lockName, catalogueName, partitionFile(0), partitionFile(3), journalFile(7), "partition-001.db.tmp"},
	} {
		o := open(t)
		want := o.put("0", "a", "{}", expiry.Inherit)
		path := filepath.Join(t.TempDir(), "backup")
		leave(t, path+".part", names...)
		if err := o.Backup(path); err != nil {
			t.Fatalf("beside %q: %v", names, err)
		}
		if _, err := os.Lstat(path + ".part"); !os.IsNotExist(err) {
			t.Errorf("beside %q: %v", names, err)
		}
		b := &opened{t: t, clock: o.clock, opt: Options{Dir: path, Clock: o.clock, NoPurge: true}}
		b.start()
		if items := b.dump(); len(items) != 1 || items[place{"0", "a"}] != want {
			t.Errorf("beside %q the backup holds %v", names, items)
		}
		b.stop()
	}
}

// What may be somebody else's is left alone, whatever it is called.
func TestBackupRefusesWhatIsNotItsOwn(t *testing.T) {
	for why, names := range map[string][]string{
		`it holds "thesis.txt"`:          {unfinishedName, formatName, "thesis.txt"},
		`it holds "wedding.jpg"`:         {"wedding.jpg"},
		`it has no file "UNFINISHED"`:    {formatName, catalogueName, partitionFile(0)},
		"may be a whole data folder":     {catalogueName, journalFile(1)},
		`no file "UNFINISHED" and may b`: {lockName},
	} {
		o := open(t)
		path := filepath.Join(t.TempDir(), "backup")
		leave(t, path+".part", names...)
		before := fingerprint(t, path+".part")
		if err := o.Backup(path); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("beside %q: %v, not %s", names, err, why)
		}
		if fingerprint(t, path+".part") != before {
			t.Errorf("%q has been changed", names)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("beside %q there is a backup: %v", names, err)
		}
	}
}

// Two backups to one path: the later one does not take from the earlier what it is making.
func TestBackupRefusesWhatIsBeingMade(t *testing.T) {
	o := open(t)
	path := filepath.Join(t.TempDir(), "backup")
	m, err := beginFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	leaveFile := filepath.Join(m.part, catalogueName)
	if err := os.WriteFile(leaveFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Backup(path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(leaveFile); err != nil {
		t.Error(err)
	}
	if err := m.end(os.ErrInvalid); err == nil {
		t.Error("its error is gone")
	}
	if err := o.Backup(path); err != nil {
		t.Error(err)
	}
}

// Half a backup is not mistaken for a data folder, neither by a server nor by the tools.
func TestUnfinishedFoldersAreNotUsed(t *testing.T) {
	l := newLived(t, 11)
	if err := os.WriteFile(filepath.Join(l.dir, unfinishedName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, started := starts(t, l.dir)
	_, inspected := Inspect(l.dir)
	for what, err := range map[string]error{"a start": started, "a check": inspected} {
		if err == nil || !strings.Contains(err.Error(), "did not come to its end") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
