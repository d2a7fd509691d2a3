package keyspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/manifest"
	"mayfly/keyspace/store"
)

// SaveInBackground requests a checkpoint. It returns at once; false if an earlier request has not finished.
func (ks *Keyspace) SaveInBackground() bool {
	if ks.checkpoint.asked.Swap(true) {
		return false
	}
	ks.wakeCheckpoint()
	return true
}

// LastSave returns the time in ms of the last checkpoint, or of the start if there was none.
func (ks *Keyspace) LastSave() int64 { return ks.checkpoint.last.Load() }

// Dir is the data folder.
func (ks *Keyspace) Dir() string { return ks.opt.Dir }

// InTheWayError is the error of [Keyspace.Backup] for something at path.part that it must not take over.
type InTheWayError = datadir.InTheWayError

// Backup writes a copy of the data folder that can be opened like any other, while reads and writes continue. The
// copy is the state of one moment during the call, with everything that was committed before the call. path must not
// exist; its parent folder must. Until all is on disk the copy has the name path.part. A failed backup leaves nothing;
// the next one to the same path removes what a crash leaves.
//
// The stores do not change between checkpoints. They are not a state of one moment, because the last checkpoint
// captured one piece after the other. But the journal that began before it has all changes since, so the stores and
// that journal up to any commit are consistent. A crash during a checkpoint is harmless for the same reason.
//
// Copying rests as compactions do. Checkpoints and compactions continue meanwhile, so the journal does not grow
// without bound: see [Keyspace.freeze].
func (ks *Keyspace) Backup(path string) (err error) {
	staging, err := datadir.NewStaging(path)
	if err != nil {
		return err
	}
	defer func() { err = staging.Close(err) }()
	frozen, m, err := ks.freeze()
	defer frozen.close()
	if err != nil {
		return err
	}
	var pacer *store.Pacer
	if pace := ks.compaction.pace; pace != 0 {
		pacer = store.NewPacer(pace, ks.stop, nil)
	}
	for _, f := range frozen {
		if err := f.copyTo(staging.Dir(), pacer); err != nil {
			return err
		}
	}
	if err := m.Write(staging.Dir()); err != nil {
		return err
	}
	return staging.Finish()
}

// frozenFile is the state of a file at one moment: its first size bytes never change. It stays readable when a
// compaction replaces it or a checkpoint removes it.
type frozenFile struct {
	f    *os.File
	size int64
}

type frozenFiles []frozenFile

// freeze makes a checkpoint, opens the files of the state of this moment, and returns their manifest. They are copied
// without its lock. The caller closes them, also after an error.
func (ks *Keyspace) freeze() (files frozenFiles, m *manifest.Manifest, err error) {
	ks.checkpoint.mu.Lock()
	defer ks.checkpoint.mu.Unlock()
	if err := ks.saveLocked(); err != nil {
		return nil, nil, err
	}
	list, err := ks.journal.Snapshot() // later changes are not part of the backup
	if err != nil {
		return nil, nil, err
	}
	m = newManifest(true, ks.stores(), list)
	for _, s := range ks.stores() {
		list = append(list, journal.FileInfo{Path: s.Path(), Size: s.Sealed()})
	}
	format := filepath.Join(ks.opt.Dir, datadir.FormatName)
	fi, err := os.Stat(format)
	if err != nil {
		return nil, nil, err
	}
	list = append(list, journal.FileInfo{Path: format, Size: fi.Size()})
	for _, file := range list {
		f, err := os.Open(file.Path)
		if err != nil {
			return files, nil, err
		}
		files = append(files, frozenFile{f, file.Size})
	}
	return files, m, nil
}

func (files frozenFiles) close() {
	for _, f := range files {
		f.f.Close() // it was only read
	}
}

// copyTo copies the file into a folder, at the pace of a pacer, and forces the copy to disk.
func (f frozenFile) copyTo(dir string, pacer *store.Pacer) error {
	out, err := aof.CreateNew(filepath.Join(dir, filepath.Base(f.f.Name())))
	if err != nil {
		return err
	}
	for at := int64(0); at < f.size && err == nil; {
		var n int64
		n, err = io.CopyN(out, f.f, min(f.size-at, store.StepBytes))
		at += n
		pacer.Wrote(n)
	}
	return errors.Join(err, aof.Fsync(out), out.Close())
}
