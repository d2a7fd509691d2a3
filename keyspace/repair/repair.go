package repair

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// Report is what [Run] has copied and what it could not.
type Report struct {
	From       string       `json:"from"`
	To         string       `json:"to"`
	Partitions int          `json:"partitions"`
	Containers int          `json:"containers"`
	Items      int          `json:"items"` // copied
	Files      []FileReport `json:"files"`

	// Lost are the items of which no version could be read, as far as their keys could be.
	Lost []Item `json:"lost,omitempty"`
	// Older are those that were copied in an older version, because the newest is damaged.
	Older []Item `json:"older,omitempty"`
	// Doubtful are those that were not copied because a delete in a damaged range names them: it may
	// be the delete that is damaged. They are all there, to be looked at and imported.
	Doubtful []Item `json:"doubtful,omitempty"`
	// Exposed is how many of the copied items were last written, as far as can be read, before a
	// damaged range that could have held a newer version or their deletion.
	Exposed int `json:"exposed,omitempty"`
	// Policies says what is uncertain about containers.
	Policies []string `json:"policies,omitempty"`
	// Unknown is how many damaged ranges, or whole files, held what does not tell even its key: items of
	// which there is no other trace may have been lost with them.
	Unknown int `json:"unknown,omitempty"`
}

// Item is an item about which a repair reports something.
type Item struct {
	Container string `json:"container"`
	ID        string `json:"id"`
	TS        int64  `json:"ts,omitempty"` // of the version there is, ms
	File      string `json:"file"`         // where the damage lies
	From      int64  `json:"from"`
	To        int64  `json:"to"`

	Item record.Item `json:"-"`
}

// Clean reports whether nothing was lost or is uncertain.
func (r *Report) Clean() bool {
	return len(r.Lost)+len(r.Older)+len(r.Doubtful)+len(r.Policies)+r.Exposed+r.Unknown == 0
}

// Run copies what is sound in a data folder, which no server may use, into a new one that a server
// opens: the same partitions, containers, policies with their marks, versions, and the clock. Nothing in
// the old folder is changed. It needs the memory that a server needs for one partition and the
// journals.
//
//   - The newest version of an item that can be read is copied. Was there a newer one that cannot, the
//     report says so.
//   - A delete that can be read counts. If the range it lies in is damaged, it may be the delete that
//     is: what it deletes is not copied but handed over as doubtful.
//   - What is dead is copied with what killed it, and stays dead.
//   - Containers whose records are lost are copied as recovered-<number>, with the default -1.
//
// finish is called when the new folder is complete, but not yet under its name: it may add files to it.
func Run(dir, newDir string, finish func(dir string, r *Report) error) (*Report, error) {
	s, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.repair(newDir, finish)
}

func (s *folderReader) repair(newDir string, finish func(dir string, r *Report) error) (_ *Report, err error) {
	if err := s.outside(newDir); err != nil {
		return nil, err
	}
	m, err := datadir.NewStaging(newDir)
	if err != nil {
		return nil, fmt.Errorf("a repair makes a new folder: %w", err)
	}
	defer func() { err = m.Close(err) }()
	target, err := m.CreateDir(s.partitions)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	p := &run{merger: &merger{folderReader: s}, into: m.Dir(), names: newNames(), report: &Report{From: s.dir, To: newDir, Partitions: s.partitions}}
	if err := p.copy(); err != nil {
		return nil, err
	}
	if err := finish(m.Dir(), p.report); err != nil {
		return nil, err
	}
	return p.report, m.Finish()
}

// outside refuses a path that lies within the folder.
func (s *folderReader) outside(path string) error {
	from, err1 := filepath.Abs(s.dir)
	to, err2 := filepath.Abs(path)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if inner, err := filepath.Rel(from, to); err == nil && filepath.IsLocal(inner) {
		return fmt.Errorf("%s lies within %s, in which nothing is changed", path, s.dir)
	}
	return nil
}

// run is a repair under way.
type run struct {
	*merger
	into   string // the new folder
	names  *names
	report *Report

	losses int                     // problems met in the catalogue and the journals
	known  map[uint32]*containerOf // containers as they are copied
}

// containerOf says how a container number is copied.
type containerOf struct {
	name    string
	dropped bool
}

func (p *run) copy() error {
	journals, err := p.readJournals()
	if err != nil {
		return err
	}
	p.tails = p.damaged
	format := p.format
	catalogue, err := p.catalogue()
	if err != nil {
		return err
	}
	p.report.Files = append(p.report.Files, format, catalogue)
	for n := range p.partitions {
		report, err := p.partition(n)
		if err != nil {
			return err
		}
		p.report.Files = append(p.report.Files, report)
	}
	p.report.Files = append(p.report.Files, journals...)
	for i := range p.report.Files {
		p.names.explain(p.report.Files[i].Problems)
	}
	for i, f := range p.report.Files {
		if i > 0 && f.State == Damaged { // the first is format, which holds no items
			p.countUnknown(f.Problems, i == 1, i > 1+p.partitions)
		}
	}
	return p.writeCatalogue()
}

// countUnknown counts the damaged ranges of the catalogue, a journal, or else a partition's store, of which
// it is not known what they held. What tells a key that the file may hold is judged item by item.
func (p *run) countUnknown(problems []Problem, ofCatalogue, ofJournal bool) {
	for _, problem := range problems {
		_, _, notAnItems := record.SplitKey(problem.Key)
		_, notAContainers := record.ContainerNumber(problem.Key)
		known := problem.Rescued || notAnItems == nil && !ofCatalogue || notAContainers == nil && (ofCatalogue || ofJournal)
		if !known {
			p.report.Unknown++
		}
	}
}

// catalogue gathers the containers and decides how each is copied.
func (p *run) catalogue() (FileReport, error) {
	g, report, err := p.merge(-1)
	if err != nil {
		return report, err
	}
	p.known = make(map[uint32]*containerOf)
	var exposed []string // names
	for _, key := range sortedKeys(g.items) {
		v := g.items[key]
		number, err := record.ContainerNumber(key)
		if err != nil {
			if v.rec != "" {
				err = p.names.take(change{key: key, rec: v.rec})
			} else {
				err = nil
			}
			if err != nil {
				return report, err
			}
			continue
		}
		if v.rec == "" {
			p.known[number] = &containerOf{dropped: v.hit == nil}
			continue
		}
		if err := p.names.take(change{key: key, rec: v.rec}); err != nil {
			return report, err
		}
		name := p.names.byNumber[number].Name
		p.known[number] = &containerOf{name: name}
		switch {
		case v.hit != nil:
			p.doubt("the newest policy of container %q is damaged: an older one rules it", name)
		case v.at < g.last:
			exposed = append(exposed, name)
		}
	}
	if len(exposed) > 0 {
		p.doubt("the policies of %d containers may be older ones, what was written after them is damaged: %s", len(exposed), strings.Join(exposed, " "))
	}
	p.losses = g.last
	p.renameTwins(g)
	return report, nil
}

// renameTwins sees to containers of one name, of which all but one have been flushed or renamed by
// records that are lost: the one recorded last keeps it.
func (p *run) renameTwins(g *merged) {
	at := func(number uint32) int { return g.items[record.ContainerKey(number)].at }
	owner := make(map[string]uint32)
	for _, number := range slices.Sorted(maps.Keys(p.known)) {
		name := p.known[number].name
		if name == "" {
			continue
		}
		loser, taken := owner[name]
		if !taken || at(loser) < at(number) {
			owner[name] = number
		} else {
			loser = number
		}
		if taken {
			p.known[loser].name = fmt.Sprintf("recovered-%d", loser)
			p.names.byNumber[loser].Name = p.known[loser].name
			p.doubt("containers %d and %d are both named %q: the older is copied as %q; it may have been flushed or dropped",
				loser, owner[name], name, p.known[loser].name)
		}
	}
}

func (p *run) doubt(format string, args ...any) {
	p.report.Policies = append(p.report.Policies, fmt.Sprintf(format, args...))
}

// nameOf says under which name the items of a container are copied; false if it has been dropped.
func (p *run) nameOf(number uint32) (string, bool) {
	c := p.known[number]
	if c == nil {
		// If no record of the catalogue can have been lost, it was dropped.
		c = &containerOf{dropped: p.losses == 0}
		p.known[number] = c
	}
	if c.dropped {
		return "", false
	}
	if c.name == "" {
		c.name = fmt.Sprintf("recovered-%d", number)
		p.doubt("the record of container %d is lost: its items are in container %q, which has the default -1; it may have been dropped", number, c.name)
	}
	return c.name, true
}

// partition copies the items of a partition.
func (p *run) partition(number int) (FileReport, error) {
	g, report, err := p.merge(number)
	if err != nil {
		return report, err
	}
	var ops []aof.Op
	for _, key := range sortedKeys(g.items) {
		v := g.items[key]
		container, id, err := record.SplitKey(key)
		if err != nil {
			continue // a damaged key
		}
		name, ok := p.nameOf(container)
		if !ok {
			continue
		}
		told := Item{Container: name, ID: id}
		if v.hit != nil {
			told.File, told.From, told.To = v.hit.file, v.hit.From, v.hit.To
		}
		switch {
		case v.aside != "":
			told.Item, _, _ = record.Decode(key, v.aside)
			told.TS = told.Item.TS
			told.File, told.From, told.To = v.undo.file, v.undo.From, v.undo.To
			p.report.Doubtful = append(p.report.Doubtful, told)
			continue
		case v.rec == "" && v.hit != nil:
			p.report.Lost = append(p.report.Lost, told)
			continue
		case v.rec == "":
			continue
		}
		if err := p.names.take(change{key: key, rec: v.rec}); err != nil {
			return report, err
		}
		if v.hit != nil {
			told.Item, _, _ = record.Decode(key, v.rec)
			told.TS = told.Item.TS
			p.report.Older = append(p.report.Older, told)
		} else if v.at < g.last {
			p.report.Exposed++
		}
		ops = append(ops, aof.Op{Key: key, Rec: v.rec})
	}
	p.report.Items += len(ops)
	return report, store.Fill(filepath.Join(p.into, datadir.PartitionName(number)), ops)
}

// writeCatalogue copies the containers and the clock.
func (p *run) writeCatalogue() error {
	var ops []aof.Op
	for number, c := range p.known {
		if c.dropped || c.name == "" {
			continue
		}
		container := p.names.byNumber[number]
		if container == nil {
			container = &record.Container{Number: number, Name: c.name, Created: p.names.clock, Policy: expiry.Policy{Default: expiry.Forever}}
		}
		ops = append(ops, aof.Op{Key: record.ContainerKey(number), Rec: string(container.Append(nil))})
	}
	slices.SortFunc(ops, func(a, b aof.Op) int { return strings.Compare(a.Key, b.Key) })
	p.report.Containers = len(ops)
	clock := string(record.Append(nil, record.ClockKey, record.Item{Kind: record.ClockKind, TS: p.names.clock}))
	return store.Fill(filepath.Join(p.into, datadir.CatalogueName), append(ops, aof.Op{Key: record.ClockKey, Rec: clock}))
}
