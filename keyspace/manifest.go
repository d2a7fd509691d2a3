package keyspace

import (
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/manifest"
	"mayfly/keyspace/store"
)

// manifestState is what the next manifest depends on, beside the files. checkpoint.mu protects it.
type manifestState struct {
	newest    uint64                      // the newest generation of the journal that the manifest on disk names
	below     uint64                      // journals of lower generations are not needed: they are removed, or about to be
	replacing map[string][]manifest.State // by store: both files of a compaction of which the next start may find either
}

// readManifest reads the manifest of a folder, and checks that all journals which it names exist.
func readManifest(dir string) (*manifest.Manifest, error) {
	m, err := manifest.Read(dir)
	if err != nil {
		return nil, err
	}
	files, err := journal.Files(dir)
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

// newManifest makes the manifest of stores and of a journal's files.
func newManifest(clean bool, stores []*store.Store, journals []journal.FileInfo) *manifest.Manifest {
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

// writeManifest writes what the data folder holds. checkpoint.mu must be held, unless nothing is written yet or no
// longer.
func (ks *Keyspace) writeManifest(clean bool) error {
	files := ks.journal.Files()
	for files[0].Generation < ks.manifest.below {
		files = files[1:]
	}
	m := newManifest(clean, ks.stores(), files)
	for name, states := range ks.manifest.replacing {
		m.Stores[name] = states
	}
	if err := m.Write(ks.opt.Dir); err != nil {
		return err
	}
	ks.manifest.newest = files[len(files)-1].Generation
	return nil
}

// dropJournals removes the journals of generations below from the manifest, and then the files: a start would miss a
// file that the manifest names.
func (ks *Keyspace) dropJournals(below uint64) error {
	ks.manifest.below = below
	if err := ks.writeManifest(false); err != nil {
		return err
	}
	return ks.journal.Remove(below)
}

// announce returns a function that has the manifest name the file of a store and the one that is about to take its
// place.
func (ks *Keyspace) announce(s *store.Store) func(mark uint32, end int64) error {
	return func(mark uint32, end int64) error {
		old := manifest.State{Mark: s.Mark(), End: s.OnDisk()}
		ks.manifest.replacing = map[string][]manifest.State{filepath.Base(s.Path()): {old, {Mark: mark, End: end}}}
		return ks.writeManifest(false)
	}
}

// settle has the manifest name one file of a store again, once it is known which one the next start finds.
func (ks *Keyspace) settle(s *store.Store) error {
	if ks.manifest.replacing == nil || s.Broken() != nil {
		return nil
	}
	ks.manifest.replacing = nil
	return ks.writeManifest(false)
}
