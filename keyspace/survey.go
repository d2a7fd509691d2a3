package keyspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mayfly/keyspace/record"
)

// A survey reads a data folder that no server uses and changes nothing in it. Whether a file is sound is
// decided by the same functions as at a start; of one that is not, what can be read is read
// (salvage_store.go, salvage_journal.go). On it rest [Inspect], [Repair] and [ReadFolder].
type survey struct {
	dir        string
	lock       *os.File // nil in a folder without one
	partitions int
	format     FileReport

	disk    func(f *os.File) io.ReaderAt // lets a test play a disk that fails; nil is the real disk
	damaged bool                         // some file examined so far is
	tails   bool                         // read what lies behind the last seal, too: the journals, which should hold it, are damaged
}

// FileState is the state of a file on disk.
type FileState string

// The states.
const (
	Sound   FileState = "sound"
	Torn    FileState = "torn"    // its end was never confirmed: a start cuts it off and loses nothing by it
	Damaged FileState = "damaged" // a server does not start with it
)

// FileReport is what there is to know of a file of a data folder.
type FileReport struct {
	File     string    `json:"file"`
	Bytes    int64     `json:"bytes"`
	Records  int64     `json:"records"` // items set or deleted in it, seals apart; an item may be set many times
	State    FileState `json:"state"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a range of a file that is not as it was written, or was not confirmed.
type Problem struct {
	From   int64  `json:"from"` // bytes
	To     int64  `json:"to"`   // excluded
	Reason string `json:"reason"`
	// Key is that of the record it hit, as far as can be read; empty if not. It is under no
	// checksum that still holds, so it may be wrong itself.
	Key string `json:"key,omitempty"`
	// Container and ID are what Key means, if it is an item's.
	Container string `json:"container,omitempty"`
	ID        string `json:"id,omitempty"`
	// Rescued: what was in the range could be read all the same.
	Rescued bool `json:"rescued,omitempty"`
}

// finding is one record of a file: an item set or deleted.
type finding struct {
	key, rec string // valid until the visitor returns
	del      bool
	proven   bool // a checksum covers it as a whole: for deletes in a damaged range there is none
}

// reading takes in what a survey meets, in the order in which it was written.
type reading struct {
	found   func(c finding) error
	problem func(file string, p Problem)
}

// openSurvey begins to read a folder. The errors say why it cannot be read at all.
func openSurvey(dir string) (*survey, error) {
	s := &survey{dir: dir}
	if entries, err := os.ReadDir(dir); err != nil {
		return nil, err
	} else if len(entries) == 0 {
		return nil, fmt.Errorf("%s is not a data folder: it is empty", dir)
	}
	if err := refuseUnfinished(dir); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = lockShared(filepath.Join(dir, lockName)); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	if err := s.readFormat(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *survey) close() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// readFormat reads the number of partitions. If the file format is damaged or missing it is told by
// the names of the stores.
func (s *survey) readFormat() error {
	path := filepath.Join(s.dir, formatName)
	text, err := os.ReadFile(path)
	s.format = FileReport{File: formatName, Bytes: int64(len(text)), State: Sound}
	if err == nil {
		s.partitions, err = readFormat(string(text))
		if _, newer := newerFormat(string(text)); newer {
			return fmt.Errorf("data folder %s: %w", s.dir, err)
		}
	}
	if err == nil {
		return nil
	}
	for n := range record.MaxPartitions {
		for _, suffix := range []string{"", ".prev"} {
			if _, err := os.Stat(filepath.Join(s.dir, partitionFile(n)+suffix)); err == nil {
				s.partitions = n + 1
			}
		}
	}
	if s.partitions == 0 {
		return fmt.Errorf("%s is not a data folder: %w", s.dir, err)
	}
	s.format.State = Damaged
	reason := fmt.Sprintf("%v; by the names of the files there are %d partitions", err, s.partitions)
	s.format.Problems = []Problem{{To: s.format.Bytes, Reason: reason}}
	s.damaged = true
	return nil
}

// eachStore examines the catalogue's store (number -1) and those of the partitions.
func (s *survey) eachStore(r reading) (reports []FileReport, err error) {
	for n := -1; n < s.partitions; n++ {
		report, err := s.store(n, r)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// store examines the store of a partition, or the catalogue's (-1).
func (s *survey) store(number int, r reading) (FileReport, error) {
	name := catalogueName
	if number >= 0 {
		name = partitionFile(number)
	}
	// While a compaction is under way the file from before it counts.
	path := filepath.Join(s.dir, name)
	if _, err := os.Stat(path + ".prev"); err == nil {
		path, name = path+".prev", name+".prev"
	}
	w := &walker{report: FileReport{File: name, State: Sound}, reading: r, disk: s.disk}
	w.fits = func(key, rec string, del bool) error { return s.fits(number, key, rec, del) }
	err := w.open(path, func() error { return w.store(s.tails) })
	if errors.Is(err, os.ErrNotExist) {
		w.trouble(Problem{Reason: "the file is missing"})
		err = nil
	}
	s.damaged = s.damaged || w.report.State == Damaged
	return w.report, err
}

// journals examines the journals, oldest first.
func (s *survey) journals(r reading) (reports []FileReport, err error) {
	files, err := journalFiles(s.dir)
	if err != nil {
		return nil, err
	}
	var last LSN
	for i, file := range files {
		w := &walker{report: FileReport{File: filepath.Base(file.path), State: Sound}, reading: r, disk: s.disk}
		w.fits = func(key, rec string, del bool) error { return s.fits(anywhere, key, rec, del) }
		if i > 0 && file.generation != files[i-1].generation+1 {
			w.trouble(Problem{Reason: "the journal before it is missing"})
			last = 0
		}
		err := w.open(file.path, func() (err error) {
			last, err = w.journal(last, i == len(files)-1)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.damaged = s.damaged || w.report.State == Damaged
		reports = append(reports, w.report)
	}
	return reports, nil
}

// anywhere is the number of what may hold items of all partitions and of the catalogue: a journal.
const anywhere = -2

// fits says why a record has no business in the file of this number, although its checksum holds.
func (s *survey) fits(number int, key, rec string, del bool) error {
	ofCatalogue := record.InCatalogue(key)
	var it Item
	var err error
	if !del {
		if it, _, err = record.Decode(key, rec); err != nil {
			return err
		}
	}
	if ofCatalogue && number < 0 {
		if key == record.ClockKey {
			return nil
		}
		if _, err := record.ContainerNumber(key); err != nil || del {
			return err
		}
		_, err := record.ReadContainer(key, it.Body)
		return err
	}
	_, id, err := record.SplitKey(key)
	switch {
	case err != nil:
		return err
	case ofCatalogue || number != anywhere && number != record.Partition(id, s.partitions):
		return errors.New("the item does not belong into this file")
	case !del && it.Kind != Document && it.Kind != Plain:
		return fmt.Errorf("the item is of an unknown kind %q", it.Kind)
	}
	return nil
}

// walker examines one file.
type walker struct {
	reading
	report FileReport
	fits   func(key, rec string, del bool) error
	disk   func(f *os.File) io.ReaderAt
	f      *patientReader
	path   string
	buf    []byte // the value that is being read
}

// open opens the file for examine.
func (w *walker) open(path string, examine func() error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	w.f, w.path, w.report.Bytes = &patientReader{from: f}, path, fi.Size()
	if w.disk != nil {
		w.f.from = w.disk(f)
	}
	if err := examine(); err != nil {
		return err
	}
	if w.f.failed != nil {
		w.trouble(Problem{From: w.f.at, To: w.f.to, Reason: fmt.Sprintf("the disk cannot read all of this range: %v", w.f.failed)})
	}
	return nil
}

// patientReader takes sectors that the disk cannot read for zeros, so that what lies around them can be
// read, and remembers that there were some.
type patientReader struct {
	from   io.ReaderAt
	failed error // the first failure
	at, to int64 // from the first sector that failed to the last
}

func (r *patientReader) ReadAt(b []byte, at int64) (n int, err error) {
	n, err = r.from.ReadAt(b, at)
	if err == nil || err == io.EOF {
		return n, err
	}
	for n = 0; n < len(b); {
		offset := at + int64(n)
		part := b[n:min(len(b), n+int(sectorSize-offset%sectorSize))]
		m, err := r.from.ReadAt(part, offset)
		if err == io.EOF {
			return n + m, err
		}
		if err != nil {
			clear(part)
			r.note(offset, offset+int64(len(part)), err)
		}
		n += len(part)
	}
	return n, nil
}

func (r *patientReader) note(from, to int64, err error) {
	if r.failed == nil {
		r.failed, r.at, r.to = err, from, to
	}
	r.at, r.to = min(r.at, from), max(r.to, to)
}

// trouble reports a problem; unless it is known to be a torn end, the file is damaged.
func (w *walker) trouble(p Problem) {
	if w.report.State == Sound {
		w.report.State = Damaged
	}
	w.report.Problems = append(w.report.Problems, p)
	w.problem(w.report.File, p)
}

// torn reports that the file has an end that was never confirmed. If all before it is sound, so is the file.
func (w *walker) torn(from int64) {
	if w.report.State == Sound {
		w.report.State = Torn
	}
	w.report.Problems = append(w.report.Problems, Problem{From: from, To: w.report.Bytes, Reason: "never confirmed: a start cuts it off"})
}

// deliver hands a change with a right checksum on, or says why it cannot.
func (w *walker) deliver(from, to int64, c finding) error {
	if c.key == sealKey {
		return nil
	}
	w.report.Records++
	if err := w.fits(c.key, c.rec, c.del); err != nil {
		w.trouble(Problem{From: from, To: to, Reason: err.Error(), Key: strings.Clone(c.key)})
		return nil
	}
	return w.found(c)
}
