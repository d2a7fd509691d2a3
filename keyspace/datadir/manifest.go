package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// ManifestName is the manifest's file in a data folder.
const ManifestName = "manifest"

const manifestHeader = "mayfly manifest\n"

// FileState is what is known of a file.
type FileState struct {
	Mark uint32 // of its seals
	End  int64  // bytes up to the end of a seal; the file has at least these
}

// Manifest is what a data folder must hold. Not safe for concurrent use.
type Manifest struct {
	// Clean reports that the server has stopped in good order: all files end exactly where the manifest says.
	Clean bool
	// Stores are the states of the stores by file name. There are two of a store while a compaction replaces
	// its file: either is right.
	Stores map[string][]FileState
	// Journals are the states of the journal's files by name. All but the newest end exactly there.
	Journals map[string]FileState
}

// NewManifest returns an empty manifest.
func NewManifest() *Manifest {
	return &Manifest{Stores: make(map[string][]FileState), Journals: make(map[string]FileState)}
}

// Text is the content of the file. Its last line is the CRC-32C of those before it.
func (m *Manifest) Text() string {
	var b strings.Builder
	b.WriteString(manifestHeader)
	if m.Clean {
		b.WriteString("stopped\n")
	} else {
		b.WriteString("running\n")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Stores)) {
		for _, s := range m.Stores[name] {
			fmt.Fprintf(&b, "store %s %08x %d\n", name, s.Mark, s.End)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Journals)) {
		s := m.Journals[name]
		fmt.Fprintf(&b, "journal %s %08x %d\n", name, s.Mark, s.End)
	}
	text := b.String()
	return fmt.Sprintf("%scrc32c %08x\n", text, record.Sum(0, text))
}

var errManifest = errors.New("its checksum or its form is wrong")

// parseManifest is the inverse of [Manifest.Text].
func parseManifest(text string) (*Manifest, error) {
	m := NewManifest()
	lines := strings.Split(strings.TrimPrefix(text, manifestHeader), "\n")
	m.Clean = lines[0] == "stopped"
	for _, line := range lines[1:] {
		var kind, name string
		var s FileState
		if n, _ := fmt.Sscanf(line, "%s %s %x %d", &kind, &name, &s.Mark, &s.End); n != 4 {
			continue // the comparison with Text below refuses a line that does not belong here
		}
		switch kind {
		case "store":
			m.Stores[name] = append(m.Stores[name], s)
		case "journal":
			m.Journals[name] = s
		}
	}
	if m.Text() != text {
		return nil, errManifest
	}
	return m, nil
}

// ReadManifest reads the manifest of a folder. An *aof.DamageError is the error for one that is missing or
// damaged.
func ReadManifest(fsys vfs.FS, dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	text, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &aof.DamageError{File: path, Reason: "the file is missing"}
	}
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(string(text))
	if err != nil {
		return nil, &aof.DamageError{File: path, To: int64(len(text)), Reason: err.Error()}
	}
	return m, nil
}

// Write replaces the manifest of a folder, durably. After an error the old one is still there, or the new one
// is, which a power cut may take back.
func (m *Manifest) Write(fsys vfs.FS, dir string) error {
	path := filepath.Join(dir, ManifestName)
	err := vfs.WriteFile(fsys, path+".tmp", []byte(m.Text()))
	if err == nil {
		err = fsys.Rename(path+".tmp", path)
	}
	if err != nil {
		fsys.Remove(path + ".tmp") // it means nothing to a start, but it takes room
		return err
	}
	return vfs.SyncDir(fsys, dir)
}

// CheckStore compares a store's file, whose last seal ends at end, with the manifest. It returns how many
// bytes of the file are known to be on disk. The error for a file that is not the one the manifest names is
// an *aof.DamageError.
func (m *Manifest) CheckStore(path string, mark uint32, end int64) (onDisk int64, err error) {
	states := m.Stores[filepath.Base(path)]
	if len(states) == 0 {
		return 0, &aof.DamageError{File: path, To: end, Reason: unnamed}
	}
	i := slices.IndexFunc(states, func(s FileState) bool { return s.Mark == mark })
	s := states[max(i, 0)]
	return s.End, checkFile(path, s, mark, end, m.Clean)
}

// CheckJournal compares a journal's file, whose last seal ends at end, with the manifest. It returns how many
// bytes of the file are known to be on disk. Unless the server has stopped cleanly there may be files that it
// does not name: newer ones, and older ones that a checkpoint was about to remove.
func (m *Manifest) CheckJournal(path string, mark uint32, end int64) (onDisk int64, err error) {
	s, ok := m.Journals[filepath.Base(path)]
	switch {
	case ok:
		return s.End, checkFile(path, s, mark, end, m.Clean || filepath.Base(path) != m.newest())
	case m.Clean:
		return 0, &aof.DamageError{File: path, To: end, Reason: unnamed}
	}
	return 0, nil
}

// MissingJournals returns the names of the journals that the manifest names and that are not among the files,
// in order.
func (m *Manifest) MissingJournals(files []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.Journals)), func(name string) bool {
		return slices.Contains(files, name)
	})
}

// newest is the name of the newest journal, empty for none.
func (m *Manifest) newest() (name string) {
	for n := range m.Journals {
		name = max(name, n)
	}
	return name
}

const unnamed = "the manifest does not name this file: one of both is older, or of another folder"

func checkFile(path string, want FileState, mark uint32, end int64, exact bool) error {
	switch {
	case mark != want.Mark:
		return &aof.DamageError{File: path, To: end, Reason: "its mark is not the one in the manifest: one of both is older, or of another folder"}
	case end < want.End:
		return &aof.DamageError{File: path, From: end, To: want.End, Reason: "the manifest confirms this range, but the file ends before it: it was cut short, or is an older copy"}
	case exact && end > want.End:
		return &aof.DamageError{File: path, From: want.End, To: end, Reason: "the file goes on behind the end that the manifest confirms: one of both is older"}
	}
	return nil
}
