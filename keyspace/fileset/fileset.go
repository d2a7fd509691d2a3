package fileset

import (
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/manifest"
	"mayfly/keyspace/scrub"
	"mayfly/keyspace/store"
	"mayfly/vfs"
)

// Set is the files of a data folder in use. Not safe for concurrent use.
type Set struct {
	Folder  *datadir.Dir
	Stores  []*store.Store
	Journal *journal.Journal

	text      string                      // of the manifest on disk
	newest    uint64                      // the newest generation of the journal that it names
	below     uint64                      // journals of lower generations are not needed: they are removed, or about to be
	replacing map[string][]manifest.State // by store: both files of a compaction of which the next start may find either
}

// ReadManifest reads the manifest of a folder, and checks that all journals which it names exist.
func ReadManifest(fsys vfs.FS, dir string) (*manifest.Manifest, error) {
	m, err := manifest.Read(fsys, dir)
	if err != nil {
		return nil, err
	}
	files, err := journal.Files(fsys, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f.Path))
	}
	if missing := m.MissingJournals(names); len(missing) > 0 {
		return nil, &aof.DamageError{File: filepath.Join(dir, missing[0]), To: m.Journals[missing[0]].End, Reason: "the file is missing"}
	}
	return m, nil
}

// NewManifest makes the manifest of stores and of a journal's files.
func NewManifest(clean bool, stores []*store.Store, journals []journal.FileInfo) *manifest.Manifest {
	m := manifest.New()
	m.Clean = clean
	for _, s := range stores {
		m.Stores[filepath.Base(s.Path())] = []manifest.State{{Mark: s.Mark(), End: s.OnDisk()}}
	}
	for i, f := range journals {
		end := f.Size
		if !clean && i == len(journals)-1 {
			end = aof.SealSize // a power cut may take back what follows
		}
		m.Journals[filepath.Base(f.Path)] = manifest.State{Mark: f.Mark, End: end}
	}
	return m
}

// WriteManifest writes what the folder holds.
func (s *Set) WriteManifest(clean bool) error {
	files := s.Journal.Files()
	for files[0].Generation < s.below {
		files = files[1:]
	}
	m := NewManifest(clean, s.Stores, files)
	for name, states := range s.replacing {
		m.Stores[name] = states
	}
	if err := m.Write(s.Folder.FS, s.Folder.Path); err != nil {
		return err
	}
	s.newest, s.text = files[len(files)-1].Generation, m.Text()
	return nil
}

// Begin writes the manifest of a start, and makes the first file of the journal. Before anything is written that the
// manifest of the last run does not name, that says that a server runs. After an error Begin can be repeated.
func (s *Set) Begin(last *manifest.Manifest, makeFile func() error) error {
	if last.Clean {
		running := *last
		running.Clean = false
		if err := running.Write(s.Folder.FS, s.Folder.Path); err != nil {
			return err
		}
		last.Clean = false
	}
	if err := makeFile(); err != nil {
		return err
	}
	return s.WriteManifest(false)
}

// NameJournal has the manifest name the newest journal, unless it does.
func (s *Set) NameJournal(generation uint64) error {
	if generation <= s.newest {
		return nil
	}
	return s.WriteManifest(false)
}

// DropJournals removes the journals of generations below from the manifest, and then the files: a start would miss a
// file that the manifest names.
func (s *Set) DropJournals(below uint64) error {
	s.below = below
	if err := s.WriteManifest(false); err != nil {
		return err
	}
	return s.Journal.Remove(below)
}

// Announce returns a function that has the manifest name the file of a store and the one that is about to take its
// place.
func (s *Set) Announce(of *store.Store) func(mark uint32, end int64) error {
	return func(mark uint32, end int64) error {
		old := manifest.State{Mark: of.Mark(), End: of.OnDisk()}
		s.replacing = map[string][]manifest.State{filepath.Base(of.Path()): {old, {Mark: mark, End: end}}}
		return s.WriteManifest(false)
	}
}

// Settle has the manifest name one file of a store again, once it is known which one the next start finds.
func (s *Set) Settle(of *store.Store) error {
	if s.replacing == nil || of.Broken() != nil {
		return nil
	}
	s.replacing = nil
	return s.WriteManifest(false)
}

// Paths returns the paths of all files, and how many bytes they have.
func (s *Set) Paths() (paths []string, bytes int64) {
	paths = []string{s.path(datadir.FormatName), s.path(manifest.Name)}
	for _, of := range s.Stores {
		paths, bytes = append(paths, of.Path()), bytes+of.Size()
	}
	for _, j := range s.Journal.Files() {
		paths, bytes = append(paths, j.Path), bytes+j.Size
	}
	return paths, bytes
}

// File returns a file as it must be now, nil if there is none.
func (s *Set) File(path string) *scrub.File {
	switch path {
	case s.path(datadir.FormatName):
		return &scrub.File{FS: s.Folder.FS, Path: path, Text: s.Folder.FormatText()}
	case s.path(manifest.Name):
		return &scrub.File{FS: s.Folder.FS, Path: path, Text: s.text}
	}
	for _, of := range s.Stores {
		if of.Path() == path {
			return &scrub.File{FS: s.Folder.FS, Path: path, Use: aof.Store, Mark: of.Mark(), Size: of.Sealed()}
		}
	}
	for _, j := range s.Journal.Files() {
		if j.Path == path {
			return s.journalFile(j)
		}
	}
	return nil
}

// RewriteText writes the file "format" or the manifest anew.
func (s *Set) RewriteText(path string) error {
	if path == s.path(datadir.FormatName) {
		return s.Folder.WriteFormat()
	}
	return s.WriteManifest(false)
}

// Freeze commits what waits, opens the files of the state of this moment, and returns their manifest. The caller closes
// the files, also after an error.
func (s *Set) Freeze() (files []*scrub.File, m *manifest.Manifest, err error) {
	journals, err := s.Journal.Snapshot() // later changes are not part of it
	if err != nil {
		return nil, nil, err
	}
	files = append(files, s.File(s.path(datadir.FormatName)))
	for _, of := range s.Stores {
		files = append(files, s.File(of.Path()))
	}
	for _, j := range journals {
		files = append(files, s.journalFile(j))
	}
	for _, f := range files {
		if err := f.Open(); err != nil {
			return files, nil, err
		}
	}
	return files, NewManifest(true, s.Stores, journals), nil
}

func (s *Set) path(name string) string { return filepath.Join(s.Folder.Path, name) }

func (s *Set) journalFile(j journal.FileInfo) *scrub.File {
	return &scrub.File{FS: s.Folder.FS, Path: j.Path, Use: aof.Journal, Mark: j.Mark, Size: j.Size}
}
