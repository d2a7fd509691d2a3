package storage

import (
	"errors"
	"slices"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// scrubFolder is the data folder as a [scrubbedFolder].
type scrubFolder struct{ e *Engine }

func (f scrubFolder) Files() (paths []string, bytes int64) {
	f.e.Lock()
	defer f.e.Unlock()
	if !f.e.Journal.Begun() { // the disk is full, and the manifest may be that of the last run
		return nil, 0
	}
	return f.e.files.paths()
}

func (f scrubFolder) File(path string) (*dataFile, error) {
	f.e.Lock()
	defer f.e.Unlock()
	file := f.e.files.file(path)
	if file == nil {
		return nil, nil
	}
	return file, f.e.files.open(file)
}

// Repair writes a file anew. A journal is not: a checkpoint brings its changes to the stores and removes it.
func (f scrubFolder) Repair(damaged *dataFile) error {
	e := f.e
	e.Lock()
	defer e.Unlock()
	now := e.files.file(damaged.Path)
	switch {
	case e.dropped:
		return errDropped
	case now == nil || now.Mark != damaged.Mark: // it has been replaced since
		return nil
	case damaged.Text != "":
		return e.files.rewriteText(damaged.Path)
	case damaged.Use == aof.Journal:
		if err := e.memory.Touch(); err != nil { // an empty one would stay the newest
			return err
		}
		return e.saveMakingRoom()
	}
	i := slices.IndexFunc(e.Stores(), func(s *store.Store) bool { return s.Path() == damaged.Path })
	return e.RewriteStore(e.Stores()[i], nil)
}

// RewriteStore writes a store anew from memory, without waste and whatever has become of the old file. The
// engine must be locked.
//
// The new file has the present state of the items that are marked as stored. Later changes are in the
// journal, which is forced to disk before the file takes the place of the old one. Others are not written: a
// delete of theirs would not reach the store.
func (e *Engine) RewriteStore(s *store.Store, pacer *store.Pacer) error {
	err := s.Rewrite(max(s.LSN(), uint64(e.checkpoint.lsn)), e.files.announce(s), func(set func(aof.Op)) error {
		paced := func(o aof.Op) {
			set(o)
			pacer.Wrote(aof.SetSize(len(o.Key), len(o.Rec)+len(o.Body)))
		}
		if i := slices.Index(e.items, s); i >= 0 {
			e.eachStored(e.partitions[i], paced)
		} else {
			e.eachRecord(paced)
		}
		return errors.Join(e.Journal.CommitAll(), e.Journal.Sync())
	})
	e.noteBroken()
	return errors.Join(err, e.files.settle(s))
}

// eachRecord visits the records of the catalogue, and counts them as those in its store. The engine must be
// locked.
func (e *Engine) eachRecord(visit func(aof.Op)) {
	f := &e.checkpoint
	records := e.memory.Records()
	if f.records[record.WasteKey] > 0 {
		records = append(records, wasteOp(f.moments, e.Options.Now()))
	}
	clear(f.records)
	for _, o := range records {
		if !o.Del { // else it was dropped meanwhile
			f.records.Count([]aof.Op{o})
			visit(o)
		}
	}
}
