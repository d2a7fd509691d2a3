package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// Rotate commits what waits and switches to a new file. All LSNs handed out before the call are in files of
// lower generations than the one returned, and those are on disk.
//
// Commits wait briefly: they continue while the new file is made and most of the old one is forced to disk.
func (j *Journal) Rotate() (generation uint64, err error) {
	if !j.begun.Load() {
		if err := j.CommitAll(); err != nil {
			return 0, err
		}
	}
	if j.Empty() {
		return j.generation, nil
	}
	if err := j.Sync(); err != nil {
		return 0, err
	}
	next, err := j.prepare()
	if err != nil {
		return 0, err
	}
	defer next.close()
	if err := j.Sync(); err != nil { // little is left
		return 0, err
	}
	old, err := j.switchTo(next)
	if old != nil {
		if err := old.Close(); err != nil {
			j.log.Error().Err(err).Str("file", old.Path()).Msg("closing a journal")
		}
	}
	return j.generation, err
}

// switchTo makes a file the newest, and returns the one before it.
func (j *Journal) switchTo(next *nextFile) (old *aof.File, err error) {
	j.lead()
	resign := sync.OnceFunc(func() {
		j.step.End()
		j.resign()
	})
	defer resign()
	if err := j.commitTo(j.Last(), 0); err != nil {
		return nil, err
	}
	j.step.Begin(clock.Monotonic(), j.end.Load()-j.onDisk.Load())
	// The old file must be whole on disk before the new one can hold anything: a power cut may take
	// the last commits, but never earlier ones and leave later ones.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if err := j.endFileLocked(); err != nil {
		return nil, err
	}
	old = j.file
	done := FileInfo{old.Path(), j.generation, j.end.Load(), j.mark}
	if err := j.installLocked(next, j.generation+1); err != nil {
		return nil, err
	}
	j.finished = append(j.finished, done)
	// Commits continue. An fsync needs syncMu, so it comes after that of the file's name.
	resign()
	return old, j.syncNameLocked(next)
}

// nextFile is a file that is ready to become the newest: its head is on disk, under a temporary name.
type nextFile struct {
	file *aof.File
	mark uint32
	dir  vfs.File // already open: only an fsync can fail once the file is the newest
}

// TempName is the name of a file that is not yet part of the journal. A start ignores it.
const TempName = "journal.tmp"

// prepare makes the file of the next generation.
func (j *Journal) prepare() (_ *nextFile, err error) {
	next := &nextFile{mark: aof.NewMark()}
	defer func() {
		if err != nil {
			next.close()
		}
	}()
	if next.dir, err = j.fs.Open(j.dir); err != nil {
		return nil, err
	}
	path := filepath.Join(j.dir, TempName)
	if err := vfs.WriteFile(j.fs, path, aof.FirstSeal(next.mark).Append(nil)); err != nil {
		j.fs.Remove(path) // a start ignores it, but it takes room
		return nil, err
	}
	f, err := j.fs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	next.file = aof.NewFile(j.fs, f, path, headSize)
	return next, nil
}

// close closes the folder, and the file unless it has been installed.
func (n *nextFile) close() {
	if n.dir != nil {
		n.dir.Close() // it was only read
	}
	if n.file != nil {
		n.file.Close() // it is empty
	}
}

// installLocked renames the file to that of a generation and makes it the newest. The caller holds the lead
// and syncMu, unless the journal is not in use yet, and calls syncNameLocked.
func (j *Journal) installLocked(next *nextFile, generation uint64) error {
	if err := next.file.Rename(filepath.Join(j.dir, FileName(generation))); err != nil {
		return err
	}
	j.file, j.generation, j.mark, j.diskFull = next.file, generation, next.mark, false
	j.end.Store(headSize)
	j.onDisk.Store(headSize)
	j.total.Add(headSize)
	next.file = nil
	return nil
}

// syncNameLocked forces the name of an installed file to disk. syncMu is held, unless the journal is not in
// use yet.
func (j *Journal) syncNameLocked(next *nextFile) error {
	if err := next.dir.Sync(); err != nil {
		return j.breakLocked(err)
	}
	return nil
}

// firstFile makes the first file of a run.
func (j *Journal) firstFile() error {
	next, err := j.prepare()
	if err != nil {
		return err
	}
	defer next.close()
	if err := j.installLocked(next, j.first); err != nil {
		return err
	}
	if err := j.syncNameLocked(next); err != nil {
		return errors.Join(err, j.file.Close())
	}
	return nil
}

// Remove deletes the files of generations below, but not the newest. It deletes the oldest first, each
// durably: after a power cut a gap would look like a lost file.
func (j *Journal) Remove(below uint64) error {
	for len(j.finished) > 0 && j.finished[0].Generation < below {
		oldest := j.finished[0]
		err := j.fs.Remove(oldest.Path)
		if errors.Is(err, fs.ErrNotExist) { // an earlier call failed after that
			err = nil
		}
		if err := errors.Join(err, vfs.SyncDir(j.fs, j.dir)); err != nil {
			return err
		}
		j.finished = j.finished[1:]
		j.total.Add(-oldest.Size)
	}
	return nil
}

// Files returns the files, oldest first, the newest as it stands behind the last commit: the bytes below
// their sizes never change. One goroutine at a time calls Files, Rotate and Remove.
func (j *Journal) Files() []FileInfo {
	return append(slices.Clone(j.finished), FileInfo{j.file.Path(), j.generation, j.end.Load(), j.mark})
}

// FileName is the name of a generation's file.
func FileName(generation uint64) string { return fmt.Sprintf("journal-%012d.db", generation) }

// FileInfo is a file of a journal.
type FileInfo struct {
	Path       string
	Generation uint64
	Size       int64  // bytes
	Mark       uint32 // of its seals; 0 if the file has not been read
}

// Files lists the journal's files in a folder, oldest first.
func Files(fsys vfs.FS, dir string) (files []FileInfo, err error) {
	entries, err := fsys.ReadDir(dir) // in ascending order of names, which is that of generations
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		digits := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "journal-"), ".db")
		n, ok := record.ReadDecimal(digits)
		if !ok || e.Name() != FileName(n) {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			return nil, err
		}
		files = append(files, FileInfo{Path: filepath.Join(dir, e.Name()), Generation: n, Size: fi.Size()})
	}
	return files, nil
}
