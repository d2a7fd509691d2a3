package keyspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// rotate commits what is pending and goes on in a new file. All tickets handed out before the call
// are in files of lower generations than the one returned, and those are on disk.
func (j *journal) rotate() (generation uint64, err error) {
	if err := j.sync(); err != nil { // most of it without holding commits up
		return 0, err
	}
	j.claim()
	defer j.release()
	if err := j.commitTo(j.last()); err != nil {
		return 0, err
	}
	// The old file must be whole on disk before the new one can hold anything: a power cut may take
	// the last commits, but never earlier ones and leave later ones.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if err := j.syncLocked(j.committed()); err != nil {
		return 0, err
	}
	if j.end.Load() == 0 {
		return j.generation, nil
	}
	old := j.file
	if err := j.newFile(j.generation + 1); err != nil {
		return 0, err
	}
	if err := old.close(); err != nil {
		j.log.Error().Err(err).Str("file", old.f.Name()).Msg("closing a journal")
	}
	return j.generation, nil
}

// newFile makes the file of a generation, durably, and makes it the newest.
func (j *journal) newFile(generation uint64) error {
	f, err := createNew(filepath.Join(j.dir, journalFile(generation)))
	if err != nil {
		return err
	}
	err = fsyncDir(j.dir)
	var file *dbFile
	if err == nil {
		file, err = openDB(f, 0, j.faults)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	j.file, j.generation, j.mark = file, generation, rand.Uint32()
	j.end.Store(0)
	j.onDisk.Store(0)
	return nil
}

// remove deletes the files of generations below, never the newest. Oldest first, each durably: a power
// cut could otherwise leave a gap, which would look like a file that is lost.
func (j *journal) remove(below uint64) error {
	files, err := journalFiles(j.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.generation >= below || f.generation >= j.generation {
			continue
		}
		if err := errors.Join(os.Remove(f.path), fsyncDir(j.dir)); err != nil {
			return err
		}
	}
	return j.countBytes()
}

// countBytes finds out the size of all files together.
func (j *journal) countBytes() error {
	j.claim() // nothing is written meanwhile
	defer j.release()
	files, err := journalFiles(j.dir)
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	j.total.Store(total)
	return err
}

// size is the size of all files together in bytes.
func (j *journal) size() int64 { return j.total.Load() }

// journalFile is the name of a generation's file.
func journalFile(generation uint64) string { return fmt.Sprintf("journal-%012d.db", generation) }

type generationFile struct {
	path       string
	generation uint64
	size       int64
}

// journalFiles lists the journal's files in a folder, oldest first.
func journalFiles(dir string) (files []generationFile, err error) {
	entries, err := os.ReadDir(dir) // in ascending order of names, which is that of generations
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		digits := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "journal-"), ".db")
		n, ok := readDecimal(digits)
		if !ok || e.Name() != journalFile(n) {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			return nil, err
		}
		files = append(files, generationFile{filepath.Join(dir, e.Name()), n, fi.Size()})
	}
	return files, nil
}
