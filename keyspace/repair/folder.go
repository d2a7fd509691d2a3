package repair

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/vfs"
)

// folderReader reads the files of a data folder.
type folderReader struct {
	fs         vfs.FS
	dir        string
	lock       *datadir.Lock
	partitions int
	format     FileReport
	manifest   *datadir.Manifest // nil if it cannot be read
	listing    FileReport        // of the manifest

	progress []Progress
	damaged  bool // a file read so far is damaged
	tails    bool // read stores beyond their last seals: the journals with these changes are damaged
}

// FileState is the state of a file on disk.
type FileState string

// The states.
const (
	Sound   FileState = "sound"
	Torn    FileState = "torn"    // its end was never confirmed: a start cuts it off without loss
	Damaged FileState = "damaged" // a server refuses it
)

// FileReport describes a file of a data folder.
type FileReport struct {
	File     string    `json:"file"`
	Bytes    int64     `json:"bytes"`
	Records  int64     `json:"records"` // items set or deleted in it, seals apart; an item may be set many times
	State    FileState `json:"state"`
	Problems []Problem `json:"problems,omitempty"`

	unsure map[aof.Range]bool // ranges of Problems with a key that may have held more than the item of that key
}

// Problem is a range of a file that is not as it was written, or was not confirmed.
type Problem struct {
	From   int64  `json:"from"` // bytes
	To     int64  `json:"to"`   // excluded
	Reason string `json:"reason"`
	// Key is the key of the damaged record, empty if it is not readable. No checksum proves it.
	Key string `json:"key,omitempty"`
	// Container and ID are the parts of Key, if it is an item's.
	Container string `json:"container,omitempty"`
	ID        string `json:"id,omitempty"`
	// Rescued says that the record in the range could be read nevertheless.
	Rescued bool `json:"rescued,omitempty"`
}

// change is one change in a file: an item set or deleted.
type change struct {
	key, rec string // valid until the visitor returns
	del      bool
	proven   bool // a checksum covers all of it; false for deletes in a damaged range
	file     string
	at       aof.Range
}

// visitor receives the changes and problems of files, in the order in which they were written.
type visitor struct {
	change  func(c change) error
	problem func(file string, p Problem)
}

// openFolder locks a folder and reads its format. It fails if the folder cannot be read at all.
func openFolder(fsys vfs.FS, dir string, progress ...Progress) (*folderReader, error) {
	s := &folderReader{fs: fsys, dir: dir, progress: progress}
	if entries, err := fsys.ReadDir(dir); err != nil {
		return nil, err
	} else if len(entries) == 0 {
		return nil, fmt.Errorf("%s is not a data folder: it is empty", dir)
	}
	if err := datadir.RefuseStaging(fsys, dir); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = datadir.LockShared(fsys, dir); err != nil {
		return nil, err
	}
	if err := s.readManifest(); err != nil {
		s.close()
		return nil, err
	}
	if err := s.readFormat(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *folderReader) close() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// readFormat reads the number of partitions. If the file "format" is damaged or missing, it takes the number
// from the stores that exist or that the manifest names.
func (s *folderReader) readFormat() error {
	text, err := vfs.ReadFile(s.fs, filepath.Join(s.dir, datadir.FormatName))
	s.format = FileReport{File: datadir.FormatName, Bytes: int64(len(text)), State: Sound}
	if err == nil {
		s.partitions, _, err = datadir.ReadFormat(string(text))
		var version *datadir.VersionError
		if errors.As(err, &version) {
			return fmt.Errorf("data folder %s: %w", s.dir, err)
		}
	}
	if err == nil {
		return nil
	}
	by := "" // what tells of the last partition
	for n := range record.MaxPartitions {
		name := datadir.PartitionName(n)
		named := s.manifest != nil && len(s.manifest.Stores[name]) > 0
		if _, err := s.fs.Stat(filepath.Join(s.dir, name)); err == nil || named {
			s.partitions, by = n+1, "the names of the files"
			if err != nil {
				by = "the manifest"
			}
		}
	}
	if s.partitions == 0 {
		return fmt.Errorf("%s is not a data folder: %w", s.dir, err)
	}
	s.format.State = Damaged
	reason := fmt.Sprintf("%v; by %s there are %d partitions", err, by, s.partitions)
	s.format.Problems = []Problem{{To: s.format.Bytes, Reason: reason}}
	s.damaged = true
	return nil
}

// readManifest reads the manifest. If it is damaged or missing, the files are judged without it.
func (s *folderReader) readManifest() (err error) {
	s.listing = FileReport{File: datadir.ManifestName, State: Sound}
	if fi, err := s.fs.Stat(filepath.Join(s.dir, datadir.ManifestName)); err == nil {
		s.listing.Bytes = fi.Size()
	}
	s.manifest, err = datadir.ReadManifest(s.fs, s.dir)
	var damage *aof.DamageError
	if errors.As(err, &damage) {
		s.listing.State, s.damaged = Damaged, true
		reason := damage.Reason + "; without it a file that is missing, cut short or an older copy may go unnoticed"
		s.listing.Problems = []Problem{{From: damage.From, To: damage.To, Reason: reason}}
		return nil
	}
	return err
}

// eachStore reads the catalogue's store (number -1) and those of the partitions.
func (s *folderReader) eachStore(v visitor) (reports []FileReport, err error) {
	for n := -1; n < s.partitions; n++ {
		report, err := s.store(n, v)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// store reads the store of a partition, or the catalogue's (-1).
func (s *folderReader) store(number int, v visitor) (FileReport, error) {
	name := datadir.CatalogueName
	if number >= 0 {
		name = datadir.PartitionName(number)
	}
	x := s.fileReader(name, number, v)
	if s.manifest != nil {
		x.check = func(mark uint32, end int64) error {
			_, err := s.manifest.CheckStore(x.path, mark, end)
			return err
		}
	}
	err := x.open(filepath.Join(s.dir, name), func() error { return x.store(s.tails) })
	if errors.Is(err, fs.ErrNotExist) {
		x.reportDamage(Problem{Reason: "the file is missing"})
		err = nil
	}
	s.damaged = s.damaged || x.report.State == Damaged
	return x.report, err
}

// journals reads the journals, oldest first.
func (s *folderReader) journals(v visitor) (reports []FileReport, err error) {
	files, err := journal.Files(s.fs, s.dir)
	if err != nil {
		return nil, err
	}
	var last journal.LSN
	var names []string
	for i, file := range files {
		names = append(names, filepath.Base(file.Path))
		x := s.fileReader(names[i], anywhere, v)
		if s.manifest != nil {
			x.check = func(mark uint32, end int64) error {
				_, err := s.manifest.CheckJournal(x.path, mark, end)
				return err
			}
		}
		if i > 0 && file.Generation != files[i-1].Generation+1 {
			x.reportDamage(Problem{Reason: "the journal before it is missing"})
			last = 0
		}
		err := x.open(file.Path, func() error { return x.journal(&last, i == len(files)-1) })
		if err != nil {
			return nil, err
		}
		s.damaged = s.damaged || x.report.State == Damaged
		reports = append(reports, x.report)
	}
	if s.manifest == nil {
		return reports, nil
	}
	for _, name := range s.manifest.MissingJournals(names) {
		x := s.fileReader(name, anywhere, v)
		x.reportDamage(Problem{To: s.manifest.Journals[name].End, Reason: "the file is missing"})
		s.damaged = true
		reports = append(reports, x.report)
	}
	return reports, nil
}

func (s *folderReader) fileReader(name string, number int, v visitor) *fileReader {
	return &fileReader{
		visitor:  v,
		report:   FileReport{File: name, State: Sound},
		fs:       s.fs,
		progress: s.progress,
		fits:     func(key, rec string, del bool) error { return s.fits(number, key, rec, del) },
	}
}

// anywhere is the number of a file that may have items of all partitions and of the catalogue: a journal.
const anywhere = -2

// fits returns why a record with a right checksum does not belong in the file of this number, or nil.
func (s *folderReader) fits(number int, key, rec string, del bool) error {
	ofCatalogue := record.InCatalogue(key)
	var it record.Item
	var err error
	if !del {
		if it, _, err = record.Decode(key, rec); err != nil {
			return err
		}
	}
	if ofCatalogue && number < 0 {
		if key == record.ClockKey || key == record.WasteKey && !del {
			return nil
		}
		if ok, err := new(replica.Tail).Read(key, rec, del); ok {
			return err
		}
		if _, err := record.ContainerNumber(key); err != nil || del {
			return err
		}
		_, err := record.ReadContainer(key, it)
		return err
	}
	item, touched := record.TouchedKey(key)
	k, err := record.SplitKey(item)
	if err == nil && touched && !del {
		_, _, err = record.ReadTouch(key, rec)
	}
	switch {
	case err != nil:
		return err
	case touched && (del || number != anywhere || k.Log):
		return errors.New("a touch does not belong here")
	case touched:
		return nil
	case ofCatalogue || number != anywhere && number != k.Partition(s.partitions):
		return errors.New("the item does not belong in this file")
	case k.Log && !del:
		return deathlog.CheckEntry(k.ID, it)
	case k.Page && !del && it.Kind == record.Page:
		_, page, _ := record.SplitPageID(k.ID)
		return elements.CheckPage(it.Body, page)
	case !del && !k.Page && it.Kind.IsCollection():
		return elements.Check(it.Body, it.Kind)
	case !del && (k.Page || it.Kind != record.Document && it.Kind != record.Plain):
		return fmt.Errorf("the item is of an unknown kind %q", it.Kind)
	}
	return nil
}

// fileReader reads one file.
type fileReader struct {
	visitor
	check    func(mark uint32, end int64) error // compares with the manifest; nil if there is none
	report   FileReport
	fits     func(key, rec string, del bool) error
	fs       vfs.FS
	progress []Progress
	f        *zeroingReader
	path     string
	buf      []byte      // the value that is being read
	last     journal.LSN // the last commit of a damaged journal

	found   int              // problems reported
	verdict *aof.DamageError // why a start refuses the file; nil if it does not
}

// open opens the file for read.
func (r *fileReader) open(path string, read func() error) error {
	f, err := r.fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	r.f, r.path, r.report.Bytes = &zeroingReader{from: f}, path, fi.Size()
	for _, report := range r.progress {
		r.f.from = &countingReader{r.f.from, r.report.File, fi.Size(), report}
	}
	if err := read(); err != nil {
		return err
	}
	if r.f.failed != nil {
		r.verdict = nil // a range and a reason of its own: a start stops before it
		r.reportDamage(Problem{From: r.f.at, To: r.f.to, Reason: r.f.reason()})
	}
	return nil
}

// zeroingReader returns zeros for sectors that the disk cannot read, so that the rest of the file can be
// read. It keeps the first error.
type zeroingReader struct {
	from   io.ReaderAt
	failed error // the first failure
	at, to int64 // from the first sector that failed to the last
}

func (r *zeroingReader) ReadAt(b []byte, at int64) (n int, err error) {
	n, err = r.from.ReadAt(b, at)
	if err == nil || err == io.EOF {
		return n, err
	}
	for n = 0; n < len(b); {
		offset := at + int64(n)
		part := b[n:min(len(b), n+int(aof.SectorSize-offset%aof.SectorSize))]
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

// reason says what failed.
func (r *zeroingReader) reason() string {
	return fmt.Sprintf("the disk cannot read all of this range: %v", r.failed)
}

func (r *zeroingReader) note(from, to int64, err error) {
	if r.failed == nil {
		r.failed, r.at, r.to = err, from, to
	}
	r.at, r.to = min(r.at, from), max(r.to, to)
}

// reportDamage reports a problem, which makes the file damaged. One in the range for which a start refuses
// the file has that range and reason, so that all name the same.
func (r *fileReader) reportDamage(p Problem) {
	if r.report.State == Sound {
		r.report.State = Damaged
	}
	r.found++
	if v := r.verdict; v != nil && p.From < max(v.To, v.From+1) && v.From < max(p.To, p.From+1) {
		p.From, p.To = v.From, v.To
		switch {
		case strings.HasPrefix(p.Reason, v.Reason): // it says more
		case p.Rescued:
			p.Reason = v.Reason + "; " + p.Reason
		default:
			p.Reason = v.Reason
		}
	}
	r.list(p)
	r.problem(r.report.File, p)
}

// list lists a problem. Of those with one range, each that has a key is listed, or else one of the others.
func (r *fileReader) list(p Problem) {
	problems, at := r.report.Problems, aof.Range{From: p.From, To: p.To}
	same := slices.IndexFunc(problems, func(q Problem) bool { return q.From == p.From && q.To == p.To })
	if same < 0 {
		r.report.Problems = append(problems, p)
		return
	}
	switch keyed := problems[same].Key != ""; {
	case keyed && p.Key != "":
		if !slices.Contains(problems, p) {
			r.report.Problems = append(problems, p)
		}
	case keyed || p.Key != "":
		if r.report.unsure == nil {
			r.report.unsure = make(map[aof.Range]bool)
		}
		r.report.unsure[at] = true
		if !keyed {
			problems[same] = p
		}
	case problems[same].Rescued:
		problems[same] = p
	}
}

// torn reports that the end of the file was never confirmed.
func (r *fileReader) torn(from int64) {
	if r.report.State == Sound {
		r.report.State = Torn
	}
	r.report.Problems = append(r.report.Problems, Problem{From: from, To: r.report.Bytes, Reason: "never confirmed: a start cuts it off"})
}

// deliver passes a change to the visitor, or reports why it does not belong in the file.
func (r *fileReader) deliver(from, to int64, c change) error {
	if c.key == aof.SealKey {
		return nil
	}
	r.report.Records++
	if err := r.fits(c.key, c.rec, c.del); err != nil {
		r.reportDamage(Problem{From: from, To: to, Reason: err.Error(), Key: strings.Clone(c.key)})
		return nil
	}
	c.file, c.at = r.report.File, aof.Range{From: from, To: to}
	return r.change(c)
}
