package datadir

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// example is a manifest as it stands while a compaction replaces a store.
func example() *Manifest {
	m := NewManifest()
	m.Stores["catalogue.db"] = []FileState{{0x9f3a11c0, 1024}}
	m.Stores["partition-000.db"] = []FileState{{1, 61}, {0xffffffff, 1 << 40}}
	m.Journals["journal-000000000007.db"] = FileState{0x71b20c5d, 4096}
	m.Journals["journal-000000000008.db"] = FileState{0, 61}
	return m
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	clean := example()
	clean.Clean = true
	for _, m := range []*Manifest{NewManifest(), example(), clean} {
		disk := vfstest.New()
		drill.Check(t, m.Write(disk, vfstest.Dir))
		got, err := ReadManifest(disk, vfstest.Dir)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v is read as %+v, %v", m, got, err)
		}
		if entries, err := disk.ReadDir(vfstest.Dir); err != nil || len(entries) != 1 {
			t.Errorf("%v is left, %v", entries, err)
		}
	}
}

// Every wrong bit, every lost end and every added byte is noticed.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	text := example().Text()
	for at := range text {
		for bit := range 8 {
			b := []byte(text)
			b[at] ^= 1 << bit
			if m, err := parseManifest(string(b)); err == nil {
				t.Errorf("bit %d of byte %d: %q is read as %+v", bit, at, b, m)
			}
		}
		if _, err := parseManifest(text[:at]); err == nil {
			t.Errorf("the first %d bytes are accepted", at)
		}
	}
	for _, more := range []string{"\n", " ", "store", text} {
		if _, err := parseManifest(text + more); err == nil {
			t.Errorf("%q is accepted behind it", more)
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for reason, content := range map[string]*string{"the file is missing": nil, "its checksum or its form is wrong": new(string)} {
		disk := vfstest.New()
		if content != nil {
			vfstest.Write(t, disk, filepath.Join(vfstest.Dir, ManifestName), []byte(*content))
		}
		_, err := ReadManifest(disk, vfstest.Dir)
		d, ok := errors.AsType[*aof.DamageError](err)
		if !ok || d.File != filepath.Join(vfstest.Dir, ManifestName) || d.Reason != reason {
			t.Errorf("want %q, got %v", reason, err)
		}
	}
}

// A disk that fails at any point of a write leaves the old manifest or the new one, and no other file.
func TestWriteThatFails(t *testing.T) {
	t.Parallel()
	for failing := range 2 {
		disk, old, new := vfstest.New(), example(), NewManifest()
		drill.Check(t, old.Write(disk, vfstest.Dir))
		calls := 0
		disk.OnSync = func(vfs.File) error {
			if calls++; calls == failing+1 {
				return vfstest.ErrDisk
			}
			return nil
		}
		if err := new.Write(disk, vfstest.Dir); err == nil {
			t.Fatalf("fsync %d fails, and the write does not", failing)
		}
		want := []*Manifest{old, new}[failing]
		if got, err := ReadManifest(disk, vfstest.Dir); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after fsync %d failed: %+v, %v", failing, got, err)
		}
		if entries, err := disk.ReadDir(vfstest.Dir); err != nil || len(entries) != 1 {
			t.Errorf("after fsync %d failed: %v is left, %v", failing, entries, err)
		}
	}
}

func TestCheckStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		mark             uint32
		end              int64
		running, stopped string // part of the reason; empty: accepted
	}{
		{"catalogue.db", 0x9f3a11c0, 1024, "", ""},
		{"catalogue.db", 0x9f3a11c0, 1023, "ends before", "ends before"},
		{"catalogue.db", 0x9f3a11c0, 2000, "", "goes on behind"},
		{"catalogue.db", 0x9f3a11c1, 1024, "its mark", "its mark"},
		{"partition-000.db", 1, 61, "", ""}, // of two files, either
		{"partition-000.db", 0xffffffff, 1 << 40, "", ""},
		{"partition-000.db", 0xffffffff, 61, "ends before", "ends before"},
		{"partition-000.db", 2, 61, "its mark", "its mark"},
		{"partition-001.db", 1, 61, "does not name", "does not name"},
	} {
		for _, clean := range []bool{false, true} {
			m, want := example(), c.running
			if m.Clean = clean; clean {
				want = c.stopped
			}
			onDisk, err := m.CheckStore("/data/"+c.name, c.mark, c.end)
			expectDamage(t, err, "/data/"+c.name, want)
			if err == nil && !slices.Contains(m.Stores[c.name], FileState{c.mark, onDisk}) {
				t.Errorf("%s: %d bytes are on disk", c.name, onDisk)
			}
		}
	}
}

func TestCheckJournal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		generation       string
		mark             uint32
		end              int64
		running, stopped string
	}{
		{"7", 0x71b20c5d, 4096, "", ""},
		{"7", 0x71b20c5d, 4095, "ends before", "ends before"},
		{"7", 0x71b20c5d, 4097, "goes on behind", "goes on behind"}, // it was finished
		{"7", 1, 4096, "its mark", "its mark"},
		{"8", 0, 61, "", ""},
		{"8", 0, 9999, "", "goes on behind"},
		{"8", 0, 0, "ends before", "ends before"},
		{"6", 5, 99, "", "does not name"}, // a checkpoint was about to remove it
		{"9", 5, 99, "", "does not name"}, // it has just been begun
	} {
		for _, clean := range []bool{false, true} {
			m, want, name := example(), c.running, "/data/journal-00000000000"+c.generation+".db"
			if m.Clean = clean; clean {
				want = c.stopped
			}
			onDisk, err := m.CheckJournal(name, c.mark, c.end)
			expectDamage(t, err, name, want)
			if s := m.Journals[filepath.Base(name)]; err == nil && onDisk != s.End {
				t.Errorf("%s: %d bytes are on disk, not %d", name, onDisk, s.End)
			}
		}
	}
	if got := example().MissingJournals([]string{"journal-000000000008.db"}); !slices.Equal(got, []string{"journal-000000000007.db"}) {
		t.Errorf("%q are missing", got)
	}
}

// expectDamage expects an *aof.DamageError with part of a reason, or no error if that is empty.
func expectDamage(t *testing.T, err error, file, reason string) {
	t.Helper()
	if reason == "" {
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		return
	}
	d, ok := errors.AsType[*aof.DamageError](err)
	if !ok || d.File != file || d.From > d.To || !strings.Contains(d.Reason, reason) {
		t.Errorf("%s: %v, want %q", file, err, reason)
	}
}

// FuzzParseManifest: what is accepted is exactly what Text writes.
func FuzzParseManifest(f *testing.F) {
	f.Add(example().Text())
	f.Add(NewManifest().Text())
	f.Add("")
	f.Add("mayfly manifest\nstopped\nstore a 00000001 -5\njournal b 00000001 7\ncrc32c 00000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parseManifest(text); err == nil && m.Text() != text {
			t.Errorf("%q is read as %+v", text, m)
		}
	})
}
