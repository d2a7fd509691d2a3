package tools

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mayfly/keyspace"
	"mayfly/test/drill"
)

// newFolder makes a data folder.
func newFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	ks, err := keyspace.Open(keyspace.Options{Dir: dir, Partitions: 2})
	drill.Check(t, err)
	drill.Check(t, ks.Close())
	return dir
}

// TestAdviceForAFolder: the error of a start says what to do about the folder.
func TestAdviceForAFolder(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spoil func(dir string) error
		want  []string
	}{
		"a missing store": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "partition-001.db")) },
			[]string{"partition-001.db is damaged: the file is missing", "mayfly check ", "mayfly repair "},
		},
		"no format": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "format")) },
			[]string{"format is damaged: the file is missing, but ", "mayfly check "},
		},
		"a damaged format": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("mayfly"), 0o600) },
			[]string{"format is damaged", "mayfly check "},
		},
		"an unfinished backup": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "UNFINISHED"), nil, 0o600) },
			[]string{"unfinished backup or repair", "remove it, and make the backup or repair again"},
		},
	} {
		dir := newFolder(t)
		drill.Check(t, c.spoil(dir))
		ks, err := keyspace.Open(keyspace.Options{Dir: dir, Partitions: 2})
		if err == nil {
			ks.Close()
			t.Errorf("%s: it starts", what)
			continue
		}
		for _, want := range c.want {
			if text := Advise(err, dir).Error(); !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", what, text, want)
			}
		}
	}
}

// TestAdviceForWhatIsInTheWay: a repair and an export say what to do about a path that is taken.
func TestAdviceForWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	target := filepath.Join(t.TempDir(), "new")
	drill.Check(t, os.Symlink(t.TempDir(), target+".part"))
	for _, args := range [][]string{{"repair", dir, target}, {"export", dir, target}} {
		var errs bytes.Buffer
		if code := Run(args, Environment{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &errs}); code == exitOK {
			t.Errorf("%s: it works", args[0])
		}
		for _, want := range []string{target + ".part is in the way", "is running, remove it, or choose another"} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: %s, want %q", args[0], &errs, want)
			}
		}
	}
}

// TestAdviceForAFolderOfAnother: root, as which tests may run, is refused nothing.
func TestAdviceForAFolderOfAnother(t *testing.T) {
	t.Parallel()
	if text := Advise(&fs.PathError{Op: "open", Path: "data/format", Err: syscall.EACCES}, "data").Error(); text != "open data/format: permission denied; the data folder must belong to the user who runs the server" {
		t.Error(text)
	}
}

func TestOpenToOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]string{0o700: "", 0o755: "mode 0755", 0o750: "list its files", 0o777: "replace its files", 0o711: "chmod 700 " + dir} {
		drill.Check(t, os.Chmod(dir, mode))
		if got := OpenToOthers(dir); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("mode %o: %q, want %q", mode, got, want)
		}
	}
}
