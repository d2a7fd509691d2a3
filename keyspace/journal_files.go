package keyspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"mayfly/keyspace/record"
)

// rotate commits what is pending and goes on in a new file. All tickets handed out before the call
// are in files of lower generations than the one returned, and those are on disk.
//
// Others are held up for as short as can be: the new file is made, and most of the old one forced to disk,
// while commits go on.
func (j *journal) rotate() (generation uint64, err error) {
	if j.waiting.Load() == 0 && j.end.Load() == journalHeadSize { // in this order: what waits gets there
		return j.generation, nil
	}
	next, err := j.prepare()
	if err != nil {
		return 0, err
	}
	defer next.close()
	for range 2 { // the second time there is little left
		if err := j.sync(); err != nil {
			return 0, err
		}
	}
	old, err := j.goOnIn(next)
	if old != nil {
		if err := old.close(); err != nil {
			j.log.Error().Err(err).Str("file", old.path).Msg("closing a journal")
		}
	}
	return j.generation, err
}

// goOnIn makes a file the newest, and gives the one that was.
func (j *journal) goOnIn(next *nextJournal) (old *dbFile, err error) {
	j.claim()
	release := sync.OnceFunc(j.release)
	defer release()
	if err := j.commitTo(j.last()); err != nil {
		return nil, err
	}
	// The old file must be whole on disk before the new one can hold anything: a power cut may take
	// the last commits, but never earlier ones and leave later ones.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if err := j.endFile(); err != nil {
		return nil, err
	}
	old = j.file
	if err := j.adopt(next, j.generation+1); err != nil {
		return nil, err
	}
	// Commits go on, but who waits for them to be on disk waits for syncMu, and so for the file's name.
	release()
	return old, j.forceNames(next)
}

// nextJournal is a file that is ready to become the newest: its head is on disk, under a name that means
// nothing.
type nextJournal struct {
	file *dbFile
	mark uint32
	dir  *os.File // open, so that nothing but an fsync can fail once it is the newest
}

// preparedName is the name of a journal's file that is not one yet.
const preparedName = "journal.tmp"

// newMark draws the mark of a file.
var newMark = rand.Uint32

// prepare makes a file that a generation can go on in.
func (j *journal) prepare() (_ *nextJournal, err error) {
	next := &nextJournal{mark: newMark()}
	defer func() {
		if err != nil {
			next.close()
		}
	}()
	if next.dir, err = os.Open(j.dir); err != nil {
		return nil, err
	}
	path := filepath.Join(j.dir, preparedName)
	if err := writeFile(path, journalHead(next.mark)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	next.file = newDBFile(f, journalHeadSize, j.faults)
	return next, nil
}

// close lets go of what has not been adopted.
func (n *nextJournal) close() {
	if n.dir != nil {
		n.dir.Close() // it was only read
	}
	if n.file != nil {
		n.file.close() // nothing is in it
	}
}

// adopt gives the file the name of a generation and makes it the newest. The right to commit and syncMu
// are held, unless nobody uses the journal yet. forceNames is to follow.
func (j *journal) adopt(next *nextJournal, generation uint64) error {
	if err := next.file.rename(filepath.Join(j.dir, journalFile(generation))); err != nil {
		return err
	}
	j.file, j.generation, j.mark, j.cramped = next.file, generation, next.mark, false
	j.end.Store(journalHeadSize)
	j.onDisk.Store(journalHeadSize)
	j.total.Add(journalHeadSize)
	next.file = nil
	return nil
}

// forceNames forces the name of an adopted file to disk. syncMu is held, unless nobody uses the journal
// yet.
func (j *journal) forceNames(next *nextJournal) error {
	if err := forceToDisk(next.dir); err != nil {
		return j.breakLocked(err)
	}
	return nil
}

// newFile makes the first file of a run.
func (j *journal) newFile(generation uint64) error {
	next, err := j.prepare()
	if err != nil {
		return err
	}
	defer next.close()
	if err := j.adopt(next, generation); err != nil {
		return err
	}
	if err := j.forceNames(next); err != nil {
		return errors.Join(err, j.file.close())
	}
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

// countBytes finds out the size of all files together, without room.
func (j *journal) countBytes() error {
	j.claim() // nothing is written meanwhile
	defer j.release()
	files, err := journalFiles(j.dir)
	total := int64(0)
	for _, f := range files {
		if f.generation == j.generation {
			total += j.end.Load()
		} else {
			total += f.size
		}
	}
	j.total.Store(total)
	return err
}

// size is the size of all files together in bytes, without room.
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
		n, ok := record.ReadDecimal(digits)
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
