package storage

import (
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/store"
	"mayfly/vfs"
)

// fileSet is the files of a data folder in use, and the manifest that names them. The manifest is written
// anew whenever the files change and before anything relies on it: see [fileSet.writeManifest]. Not safe for
// concurrent use.
type fileSet struct {
	folder  *datadir.Dir
	stores  []*store.Store
	journal *journal.Journal

	text      string                         // of the manifest on disk
	newest    uint64                         // the newest generation of the journal that it names
	below     uint64                         // journals of lower generations are not needed: they are removed, or about to be
	replacing map[string][]datadir.FileState // by store: both files of a compaction of which the next start may find either
}

// readManifest reads the manifest of a folder, and checks that all journals which it names exist.
func readManifest(fsys vfs.FS, dir string) (*datadir.Manifest, error) {
	m, err := datadir.ReadManifest(fsys, dir)
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
func NewManifest(clean bool, stores []*store.Store, journals []journal.FileInfo) *datadir.Manifest {
	m := datadir.NewManifest()
	m.Clean = clean
	for _, s := range stores {
		m.Stores[filepath.Base(s.Path())] = []datadir.FileState{{Mark: s.Mark(), End: s.OnDisk()}}
	}
	for i, f := range journals {
		end := f.Size
		if !clean && i == len(journals)-1 {
			end = aof.SealSize // a power cut may take back what follows
		}
		m.Journals[filepath.Base(f.Path)] = datadir.FileState{Mark: f.Mark, End: end}
	}
	return m
}

// writeManifest writes what the folder holds.
func (s *fileSet) writeManifest(clean bool) error {
	files := s.journal.Files()
	for files[0].Generation < s.below {
		files = files[1:]
	}
	m := NewManifest(clean, s.stores, files)
	for name, states := range s.replacing {
		m.Stores[name] = states
	}
	if err := m.Write(s.folder.FS, s.folder.Path); err != nil {
		return err
	}
	s.newest, s.text = files[len(files)-1].Generation, m.Text()
	return nil
}

// begin writes the manifest of a start, and makes the first file of the journal. Before anything is written
// that the manifest of the last run does not name, that says that a server runs. After an error begin can be
// repeated.
func (s *fileSet) begin(last *datadir.Manifest, makeFile func() error) error {
	if last.Clean {
		running := *last
		running.Clean = false
		if err := running.Write(s.folder.FS, s.folder.Path); err != nil {
			return err
		}
		last.Clean = false
	}
	if err := makeFile(); err != nil {
		return err
	}
	return s.writeManifest(false)
}

// nameJournal has the manifest name the newest journal, unless it does.
func (s *fileSet) nameJournal(generation uint64) error {
	if generation <= s.newest {
		return nil
	}
	return s.writeManifest(false)
}

// dropJournals removes the journals of generations below from the manifest, and then the files: a start would
// miss a file that the manifest names.
func (s *fileSet) dropJournals(below uint64) error {
	s.below = below
	if err := s.writeManifest(false); err != nil {
		return err
	}
	return s.journal.Remove(below)
}

// announce returns a function that has the manifest name the file of a store and the one that is about to
// take its place.
func (s *fileSet) announce(of *store.Store) func(mark uint32, end int64) error {
	return func(mark uint32, end int64) error {
		old := datadir.FileState{Mark: of.Mark(), End: of.OnDisk()}
		s.replacing = map[string][]datadir.FileState{filepath.Base(of.Path()): {old, {Mark: mark, End: end}}}
		return s.writeManifest(false)
	}
}

// settle has the manifest name one file of a store again, once it is known which one the next start finds.
func (s *fileSet) settle(of *store.Store) error {
	if s.replacing == nil || of.Broken() != nil {
		return nil
	}
	s.replacing = nil
	return s.writeManifest(false)
}

// paths returns the paths of all files, and how many bytes they have.
func (s *fileSet) paths() (paths []string, bytes int64) {
	paths = []string{s.path(datadir.FormatName), s.path(datadir.ManifestName)}
	for _, of := range s.stores {
		paths, bytes = append(paths, of.Path()), bytes+of.Size()
	}
	for _, j := range s.journal.Files() {
		paths, bytes = append(paths, j.Path), bytes+j.Size
	}
	return paths, bytes
}

// file returns a file as it must be now, nil if there is none.
func (s *fileSet) file(path string) *dataFile {
	switch path {
	case s.path(datadir.FormatName):
		return &dataFile{FS: s.folder.FS, Path: path} // see open
	case s.path(datadir.ManifestName):
		return &dataFile{FS: s.folder.FS, Path: path, Text: s.text}
	}
	for _, of := range s.stores {
		if of.Path() == path {
			return &dataFile{FS: s.folder.FS, Path: path, Use: aof.Store, Mark: of.Mark(), Size: of.Sealed()}
		}
	}
	for _, j := range s.journal.Files() {
		if j.Path == path {
			return s.journalFile(j)
		}
	}
	return nil
}

// open opens a file. The file "format" may be replaced at any time but while it is opened.
func (s *fileSet) open(f *dataFile) error {
	if f.Path != s.path(datadir.FormatName) {
		return f.Open()
	}
	return s.folder.WithFormat(func(text string) error {
		f.Text = text
		return f.Open()
	})
}

// rewriteText writes the file "format" or the manifest anew.
func (s *fileSet) rewriteText(path string) error {
	if path == s.path(datadir.FormatName) {
		return s.folder.WriteFormat()
	}
	return s.writeManifest(false)
}

// freeze opens the files of what is committed at this moment, and returns their manifest. The caller closes
// the files, also after an error.
func (s *fileSet) freeze() (files []*dataFile, m *datadir.Manifest, err error) {
	journals := s.journal.Files() // later changes are not part of it
	files = append(files, s.file(s.path(datadir.FormatName)))
	for _, of := range s.stores {
		files = append(files, s.file(of.Path()))
	}
	for _, j := range journals {
		files = append(files, s.journalFile(j))
	}
	for _, f := range files {
		if err := s.open(f); err != nil {
			return files, nil, err
		}
	}
	return files, NewManifest(true, s.stores, journals), nil
}

func (s *fileSet) path(name string) string { return filepath.Join(s.folder.Path, name) }

func (s *fileSet) journalFile(j journal.FileInfo) *dataFile {
	return &dataFile{FS: s.folder.FS, Path: j.Path, Use: aof.Journal, Mark: j.Mark, Size: j.Size}
}
