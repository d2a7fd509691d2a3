package datadir

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// leave makes a folder as an interrupted attempt leaves it.
func leave(t *testing.T, dir string, names ...string) {
	t.Helper()
	drill.Check(t, os.Mkdir(dir, 0o700))
	for _, name := range names {
		drill.Check(t, os.WriteFile(filepath.Join(dir, name), []byte("left by "+name), 0o600))
	}
}

// contents returns the content of each file of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	drill.Check(t, err)
	all := make(map[string]string)
	for _, e := range entries {
		all[e.Name()] = string(vfstest.Read(t, vfs.OS, filepath.Join(dir, e.Name())))
	}
	return all
}

// gone checks that no file has a name.
func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func mustStage(t *testing.T, path string) *Staging {
	t.Helper()
	s, err := NewStaging(vfstest.Fast(), path)
	drill.Check(t, err)
	return s
}

// makeFolder makes a whole folder of two partitions.
func makeFolder(t *testing.T, path string) {
	t.Helper()
	s := mustStage(t, path)
	d, err := s.CreateDir(2)
	if err == nil {
		err = errors.Join(d.Close(), s.Finish())
	}
	drill.Check(t, s.Close(err))
}

func TestStagingGetsItsNameAtTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup")
	s := mustStage(t, path)
	d, err := s.CreateDir(2)
	drill.Check(t, err)
	drill.Check(t, d.Close())
	refused(t, s.Dir(), "unfinished", markName)
	gone(t, path)
	drill.Check(t, s.Finish(), s.Close(nil))
	gone(t, path+".part")
	gone(t, filepath.Join(path, markName))
	mustOpen(t, path, 2).Close()
}

func TestStagingThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup")
	s := mustStage(t, path)
	if _, err := store.Create(vfs.OS, filepath.Join(s.Dir(), CatalogueName)); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("it failed")
	if err := s.Close(failure); !errors.Is(err, failure) {
		t.Errorf("its error is gone: %v", err)
	}
	gone(t, path)
	gone(t, path+".part")
}

func TestStagingRefusesAFolderThatExists(t *testing.T) {
	t.Parallel()
	taken := t.TempDir()
	if _, err := NewStaging(vfstest.Fast(), taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that exists: %v", err)
	}
	if _, err := NewStaging(vfstest.Fast(), filepath.Join(taken, "no", "such")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder in one that does not exist: %v", err)
	}
	if left := contents(t, taken); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The next attempt at the same path removes the remains of a crash.
func TestStagingRemovesTheRemainsOfACrash(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{
		{},
		{markName},
		{markName, FormatName, FormatName + ".tmp", lockName, CatalogueName, PartitionName(0), PartitionName(3), journalName(7),
			PartitionName(1) + store.TempSuffix, PartitionName(1) + ".torn-1", "repair-report.txt"},
	} {
		path := filepath.Join(t.TempDir(), "backup")
		leave(t, path+".part", names...)
		makeFolder(t, path)
		gone(t, path+".part")
		for name, content := range contents(t, path) {
			if strings.HasPrefix(content, "left by") {
				t.Errorf("%s was left beside %q", name, names)
			}
		}
		mustOpen(t, path, 2).Close()
	}
}

// A folder of another origin stays as it is.
func TestStagingRefusesForeignFiles(t *testing.T) {
	t.Parallel()
	for why, names := range map[string][]string{
		`it holds "thesis.txt"`:          {markName, FormatName, "thesis.txt"},
		`it holds "wedding.jpg"`:         {"wedding.jpg"},
		`it has no file "UNFINISHED"`:    {FormatName, CatalogueName, PartitionName(0)},
		"may be a whole data folder":     {CatalogueName, journalName(1)},
		`no file "UNFINISHED" and may b`: {lockName},
	} {
		path := filepath.Join(t.TempDir(), "backup")
		leave(t, path+".part", names...)
		before := contents(t, path+".part")
		if _, err := NewStaging(vfstest.Fast(), path); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("beside %q: %v, not %s", names, err, why)
		}
		if !maps.Equal(contents(t, path+".part"), before) {
			t.Errorf("%q has been changed", names)
		}
		gone(t, path)
	}
}

func TestStagingRefusesASubfolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup")
	leave(t, path+".part", markName)
	leave(t, filepath.Join(path+".part", "photos.db"), "a.jpg")
	if _, err := NewStaging(vfstest.Fast(), path); err == nil || !strings.Contains(err.Error(), `it holds "photos.db"`) {
		t.Errorf("beside a folder in it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(path+".part", "photos.db", "a.jpg")); err != nil {
		t.Error(err)
	}
}

// Of two simultaneous attempts at one path the later fails and does not affect the earlier.
func TestStagingRefusesAFolderInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup")
	s := mustStage(t, path)
	file := filepath.Join(s.Dir(), CatalogueName)
	drill.Check(t, os.WriteFile(file, nil, 0o600))
	if _, err := NewStaging(vfstest.Fast(), path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second attempt: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if err := s.Close(os.ErrInvalid); err == nil {
		t.Error("its error is gone")
	}
	makeFolder(t, path)
}

// Half a backup is not mistaken for a data folder.
func TestUnfinishedFolderIsRefused(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustOpen(t, path, 2).Close()
	drill.Report(t, RefuseStaging(vfs.OS, path))
	drill.Check(t, os.WriteFile(filepath.Join(path, markName), nil, 0o600))
	refused(t, path, path, "unfinished")
}

// What another user may have put at the path, or may write to, is refused and stays as it is.
func TestStagingRefusesWhatOthersMayHaveMade(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for why, plant := range map[string]func(part string) error{
		"is a symbolic link":      func(part string) error { return os.Symlink(elsewhere, part) },
		"is not a folder":         func(part string) error { return os.WriteFile(part, nil, 0o600) },
		"has mode 0777":           func(part string) error { return errors.Join(os.Mkdir(part, 0o700), os.Chmod(part, 0o777)) },
		"has mode 0720":           func(part string) error { return errors.Join(os.Mkdir(part, 0o700), os.Chmod(part, 0o720)) },
		"belongs to another user": func(part string) error { return errors.Join(os.Mkdir(part, 0o700), os.Chown(part, 12345, -1)) },
	} {
		path := filepath.Join(t.TempDir(), "backup")
		if err := plant(path + ".part"); errors.Is(err, fs.ErrPermission) {
			t.Logf("NOT TESTED: only root can give a folder away: %v", err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var taken *InTheWayError
		if _, err := NewStaging(vfstest.Fast(), path); !errors.As(err, &taken) || !strings.Contains(err.Error(), path+".part is in the way: it "+why) {
			t.Errorf("%v, want: it %s", err, why)
		}
		if left := contents(t, elsewhere); len(left) > 0 {
			t.Errorf("it %s: %q is in the folder behind it", why, left)
		}
		gone(t, path)
	}
}
