package datadir

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

func mustOpen(t *testing.T, path string, partitions int) *Dir {
	t.Helper()
	d, err := Open(vfstest.Fast(), path, partitions, zerolog.Nop())
	drill.Check(t, err)
	return d
}

// refused checks that a folder is refused with an error that has all of these words.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	d, err := Open(vfstest.Fast(), path, 2, zerolog.Nop())
	if err == nil {
		d.Close()
		t.Fatal("the folder is taken")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is not one line with %q: %v", w, err)
		}
	}
}

func TestNewDataFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b")
	d := mustOpen(t, path, 3)
	defer d.Close()
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", fi.Mode(), err)
	}
	for _, name := range []string{"catalogue.db", "partition-000.db", "partition-001.db", "partition-002.db", "format", "LOCK"} {
		if fi, err := os.Stat(filepath.Join(path, name)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, fi.Mode(), err)
		}
	}
	const want = "mayfly data folder\nformat 2\npartitions 3\ncrc32c "
	if text := string(vfstest.Read(t, vfs.OS, filepath.Join(path, "format"))); !strings.HasPrefix(text, want) {
		t.Errorf("format reads %q", text)
	}
	var sets []string
	s, err := store.Open(vfs.OS, filepath.Join(path, "partition-002.db"), store.Options{Log: zerolog.Nop(), Visit: func(o aof.Op) error {
		sets = append(sets, o.Key)
		return nil
	}})
	if err != nil || len(sets) > 0 {
		t.Fatalf("a new store holds %q, %v", sets, err)
	}
	s.Close()
}

func TestPartitionCountIsTheFolders(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustOpen(t, path, 3).Close()
	var log bytes.Buffer
	d, err := Open(vfstest.Fast(), path, 16, zerolog.New(&log))
	drill.Check(t, err)
	defer d.Close()
	if d.Partitions != 3 || !strings.Contains(log.String(), `"level":"warn"`) {
		t.Errorf("%d partitions, log: %s", d.Partitions, &log)
	}
}

// A folder that has nothing but LOCK is taken with a warning. A new one, or one with other files, gives none.
func TestFolderWithNothingButALock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files []string
		want  bool
	}{{nil, false}, {[]string{lockName}, true}, {[]string{lockName, CatalogueName}, false}, {[]string{"other"}, false}} {
		path := t.TempDir()
		for _, name := range tt.files {
			vfstest.Write(t, vfs.OS, filepath.Join(path, name), nil)
		}
		var log bytes.Buffer
		d, err := Open(vfstest.Fast(), path, 2, zerolog.New(&log))
		drill.Check(t, err)
		d.Close()
		if got := strings.Contains(log.String(), "nothing but a lock"); got != tt.want {
			t.Errorf("%v: %s", tt.files, &log)
		}
	}
}

// It is not parallel: a process that it starts has the files of other tests open for a moment, with their
// locks.
func TestDataFolderInUse(t *testing.T) {
	path := t.TempDir()
	if dir := os.Getenv("MAYFLY_TEST_LOCK"); dir != "" { // this is the other process
		refused(t, dir, dir, "in use by another process", "(pid "+strconv.Itoa(os.Getppid())+")")
		return
	}
	d := mustOpen(t, path, 2)
	refused(t, path, path, "in use by another process")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "MAYFLY_TEST_LOCK="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	drill.Check(t, os.Remove(filepath.Join(path, lockName)))
	refused(t, path, path, "in use by another process")
	if l, err := LockShared(vfs.OS, path); err == nil {
		l.Close()
		t.Error("without the file LOCK the folder is read while it is in use")
	}
	drill.Check(t, d.Close())
	mustOpen(t, path, 2).Close()
}

// A folder and those above it are on disk by their names before anything is in it, also if the process that
// made some of them was killed before it had forced their names to disk. So are the names in it before there
// are new ones.
func TestNamesAreOnDiskFirst(t *testing.T) {
	top := t.TempDir()
	var mu sync.Mutex // stores are made in parallel
	var synced []string
	var failure error
	disk := vfstest.Faulty{FS: vfs.OS, NoSync: true, OnSync: func(f vfs.File) error {
		mu.Lock()
		defer mu.Unlock()
		synced = append(synced, f.Name())
		return failure
	}}
	check := func(path string, want ...string) {
		t.Helper()
		synced = nil
		d, err := Open(&disk, path, 1, zerolog.Nop())
		drill.Check(t, err)
		d.Close()
		if len(synced) < len(want) || !slices.Equal(synced[:len(want)], want) {
			t.Errorf("%q are forced to disk first, want %q", synced, want)
		}
	}
	a := filepath.Join(top, "a")
	b := filepath.Join(a, "b")
	c := filepath.Join(b, "c")
	check(b, filepath.Dir(top), top, a, b)
	check(c, a, b, c)
	drill.Check(t, os.RemoveAll(c))
	check(c, a, b, c)
	check(c, b, c)
	t.Chdir(c)
	check(".", b, ".")

	failure = syscall.EACCES
	if err := mkdirDurably(&disk, c); err != nil { // as for a user who may not read the folder above
		t.Error(err)
	}
	failure = syscall.EIO
	if err := mkdirDurably(&disk, c); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

func TestFormatOfTheFolder(t *testing.T) {
	t.Parallel()
	for n := 1; n <= record.MaxPartitions; n++ {
		for _, version := range []int{formatVersion, undoVersion, logVersion, nodeVersion, deleteVersion} {
			if got, is, err := ReadFormat(formatText(n, version)); err != nil || got != n || is != version {
				t.Fatalf("%d partitions of version %d come back as %d, %d, %v", n, version, got, is, err)
			}
		}
	}
	aoftest.EachFlip(formatText(16, formatVersion), func(bad string, at int) {
		if n, _, err := ReadFormat(bad); err == nil {
			t.Errorf("a flip at %d goes unseen: %d partitions", at, n)
		}
	})
	path := t.TempDir()
	mustOpen(t, path, 2).Close()
	format := filepath.Join(path, "format")
	for _, test := range []struct {
		text  string
		words []string
	}{
		{"mayfly data folder\nformat 1\npartitions 2\ncrc32c 00000000\n", []string{"format is 1", "before the first release", "reads formats 2 to 7", "import"}},
		{"mayfly data folder\nformat 8\nsomething new\n", []string{"format is 8", "newer version", "reads formats 2 to 7"}},
		{"mayfly data folder\nformat 0\npartitions 2\n", []string{"damaged"}},
		{strings.Replace(formatText(2, formatVersion), "partitions 2", "partitions 3", 1), []string{"damaged"}},
		{"", []string{"damaged"}},
	} {
		drill.Check(t, os.WriteFile(format, []byte(test.text), 0o600))
		refused(t, path, append(test.words, path)...)
		if _, err := Partitions(vfs.OS, path); err == nil || !strings.Contains(err.Error(), test.words[0]) {
			t.Errorf("the number of partitions of %q: %v", test.text, err)
		}
	}
}

// TestVersionOfTheFolder: the version of a folder rises with what it may hold, also in another order and from
// several goroutines, and nothing lowers it.
func TestVersionOfTheFolder(t *testing.T) {
	t.Parallel()
	allowLogs := func(d *Dir) error { return d.AllowLogs(false) }
	allowDeletes := func(d *Dir) error { return d.AllowLogs(true) }
	for _, tt := range []struct {
		raise []func(*Dir) error
		want  int
	}{
		{nil, formatVersion},
		{[]func(*Dir) error{(*Dir).AllowUndo}, undoVersion},
		{[]func(*Dir) error{allowLogs}, logVersion},
		{[]func(*Dir) error{(*Dir).AllowUndo, allowLogs, (*Dir).AllowUndo}, logVersion},
		{[]func(*Dir) error{allowLogs, (*Dir).AllowUndo}, logVersion},
		{[]func(*Dir) error{allowLogs, allowDeletes, (*Dir).AllowReplicas}, deleteVersion},
	} {
		path := t.TempDir()
		d := mustOpen(t, path, 2)
		var wg sync.WaitGroup
		for _, raise := range tt.raise {
			wg.Go(func() {
				drill.Report(t, raise(d))
			})
		}
		wg.Wait()
		for _, again := range []func() error{d.WriteFormat, d.Close} {
			drill.Report(t, again())
			text, err := os.ReadFile(filepath.Join(path, FormatName))
			if n, is, bad := ReadFormat(string(text)); err != nil || bad != nil || n != 2 || is != tt.want {
				t.Errorf("%q has version %d, want %d; %v, %v", text, is, tt.want, err, bad)
			}
		}
		d = mustOpen(t, path, 2)
		drill.Report(t, d.WithFormat(func(text string) error {
			if want := formatText(2, tt.want); text != want {
				t.Errorf("%q is opened as %q", want, text)
			}
			return nil
		}))
		d.Close()
	}
}

func TestDataFolderThatIsNotComplete(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustOpen(t, path, 2).Close()
	drill.Check(t, os.Remove(filepath.Join(path, "partition-001.db")))
	refused(t, path, path, "not complete", "partition-001.db")
}

// A folder that has lost all but its manifest is not taken for a new one.
func TestFolderThatHasLostItsData(t *testing.T) {
	t.Parallel()
	for what, content := range map[string]string{"a store": "", "a journal": "", "a damaged manifest": "mayfly"} {
		path := t.TempDir()
		m := NewManifest()
		switch what {
		case "a store":
			m.Stores[CatalogueName] = []FileState{{Mark: 1, End: aof.SealSize}}
			m.Stores[PartitionName(0)] = []FileState{{Mark: 1, End: aof.SealSize + 1}}
		case "a journal":
			m.Journals["journal-000000000001.db"] = FileState{Mark: 1, End: aof.SealSize}
		}
		if content == "" {
			content = m.Text()
		}
		drill.Check(t, os.WriteFile(filepath.Join(path, ManifestName), []byte(content), 0o600))
		d, err := Open(vfstest.Fast(), path, 3, zerolog.Nop())
		if err == nil {
			d.Close()
			t.Errorf("%s is lost, and a new folder is made", what)
		} else if !strings.Contains(err.Error(), FormatName) || !strings.Contains(err.Error(), ManifestName) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A crash during the creation leaves a folder without the file "format" and without data.
func TestDataFolderHalfMade(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustOpen(t, path, 5).Close()
	for _, name := range []string{"format", "partition-004.db"} {
		drill.Check(t, os.Remove(filepath.Join(path, name)))
	}
	drill.Check(t, os.Truncate(filepath.Join(path, "partition-003.db"), 10))
	mustOpen(t, path, 5).Close()
	if _, _, err := store.Fill(vfs.OS, filepath.Join(path, "partition-003.db"), []aof.Op{aoftest.Set("1:a", "1")}); err != nil {
		t.Fatal(err)
	}
	drill.Check(t, os.Remove(filepath.Join(path, "format")))
	refused(t, path, path, "format", "partition-003.db holds data")
}

func TestDataFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	drill.Check(t, os.WriteFile(path, nil, 0o600))
	refused(t, path, path, "not a directory")
}

func TestDataFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	path := t.TempDir()
	drill.Check(t, os.Chmod(path, 0o500))
	refused(t, path, path, "permission denied")
}
