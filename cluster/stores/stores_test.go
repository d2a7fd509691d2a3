package stores

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mayfly/keyspace/datadir"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// files are those of a small backup.
func files(version string) map[string]string {
	return map[string]string{
		"format": "format " + version, "manifest": "manifest " + version, "seed": "seed", "catalogue.db": "catalogue " + version,
		"partition-000.db": strings.Repeat(version+" ", 200000), "partition-001.db": "", "journal-000000000001.db": "x",
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	drill.Check(t, os.MkdirAll(dir, 0o700))
	for name, content := range files {
		drill.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

// read returns the regular files of a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	drill.Check(t, err)
	for _, e := range entries {
		if e.Type().IsRegular() {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			drill.Check(t, err)
			found[e.Name()] = string(b)
		}
	}
	return found
}

// packed returns the stream of a folder with files.
func packed(t testing.TB, files map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		drill.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	r, size, err := Pack(dir)
	drill.Check(t, err)
	b, err := io.ReadAll(r)
	if err != nil || int64(len(b)) != size {
		t.Fatalf("%d bytes, announced were %d, %v", len(b), size, err)
	}
	return b
}

// folder makes a node's folder with old files, and returns it and its cluster folder.
func folder(t *testing.T) (dir, clusterDir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "stores") // in memory where the machine has that: the tests sync thousands of times
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, dir, files("old"))
	write(t, dir, map[string]string{"LOCK": "1", "redis.conf": "port 1", "partition-007.db": "one more", "partition-000.db.torn-1": "x"})
	clusterDir = filepath.Join(dir, "cluster")
	write(t, clusterDir, map[string]string{"identity.json": "{}"})
	write(t, filepath.Join(clusterDir, "wal"), map[string]string{"0.wal": "log"})
	return dir, clusterDir
}

func TestRoundTrip(t *testing.T) {
	dir, clusterDir := folder(t)
	source := t.TempDir()
	write(t, source, files("new"))
	write(t, source, map[string]string{"LOCK": "not sent", "notes.txt": "neither", "UNFINISHED": "neither"})
	drill.Check(t, os.Mkdir(filepath.Join(source, "folder.db"), 0o700))
	stream, size, err := Pack(source)
	drill.Check(t, err)
	drill.Check(t, Unpack(vfs.OS, clusterDir, 42, 3, size, stream))
	pending, err := Pending(clusterDir)
	if err != nil || pending == nil || pending.Index != 42 || pending.Term != 3 || len(pending.Files) != len(files("new")) {
		t.Fatalf("%+v, %v", pending, err)
	}
	if installed, err := Install(dir); installed || err != nil {
		t.Fatalf("installed without a mark: %v", err)
	}
	drill.Check(t, Mark(clusterDir), Mark(clusterDir))
	if err := Unpack(vfs.OS, clusterDir, 43, 3, size, bytes.NewReader(nil)); err == nil {
		t.Error("others may arrive before the installation")
	}
	drill.Report(t, Discard(clusterDir))
	for range 2 { // the raft log may not be opened the first time
		if installed, err := Install(dir); !installed || err != nil {
			t.Fatalf("%v, %v", installed, err)
		}
		write(t, dir, map[string]string{"manifest": "written since then"})
	}
	write(t, dir, map[string]string{"manifest": "manifest new"})
	drill.Check(t, Finish(clusterDir))
	want := files("new")
	want["LOCK"], want["redis.conf"] = fmt.Sprintln(os.Getpid()), "port 1"
	if got := read(t, dir); !maps.Equal(got, want) {
		t.Errorf("the folder has %v", slices.Sorted(maps.Keys(got)))
	}
	if installed, err := Install(dir); installed || err != nil {
		t.Errorf("installed twice: %v", err)
	}
	if pending, err := Pending(clusterDir); pending != nil || err != nil {
		t.Errorf("%+v, %v is left", pending, err)
	}
	if err := Mark(clusterDir); err == nil {
		t.Error("nothing is marked without an error")
	}
	entries, err := os.ReadDir(clusterDir)
	if err != nil || len(entries) != 2 { // identity.json and wal
		t.Errorf("%v is left, %v", entries, err)
	}
}

var errCrash = errors.New("the process has ended")

// crashAt ends the process before its n-th change of the disk, and reports whether it got there.
func crashAt(t *testing.T, n int, run func() error) (crashed bool) {
	t.Helper()
	count := 0
	step = func(string) error {
		if count++; count > n {
			return errCrash
		}
		return nil
	}
	defer func() { step = func(string) error { return nil } }()
	err := run()
	if err != nil && !errors.Is(err, errCrash) {
		t.Fatalf("before step %d: %v", n, err)
	}
	return errors.Is(err, errCrash)
}

// An installation that is ended before any step goes on at the next start, also if that is ended too. Before
// the decision the old files stay.
func TestInstallAfterCrashes(t *testing.T) {
	stream := packed(t, files("new"))
	random := rand.New(rand.NewPCG(1, 2))
	reached := 0
	for n := 0; ; n++ {
		dir, clusterDir := folder(t)
		crashed := crashAt(t, n, func() error {
			if err := Unpack(vfs.OS, clusterDir, 42, 3, int64(len(stream)), bytes.NewReader(stream)); err != nil {
				return err
			}
			if err := Mark(clusterDir); err != nil {
				return err
			}
			_, err := Install(dir)
			return err
		})
		marked, err := Marked(clusterDir)
		drill.Check(t, err)
		for crashAt(t, random.IntN(6), func() error { _, err := Install(dir); return err }) {
		}
		got := read(t, dir)
		switch {
		case marked || got["format"] == "format new":
			if got["partition-000.db"] != files("new")["partition-000.db"] || got["partition-007.db"] != "" || got["manifest"] != "manifest new" {
				t.Fatalf("step %d: the folder has %v", n, slices.Sorted(maps.Keys(got)))
			}
			reached++
		default:
			if got["partition-000.db"] != files("old")["partition-000.db"] || got["partition-007.db"] == "" {
				t.Fatalf("step %d: the old files are not there: %v", n, slices.Sorted(maps.Keys(got)))
			}
			// What has arrived before the crash is whole or gone.
			pending, err := Pending(clusterDir)
			drill.Check(t, err)
			if _, err := os.Stat(filepath.Join(clusterDir, Incoming)); pending == nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("step %d: a part is left", n)
			}
		}
		drill.Check(t, Finish(clusterDir))
		if installed, err := Install(dir); installed || err != nil {
			t.Fatalf("step %d: again %v", n, err)
		}
		if !crashed {
			break
		}
	}
	if reached < 10 {
		t.Errorf("only %d crashes came after the decision", reached)
	}
}

// Stores that are not whole any more are never installed in part.
func TestInstallOfIncompleteStores(t *testing.T) {
	stream := packed(t, files("new"))
	dir, clusterDir := folder(t)
	drill.Check(t, Unpack(vfs.OS, clusterDir, 42, 3, int64(len(stream)), bytes.NewReader(stream)), Mark(clusterDir))
	drill.Check(t, os.Truncate(filepath.Join(clusterDir, Incoming, "partition-000.db"), 5))
	_, err := Install(dir)
	if broken := (*InvalidError)(nil); !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	if got := read(t, dir); got["format"] != "format old" {
		t.Errorf("the old files are gone: %v", got)
	}
	drill.Check(t, os.WriteFile(filepath.Join(clusterDir, marker), []byte("{}"), 0o600))
	if _, err := Install(dir); err == nil {
		t.Error("a damaged marker is accepted")
	}
}

// SetAside moves all of a life of the disk, and nothing else; after a crash at any step another call moves
// the rest.
func TestSetAside(t *testing.T) {
	for n := 0; ; n++ {
		dir, clusterDir := folder(t)
		if data, err := HasData(dir); !data || err != nil {
			t.Fatalf("data %v, %v", data, err)
		}
		write(t, filepath.Join(clusterDir, "tls"), map[string]string{"node.key": "k"})
		crashed := crashAt(t, n, func() error { _, err := SetAside(dir, "damaged-20260102"); return err })
		if _, err := SetAside(dir, "damaged-20260102"); err != nil {
			t.Fatal(err)
		}
		if again, err := SetAside(dir, "damaged-20260102"); again != "" || err != nil {
			t.Fatalf("step %d: %q, %v is moved once more", n, again, err)
		}
		if data, err := HasData(dir); data || err != nil {
			t.Fatalf("step %d: data %v, %v", n, data, err)
		}
		if got := read(t, dir); !maps.Equal(got, map[string]string{"LOCK": fmt.Sprintln(os.Getpid()), "redis.conf": "port 1"}) {
			t.Fatalf("step %d: the folder has %v", n, slices.Sorted(maps.Keys(got)))
		}
		all := map[string]string{}
		folders, err := filepath.Glob(filepath.Join(clusterDir, "damaged-*"))
		drill.Check(t, err)
		for _, folder := range folders {
			maps.Copy(all, read(t, folder))
			if wal := filepath.Join(folder, "wal"); len(all) > 0 {
				if _, err := os.Stat(wal); err == nil {
					all["wal"] = "there"
				}
			}
		}
		for name, content := range files("old") {
			if all[name] != content {
				t.Fatalf("step %d: %s is lost", n, name)
			}
		}
		if _, err := os.Stat(filepath.Join(clusterDir, "wal")); err == nil {
			t.Fatalf("step %d: the raft log is still in use", n)
		}
		if read(t, clusterDir)["identity.json"] != "{}" || read(t, filepath.Join(clusterDir, "tls"))["node.key"] != "k" {
			t.Fatalf("step %d: the identity or the certificates are gone", n)
		}
		if !crashed {
			break
		}
	}
}

// No file moves while another process has the data folder open.
func TestFilesOfAnOpenFolderStay(t *testing.T) {
	dir, clusterDir := folder(t)
	arrived := packed(t, files("new"))
	drill.Check(t, Unpack(vfs.OS, clusterDir, 42, 3, int64(len(arrived)), bytes.NewReader(arrived)), Mark(clusterDir))
	other, err := datadir.LockShared(vfs.OS, dir)
	drill.Check(t, err)
	if _, err := Install(dir); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("Install: %v", err)
	}
	if _, err := SetAside(dir, "replaced-20260102"); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("SetAside: %v", err)
	}
	if got := read(t, dir); got["format"] != "format old" || got["partition-007.db"] == "" {
		t.Errorf("the old files are gone: %v", slices.Sorted(maps.Keys(got)))
	}
	drill.Check(t, other.Close())
	if installed, err := Install(dir); !installed || err != nil {
		t.Errorf("%v, %v", installed, err)
	}
}

// A cluster folder on a mount of its own is refused by an error that names both folders.
func TestCheckMount(t *testing.T) {
	dir, clusterDir := folder(t)
	before, beforeCluster := read(t, dir), read(t, clusterDir)
	drill.Report(t, CheckMount(dir))
	step = func(what string) error {
		return &os.LinkError{Op: "rename", Old: what, Err: syscall.EXDEV}
	}
	defer func() { step = func(string) error { return nil } }()
	if err := CheckMount(dir); err == nil || !strings.Contains(err.Error(), dir+" and "+clusterDir+" are on different file systems") {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(read(t, dir), before) || !maps.Equal(read(t, clusterDir), beforeCluster) {
		t.Error("the probe is left")
	}
}

// stream makes a tar of entries.
func stream(t testing.TB, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := make([]byte, h.Size)
		if h.Typeflag != tar.TypeReg {
			content = nil
		}
		if text, ok := h.PAXRecords["MAYFLY.content"]; ok {
			content, h.PAXRecords = []byte(text), nil
			h.Size = int64(len(content))
		}
		drill.Check(t, w.WriteHeader(h))
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	drill.Check(t, w.Close())
	return b.Bytes()
}

func content(name, text string) *tar.Header {
	h := header(name, int64(len(text)))
	h.PAXRecords = map[string]string{"MAYFLY.content": text}
	return h
}

// Streams of a liar write nothing outside of their folder, and nothing is left of them.
func TestHostileStreams(t *testing.T) {
	good := packed(t, files("new"))
	link := header("format", 0)
	link.Typeflag, link.Linkname = tar.TypeSymlink, "/etc/passwd"
	hard := header("format", 0)
	hard.Typeflag, hard.Linkname = tar.TypeLink, "../identity.json"
	device := header("format", 0)
	device.Typeflag = tar.TypeChar
	folderEntry := header("format", 0)
	folderEntry.Typeflag, folderEntry.Name = tar.TypeDir, "format/"
	sumsOf := func(names ...string) string {
		var b strings.Builder
		for _, name := range names {
			b.WriteString(sumLine(File{Name: name}))
		}
		return b.String()
	}
	flipped := bytes.Clone(good)
	flipped[bytes.Index(flipped, []byte("new new"))] ^= 1
	for name, b := range map[string][]byte{
		"empty":          nil,
		"no tar":         []byte(strings.Repeat("no tar ", 1000)),
		"above":          stream(t, header("../format", 3)),
		"absolute":       stream(t, header("/tmp/format", 3)),
		"in a folder":    stream(t, header("cluster/identity.json", 3)),
		"own list":       stream(t, header("contents", 3)),
		"identity":       stream(t, header("identity.json", 3)),
		"the lock":       stream(t, header("LOCK", 3)),
		"two dots":       stream(t, header("..db", 3)),
		"link":           stream(t, link),
		"hard link":      stream(t, hard),
		"device":         stream(t, device),
		"folder":         stream(t, folderEntry),
		"twice":          stream(t, header("format", 3), header("format", 3)),
		"no sums":        stream(t, header("format", 0), header("manifest", 0)),
		"sums only":      stream(t, content(sumsName, "")),
		"no manifest":    stream(t, header("format", 0), content(sumsName, sumsOf("format"))),
		"wrong sums":     stream(t, header("format", 0), header("manifest", 1), content(sumsName, sumsOf("format", "manifest"))),
		"more sums":      stream(t, header("format", 0), header("manifest", 0), content(sumsName, sumsOf("format", "manifest", "seed"))),
		"huge sums":      stream(t, header("format", 0), header("manifest", 0), header(sumsName, 1<<20)),
		"behind":         stream(t, header("format", 0), header("manifest", 0), content(sumsName, sumsOf("format", "manifest")), header("seed", 0)),
		"flipped bit":    flipped,
		"cut":            good[:len(good)-2000],
		"cut in a file":  good[:100000],
		"larger than it": stream(t, header("format", 0))[:512],
	} {
		t.Run(name, func(t *testing.T) {
			dir, clusterDir := folder(t)
			err := Unpack(vfs.OS, clusterDir, 1, 1, int64(len(b)), bytes.NewReader(b))
			if bad := (*InvalidError)(nil); !errors.As(err, &bad) {
				t.Errorf("got %v", err)
			}
			entries, err := os.ReadDir(clusterDir)
			if err != nil || len(entries) != 2 || read(t, clusterDir)["identity.json"] != "{}" {
				t.Errorf("%v is there, %v", entries, err)
			}
			if got := read(t, dir); got["format"] != "format old" || got["LOCK"] != "1" {
				t.Error("the data files have changed")
			}
		})
	}
}

// A stream that announces more than it has or more than fits is refused before it takes room.
func TestSizes(t *testing.T) {
	_, clusterDir := folder(t)
	good := packed(t, files("new"))
	if err := Unpack(vfs.OS, clusterDir, 1, 1, int64(len(good))-100000, bytes.NewReader(good)); err == nil {
		t.Error("more than announced is taken")
	}
	small := &vfstest.Faulty{FS: vfs.OS, OnRoom: func() (free, size int64) { return int64(len(good)) + spare - 1, 1 << 40 }}
	err := Unpack(small, clusterDir, 1, 1, int64(len(good)), bytes.NewReader(good))
	if err == nil || !strings.Contains(err.Error(), "do not fit on the disk") {
		t.Errorf("got %v", err)
	}
	if !vfs.IsFull(err) {
		t.Errorf("%v is not the error of a full disk", err)
	}
	source := t.TempDir()
	write(t, source, files("new"))
	write(t, source, map[string]string{"notes.txt": "not sent"})
	free := int64(spare)
	for _, content := range files("new") {
		free += int64(len(content))
	}
	fits := &vfstest.Faulty{FS: vfs.OS, OnRoom: func() (int64, int64) { return free, 1 << 40 }}
	drill.Report(t, Fits(fits, source))
	free--
	if room := (*RoomError)(nil); !errors.As(Fits(fits, source), &room) || room.Missing() != 1 {
		t.Errorf("a backup that does not fit: %+v", room)
	}
	full := &vfstest.Faulty{FS: vfs.OS, OnWrite: func(f vfs.File, _ []byte, _ int64) error { return fmt.Errorf("write %s: no space left", f.Name()) }}
	if err := Unpack(full, clusterDir, 1, 1, int64(len(good)), bytes.NewReader(good)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(clusterDir, Incoming)); !errors.Is(err, os.ErrNotExist) {
		t.Error("a part is left")
	}
}

// A file that shrinks while it is sent ends the stream with an error.
func TestPackOfAShrinkingFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, files("new"))
	r, _, err := Pack(dir)
	drill.Check(t, err)
	drill.Check(t, os.Truncate(filepath.Join(dir, "seed"), 1))
	if _, err := io.ReadAll(r); err == nil {
		t.Error("no error")
	}
	empty, _, err := Pack(t.TempDir())
	if err == nil {
		empty.Close()
		t.Error("an empty folder can be sent")
	}
}

// FuzzUnpack takes any stream without a panic, and leaves all or nothing.
func FuzzUnpack(f *testing.F) {
	small := map[string]string{"format": "f", "manifest": "m", "seed": ""}
	good := packed(f, small)
	f.Add(good)
	f.Add(good[:700])
	f.Add(stream(f, header("../x", 1)))
	f.Add(stream(f, header("format", 0), header("manifest", 0), content(sumsName, sumLine(File{Name: "format"})+sumLine(File{Name: "manifest"}))))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		clusterDir := filepath.Join(dir, "cluster")
		drill.Check(t, os.Mkdir(clusterDir, 0o700))
		err := Unpack(vfstest.Fast(), clusterDir, 1, 1, int64(len(b)), bytes.NewReader(b))
		pending, pendingErr := Pending(clusterDir)
		if pendingErr != nil || (pending != nil) != (err == nil) {
			t.Fatalf("%v: pending %+v, %v", err, pending, pendingErr)
		}
		if found := read(t, dir); len(found) != 0 {
			t.Fatalf("%v is written outside", found)
		}
		for name := range read(t, clusterDir) {
			t.Fatalf("%s is written outside", name)
		}
		if pending == nil {
			return
		}
		drill.Check(t, Mark(clusterDir))
		if installed, err := Install(dir); !installed || err != nil {
			t.Fatal(err)
		}
	})
}
