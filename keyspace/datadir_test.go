package keyspace

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

func mustOpenDataDir(t *testing.T, path string, partitions int) *dataDir {
	t.Helper()
	d, err := openDataDir(path, partitions, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refused checks that a folder is refused with an error that holds all of the words.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	d, err := openDataDir(path, 2, quiet)
	if err == nil {
		d.close()
		t.Fatal("the folder is taken")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is not one line with %q: %v", w, err)
		}
	}
}

func TestNewDataFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := mustOpenDataDir(t, path, 3)
	defer d.close()
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", fi.Mode(), err)
	}
	for _, name := range []string{"catalogue.db", "partition-000.db", "partition-001.db", "partition-002.db", "format", "LOCK"} {
		if fi, err := os.Stat(filepath.Join(path, name)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, fi.Mode(), err)
		}
	}
	const want = "mayfly data folder\nformat 1\npartitions 3\ncrc32c "
	if text := string(read(t, filepath.Join(path, "format"))); !strings.HasPrefix(text, want) {
		t.Errorf("format reads %q", text)
	}
	s := mustOpenStore(t, filepath.Join(path, "partition-002.db"))
	checkBodies(t, s, map[string]string{})
	s.close()
}

func TestPartitionCountIsTheFolders(t *testing.T) {
	path := t.TempDir()
	mustOpenDataDir(t, path, 3).close()
	var log bytes.Buffer
	d, err := openDataDir(path, 16, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if d.partitions != 3 || !strings.Contains(log.String(), `"level":"warn"`) {
		t.Errorf("%d partitions, log: %s", d.partitions, &log)
	}
}

func TestDataFolderInUse(t *testing.T) {
	path := t.TempDir()
	if dir := os.Getenv("MAYFLY_TEST_LOCK"); dir != "" { // this is the other process
		refused(t, dir, dir, "in use by another process", "(pid "+strconv.Itoa(os.Getppid())+")")
		return
	}
	d := mustOpenDataDir(t, path, 2)
	refused(t, path, path, "in use by another process")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "MAYFLY_TEST_LOCK="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	mustOpenDataDir(t, path, 2).close()
}

func TestFormatOfTheFolder(t *testing.T) {
	for n := 1; n <= record.MaxPartitions; n++ {
		if got, err := readFormat(formatText(n)); err != nil || got != n {
			t.Fatalf("%d partitions come back as %d, %v", n, got, err)
		}
	}
	eachFlip(formatText(16), func(bad string, at int) {
		if n, err := readFormat(bad); err == nil {
			t.Errorf("a flip at %d goes unseen: %d partitions", at, n)
		}
	})
	path := t.TempDir()
	mustOpenDataDir(t, path, 2).close()
	format := filepath.Join(path, "format")
	if err := os.WriteFile(format, []byte("mayfly data folder\nformat 2\nsomething new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "format is 2", "newer version")
	if err := os.WriteFile(format, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "damaged")
}

func TestDataFolderThatIsNotComplete(t *testing.T) {
	path := t.TempDir()
	mustOpenDataDir(t, path, 2).close()
	if err := os.Remove(filepath.Join(path, "partition-001.db")); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "not complete", "partition-001.db")
}

// A crash while a folder is made leaves one without the file format and without anything in it.
func TestDataFolderHalfMade(t *testing.T) {
	path := t.TempDir()
	mustOpenDataDir(t, path, 5).close()
	for _, name := range []string{"format", "partition-004.db"} {
		if err := os.Remove(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(path, "partition-003.db"), 10); err != nil {
		t.Fatal(err)
	}
	mustOpenDataDir(t, path, 5).close()
	s := mustOpenStore(t, filepath.Join(path, "partition-003.db"))
	applied(t, s, set("1:a", "1"))
	s.close()
	if err := os.Remove(filepath.Join(path, "format")); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "format", "partition-003.db holds data")
}

func TestDataFolderThatCannotBeMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "not a directory")
}

func TestDataFolderThatCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	path := t.TempDir()
	if err := os.Chmod(path, 0o500); err != nil {
		t.Fatal(err)
	}
	refused(t, path, path, "permission denied")
}
