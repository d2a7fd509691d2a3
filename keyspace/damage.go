package keyspace

import (
	"errors"
	"slices"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/scrub"
	"mayfly/keyspace/store"
)

// Scrubber checks the files on disk, in the background.
func (ks *Keyspace) Scrubber() *scrub.Scrubber { return ks.scrub }

// Damage says which files on disk are damaged and could not be written anew yet; nil if there are none. Nothing is lost
// while the server runs, but the next start would refuse them.
func (ks *Keyspace) Damage() error {
	s := ks.scrub.Stats()
	if s.Damaged == 0 {
		return nil
	}
	return ks.ForClients(errors.New(s.Damage))
}

// scrubFolder is the data folder as a [scrub.Folder].
type scrubFolder struct{ ks *Keyspace }

func (f scrubFolder) Files() (paths []string, bytes int64) {
	f.ks.checkpoint.mu.Lock()
	defer f.ks.checkpoint.mu.Unlock()
	if !f.ks.journal.Begun() { // the disk is full, and the manifest may be that of the last run
		return nil, 0
	}
	return f.ks.files.Paths()
}

func (f scrubFolder) File(path string) (*scrub.File, error) {
	f.ks.checkpoint.mu.Lock()
	defer f.ks.checkpoint.mu.Unlock()
	file := f.ks.files.File(path)
	if file == nil {
		return nil, nil
	}
	return file, file.Open()
}

// Repair writes a file anew. A journal is not: a checkpoint brings its changes to the stores and removes it.
func (f scrubFolder) Repair(damaged *scrub.File) error {
	ks := f.ks
	ks.checkpoint.mu.Lock()
	defer ks.checkpoint.mu.Unlock()
	now := ks.files.File(damaged.Path)
	switch {
	case now == nil || now.Mark != damaged.Mark: // it has been replaced since
		return nil
	case damaged.Text != "":
		return ks.files.RewriteText(damaged.Path)
	case damaged.Use == aof.Journal:
		ks.journal.Append(ks.clockRecord(ks.lease.End())) // an empty one would stay the newest
		return ks.saveMakingRoom()
	}
	i := slices.IndexFunc(ks.stores(), func(s *store.Store) bool { return s.Path() == damaged.Path })
	return ks.rewriteStore(ks.stores()[i])
}

// rewriteStore writes a store anew from memory. checkpoint.mu must be held.
//
// The new file has the present state of the items that are marked as stored. Later changes are in the journal, which
// is forced to disk before the file takes the place of the damaged one. Others are not written: a delete of theirs would
// not reach the store.
func (ks *Keyspace) rewriteStore(s *store.Store) error {
	err := s.Rewrite(ks.files.Announce(s), func(set func(aof.Op)) error {
		if s == ks.catStore {
			ks.eachCatalogueRecord(set)
		}
		for _, p := range ks.partitions {
			if p.store == s {
				p.eachStored(ks.checkpoint.pieces, set)
			}
		}
		return errors.Join(ks.journal.CommitAll(), ks.journal.Sync())
	})
	ks.noteBroken()
	return errors.Join(err, ks.files.Settle(s))
}

// eachCatalogueRecord visits the records of the catalogue, and counts them as those in its store. checkpoint.mu must be
// held.
func (ks *Keyspace) eachCatalogueRecord(visit func(aof.Op)) {
	var tx Tx
	ks.lockAll(&tx)
	all := make(map[uint32]*Container, len(ks.catalogue.list))
	for _, c := range ks.catalogue.list {
		all[c.number] = c
	}
	ops := []aof.Op{{Key: record.ClockKey, Rec: string(ks.clockRecord(ks.lease.End()))}}
	tx.Close()
	clear(ks.checkpoint.records)
	for _, o := range append(ops, ks.captureContainers(all)...) {
		if !o.Del { // else it was dropped meanwhile
			ks.checkpoint.records.Count([]aof.Op{o})
			visit(o)
		}
	}
}

// eachStored visits the items that the store has in their present state. It locks the partition for each piece.
func (p *partition) eachStored(in capturing, visit func(aof.Op)) {
	p.mu.Lock()
	tables := p.shard.Tables()
	p.mu.Unlock()
	var ops []aof.Op
	for _, t := range tables {
		for cursor, more := 0, true; more; in.between() {
			p.mu.Lock()
			cursor, more = t.EachStored(cursor, in.piece, func(key, rec, body string) {
				ops = append(ops, aof.Op{Key: key, Rec: rec, Body: body})
			})
			p.mu.Unlock()
			for _, o := range ops {
				visit(o)
			}
			ops = ops[:0]
		}
	}
}
