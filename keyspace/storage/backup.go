package storage

import (
	"context"
	"errors"
	"path/filepath"

	"mayfly/keyspace/datadir"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/store"
)

// SaveInBackground requests a checkpoint. It returns at once; false if an earlier request has not finished.
func (e *Engine) SaveInBackground() bool {
	if e.checkpoint.asked.Swap(true) {
		return false
	}
	e.Wake()
	return true
}

// LastSave returns the time in ms of the last checkpoint, or of the start if there was none.
func (e *Engine) LastSave() int64 { return e.checkpoint.last.Load() }

// Backup writes a copy of the data folder that can be opened like any other, while reads and writes continue.
// The copy is the state of one moment during the call, with everything that was committed before the call.
// path must not exist; its parent folder must. Until all is on disk the copy has the name path.part. A failed
// backup leaves nothing; the next one to the same path removes what a crash leaves.
//
// The stores do not change between checkpoints. They are not a state of one moment, because the last
// checkpoint captured one piece after the other. But the journal that began before it has all changes since,
// so the stores and that journal up to any commit are consistent. A crash during a checkpoint is harmless for
// the same reason.
//
// The copies of the stores have no waste, and nothing that was dead when the backup began.
//
// Copying rests as compactions do. Checkpoints and compactions continue meanwhile, so the journal does not
// grow without bound: see [Engine.freeze].
//
// What is copied is checked. If a file is damaged, all files are checked, damaged ones are written anew, and
// the backup begins again.
//
// The backup fails when the context ends.
func (e *Engine) Backup(ctx context.Context, path string) error {
	err := e.backup(ctx, path)
	if !IsDamage(err) {
		return err
	}
	e.Options.Log.Error().Err(err).Msg("a backup has found damage")
	if err := e.Scrub.Scrub(ctx, e.backupPacer(ctx)); err != nil {
		if ctx.Err() != nil {
			e.Scrub.Ask() // the damage is there, whether anybody wants a backup or not
		}
		return err
	}
	return e.backup(ctx, path)
}

func (e *Engine) backup(ctx context.Context, path string) (err error) {
	staging, err := datadir.NewStaging(e.Options.FS, path)
	if err != nil {
		return err
	}
	defer func() { err = staging.Close(err) }()
	gone := e.judgeDead()
	files, m, whole, err := e.freeze()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	if !whole { // the journal may touch what the stores have as dead
		gone = func(key, _ []byte) bool { return string(key) == record.WasteKey }
	}
	pacer := e.backupPacer(ctx)
	for _, f := range files {
		if err := copyFile(ctx, f, staging.Dir(), m, gone, pacer); err != nil {
			return err
		}
	}
	if err := m.Write(e.Options.FS, staging.Dir()); err != nil {
		return err
	}
	return staging.Finish()
}

// copyFile copies a file into a folder. The manifest gets what is different of a store's copy.
func copyFile(ctx context.Context, f *dataFile, dir string, m *datadir.Manifest, gone func(key, rec []byte) bool, pacer *store.Pacer) error {
	name := filepath.Base(f.Path)
	if _, ok := m.Stores[name]; !ok {
		return f.copyTo(ctx, dir, pacer)
	}
	mark, end, err := f.copyLive(ctx, dir, gone, pacer)
	m.Stores[name] = []datadir.FileState{{Mark: mark, End: end}}
	return err
}

// judgeDead returns a function that reports whether a backup leaves out the record under a key: that of an
// item which is dead already, and which nothing can bring back. It judges by the time and the rules before
// the checkpoint of the backup: the journal may have a later touch of an item that lives now, which needs the
// item's record.
func (e *Engine) judgeDead() func(key, rec []byte) bool {
	purgeable := e.memory.Purgeable()
	return func(key, rec []byte) bool {
		if string(key) == record.WasteKey {
			return true // the copy has none
		}
		k, err := record.SplitKey(record.View(key))
		if err != nil {
			return false
		}
		it, err := record.DecodeHeader(record.View(rec))
		if err != nil || k.Page || it.Kind.IsCollection() && elements.IsHead(it.Body) {
			return false // a page lives as long as its key, and that has the times of its pages
		}
		limits, known := purgeable[k.Container]
		return known && limits.Select(it.TS, it.ExpireAt)
	}
}

// backupPacer returns the pacer of a backup. A backup whose context ends does not rest any more, nor does one
// during the end of the engine.
func (e *Engine) backupPacer(ctx context.Context) *store.Pacer {
	if e.Options.Pace == 0 {
		return nil
	}
	return store.NewPacer(e.Options.Pace, ctx.Done(), func() bool {
		select {
		case <-e.Options.Stop:
			return true
		default:
			return false
		}
	})
}

// freeze makes a checkpoint, opens the files of the state of this moment, and returns their manifest. They
// are copied without its lock. The caller closes them, also after an error.
//
// A leader without a majority makes no checkpoint, as its memory has changes that are not committed; then
// whole is false. Its files have what is committed, which a node far behind needs to be part of a majority.
func (e *Engine) freeze() (files []*dataFile, m *datadir.Manifest, whole bool, err error) {
	e.Lock()
	defer e.Unlock()
	err = e.saveMakingRoom()
	whole = err == nil
	if !whole && !errors.Is(err, replica.ErrNoMajority) {
		return nil, nil, false, err
	}
	files, m, err = e.files.freeze()
	return files, m, whole, err
}
