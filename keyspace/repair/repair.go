package repair

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/vfs"
)

// Report is what [Run] has copied and what it could not.
type Report struct {
	From       string       `json:"from"`
	To         string       `json:"to"`
	Partitions int          `json:"partitions"`
	Containers int          `json:"containers"`
	Items      int          `json:"items"`            // copied
	Logged     int          `json:"logged,omitempty"` // entries of logs, and items of the state of logs and groups, that were copied
	Files      []FileReport `json:"files"`

	// Lost are the items with a readable key but no readable version.
	Lost []Item `json:"lost,omitempty"`
	// Older are the items that were copied in an older version, because the newest is damaged.
	Older []Item `json:"older,omitempty"`
	// Doubtful are the items that were not copied because a delete in a damaged range names them: the delete
	// itself may be damaged. Each carries its last version, which can be imported.
	Doubtful []Item `json:"doubtful,omitempty"`
	// Exposed counts the copied items whose last readable write lies before a damaged range. The range may
	// have held a newer version or their deletion.
	Exposed int `json:"exposed,omitempty"`
	// Policies says what is uncertain about containers.
	Policies []string `json:"policies,omitempty"`
	// Unknown counts the damaged ranges and missing files that are not reported with an item or a container.
	// Items without any other trace may be lost with them.
	Unknown int `json:"unknown,omitempty"`
	// NoManifest: the manifest cannot be read. A file that is missing, cut short or an older copy may not
	// have been noticed.
	NoManifest bool `json:"no_manifest,omitempty"`
	// Redated says what a corrected clock has changed; nil if the folder's time was not ahead.
	Redated *Redated `json:"redated,omitempty"`
}

// Item is an item about which a repair reports something.
type Item struct {
	Container string `json:"container"`
	ID        string `json:"id"`
	TS        int64  `json:"ts,omitempty"` // of the version that could be read, ms
	File      string `json:"file"`         // where the damage lies
	From      int64  `json:"from"`
	To        int64  `json:"to"`

	Item   record.Item `json:"-"`
	Hidden bool        `json:"-"` // it is an entry of a log or state of a group, and cannot be imported
}

// Clean reports whether nothing was lost or is uncertain.
func (r *Report) Clean() bool {
	return len(r.Lost)+len(r.Older)+len(r.Doubtful)+len(r.Policies)+r.Exposed+r.Unknown == 0 && !r.NoManifest
}

// Run copies what is sound in a data folder into a new one that a server opens. No server may use the old
// folder, and Run changes nothing in it. Partitions, containers, policies with their marks, versions and the
// clock stay the same. It needs the memory that a server needs for one partition and the journals.
//
//   - Run copies the newest readable version of an item. The report says if a newer one is damaged.
//   - A readable delete counts. In a damaged range the delete itself may be wrong: the item that it deletes
//     is not copied but reported as doubtful.
//   - Dead items are copied with the policies that ended them, and stay dead.
//   - Containers whose records are lost are copied as recovered-<number>, with the default -1.
//   - Logs of deaths and groups are copied with their containers: see logs.go.
//
// now (ms) is for a folder whose time is ahead of the corrected clock, which was set forward for some time.
// It is 0 if the clock was right. Dead items stay dead: what had died by the folder's time is left out. What
// was written later than now counts as written now, with the same time left. So no time in the new folder is
// later than now.
//
// Run calls finish when the new folder is complete, but before it has its name. finish may add files to it.
func Run(fsys vfs.FS, dir, newDir string, now int64, finish func(dir string, r *Report) error, progress ...Progress) (*Report, error) {
	s, err := openFolder(fsys, dir, progress...)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.repair(newDir, redating{now: now}, finish)
}

func (s *folderReader) repair(newDir string, dates redating, finish func(dir string, r *Report) error) (_ *Report, err error) {
	if err := s.outside(newDir); err != nil {
		return nil, err
	}
	staging, err := datadir.NewStaging(s.fs, newDir)
	if err != nil {
		return nil, fmt.Errorf("a repair makes a new folder: %w", err)
	}
	defer func() { err = staging.Close(err) }()
	target, err := staging.CreateDir(s.partitions)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	p := &run{merger: &merger{folderReader: s}, into: staging.Dir(), names: newNames(), reported: make(map[damagedRange]bool), written: datadir.NewManifest(), redating: dates, report: &Report{From: s.dir, To: newDir, Partitions: s.partitions}}
	if err := p.copy(); err != nil {
		return nil, err
	}
	if p.names.undo() {
		if err := target.AllowUndo(); err != nil {
			return nil, err
		}
	}
	if p.names.logs() {
		if err := target.AllowLogs(p.names.deletes() || p.deletions); err != nil {
			return nil, err
		}
	}
	if p.names.collections {
		if err := target.AllowCollections(); err != nil {
			return nil, err
		}
	}
	if err := finish(staging.Dir(), p.report); err != nil {
		return nil, err
	}
	return p.report, staging.Finish()
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
	redating
	into    string            // the new folder
	written *datadir.Manifest // of the new folder
	names   *names
	report  *Report

	losses int // problems met in the catalogue and the journals
	known  map[uint32]*targetContainer

	reported  map[damagedRange]bool // with their items or containers
	deletions bool                  // a copied entry is of what a client has deleted
	ownerless []uint32              // logs of which there are only entries
}

// targetContainer says how a container number is copied.
type targetContainer struct {
	name    string // of a log or a group what it is: see hiddenName
	dropped bool
	mixed   bool // it is reported that items of another kind of container have its number
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
	p.redating.begin(max(p.names.clock, p.latest()), p.report)
	for n := range p.partitions {
		report, err := p.partition(n)
		if err != nil {
			return err
		}
		p.report.Files = append(p.report.Files, report)
	}
	p.report.Files = append(append(p.report.Files, journals...), p.listing)
	for i, f := range p.report.Files {
		if i > 0 && f.State == Damaged && f.File != datadir.ManifestName { // the first is format, which holds no items either
			p.countUnknown(f)
		}
	}
	for i := range p.report.Files {
		p.names.explain(p.report.Files[i].Problems)
	}
	p.report.NoManifest = p.manifest == nil
	p.reportEmptyContainers()
	p.settleOwners()
	if err := p.writeCatalogue(); err != nil {
		return err
	}
	p.written.Clean = true
	return p.written.Write(p.fs, p.into)
}

// countUnknown counts the damaged ranges of a file that are not reported with an item or a container. The key
// of a damaged record may be wrong itself: that a later record has the same key does not undo the damage.
func (p *run) countUnknown(f FileReport) {
	for _, problem := range f.Problems {
		if f.unsure[aof.Range{From: problem.From, To: problem.To}] || !problem.Rescued && !p.reported[damagedRange{problem, f.File}] {
			p.report.Unknown++
		}
	}
}

// catalogue reads the containers and decides how each is copied.
func (p *run) catalogue() (FileReport, error) {
	g, report, err := p.merge(-1)
	if err != nil {
		return report, err
	}
	p.known = make(map[uint32]*targetContainer)
	for _, key := range sortedKeys(g.items) {
		v := g.items[key]
		number, err := record.ContainerNumber(key)
		isContainer := err == nil
		if isContainer && v.damage != nil {
			p.reported[*v.damage] = true
		}
		if v.rec == "" {
			if isContainer {
				p.known[number] = &targetContainer{dropped: v.damage == nil}
			}
			continue
		}
		if err := p.names.apply(change{key: key, rec: v.rec}); err != nil {
			return report, err
		}
		if !isContainer { // the clock, the waste
			continue
		}
		p.known[number] = &targetContainer{name: p.names.byNumber[number].Name}
	}
	p.losses = g.last
	p.doubtPolicies(g)
	at := func(number uint32) int {
		if v := g.items[record.ContainerKey(number)]; v != nil {
			return v.at
		}
		return 0
	}
	p.renameDuplicates(at)
	p.settleLogs(func(number, than uint32) bool { return at(number) > at(than) })
	return report, nil
}

// doubtPolicies reports the containers whose records may be older ones.
func (p *run) doubtPolicies(g *merged) {
	var exposed []string // names
	for _, number := range slices.Sorted(maps.Keys(p.names.byNumber)) {
		v, c := g.items[record.ContainerKey(number)], p.names.byNumber[number]
		name := c.Name
		if c.Hidden != nil {
			name = p.names.hiddenName(c.Hidden)
		}
		switch {
		case v.damage != nil:
			p.doubt("the newest policy of container %q is damaged: an older one rules it", name)
		case v.at < g.last:
			exposed = append(exposed, name)
		}
	}
	if len(exposed) > 0 {
		p.doubt("the policies of %d containers may be older ones, what was written after them is damaged: %s", len(exposed), strings.Join(exposed, " "))
	}
}

// reportEmptyContainers reports the containers whose records are lost and of which no item was found.
func (p *run) reportEmptyContainers() {
	for _, number := range slices.Sorted(maps.Keys(p.known)) {
		if c := p.known[number]; c.name == "" && !c.dropped {
			p.doubt("the record of container %d is lost: no item of it was found, and it is not copied", number)
		}
	}
}

// renameDuplicates leaves a shared name to the container that was recorded last. The records that flushed or
// renamed the others are lost.
func (p *run) renameDuplicates(at func(number uint32) int) {
	owner := make(map[string]uint32)
	for _, number := range slices.Sorted(maps.Keys(p.known)) {
		name := p.known[number].name
		if name == "" || p.names.byNumber[number].Aside != nil || p.names.byNumber[number].Hidden != nil {
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
			p.names.byNumber[loser].Name, p.names.byNumber[loser].DB = p.known[loser].name, 0
			p.doubt("containers %d and %d are both named %q: the older is copied as %q; it may have been flushed or dropped",
				loser, owner[name], name, p.known[loser].name)
		}
	}
}

func (p *run) doubt(format string, args ...any) {
	p.report.Policies = append(p.report.Policies, fmt.Sprintf(format, args...))
}

// nameOf returns the name under which an item of a container is copied; false if the container was dropped.
func (p *run) nameOf(k record.Key) (string, bool) {
	number := k.Container
	c := p.known[number]
	if c == nil {
		// Without any loss in the catalogue it was dropped.
		c = &targetContainer{dropped: p.losses == 0}
		p.known[number] = c
	}
	if c.dropped {
		return "", false
	}
	if is := p.names.byNumber[number]; c.name != "" && k.Log != (is != nil && is.Hidden != nil && !is.Hidden.IsGroup()) {
		if !c.mixed {
			c.mixed = true
			p.doubt("items of a log and others have the number %d: those that are not of %q are not copied", number, c.name)
		}
		return "", false
	}
	if c.name == "" && k.Log {
		p.makeLog(number, 0)
		p.known[number].name = fmt.Sprintf("recovered-%d", number)
		p.ownerless = append(p.ownerless, number)
		p.doubt("the record of log %d is lost: its entries are the log of container %q; it may have been dropped", number, p.known[number].name)
		return p.known[number].name, true
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
	died := g.deaths()
	p.redating.look(g, p.names.byNumber)
	keys := sortedKeys(g.items)
	collections := g.collections(keys)
	for _, key := range keys {
		v := g.items[key]
		k, err := record.SplitKey(key)
		if err != nil {
			continue // a damaged key
		}
		name, ok := p.nameOf(k)
		if !ok {
			continue
		}
		if v.damage != nil {
			p.reported[*v.damage] = true
		}
		it, _, err := record.Decode(key, v.rec+v.undeleted)
		if err == nil && died[proven{k.ID, it.Version}] && !k.Log && !k.Page {
			continue
		}
		var collection *collectionState // of a key
		if id, ok := collectionOf(k, &it); ok && !k.Page {
			collection = collections[id]
		}
		entry := func(rec string, damage *damagedRange) Item {
			it, _, _ := record.Decode(key, rec) // sound or empty
			return Item{Container: name, ID: k.ID, TS: it.TS, File: damage.file, From: damage.From, To: damage.To, Item: it, Hidden: p.isHidden(k.Container)}
		}
		switch {
		case v.undeleted != "":
			p.report.Doubtful = append(p.report.Doubtful, entry(v.undeleted, v.deletedBy))
			continue
		case v.rec == "":
			if v.damage != nil {
				p.report.Lost = append(p.report.Lost, entry("", v.damage))
			}
			continue
		case collection != nil && len(collection.pages) == 0:
			p.report.Lost = append(p.report.Lost, entry("", cmp.Or(v.damage, g.lastProblem, &damagedRange{})))
			continue
		case collection != nil && collection.owner != key:
			continue // another key has its elements
		case v.damage != nil:
			p.report.Older = append(p.report.Older, entry(v.rec, v.damage))
		case v.at < g.last:
			p.report.Exposed++
		}
		if err := p.names.apply(change{key: key, rec: v.rec}); err != nil {
			return report, err
		}
		if !p.fitsGroup(k, v.rec) {
			continue
		}
		rec := v.rec
		if collection != nil {
			rec = g.fitPopped(key, rec, it, collection.pages)
		}
		if rec, lives := p.redating.item(key, rec, p.names.byNumber[k.Container], p.report); lives {
			ops = append(ops, aof.Op{Key: key, Rec: rec})
			if k.Page {
				continue
			}
			if p.isHidden(k.Container) {
				p.report.Logged++
				p.deletions = p.deletions || k.Log && isDeletion(key, rec)
			} else {
				p.report.Items++
			}
		}
	}
	return report, p.fill(datadir.PartitionName(number), ops)
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
			container = p.recovered(number, c.name)
		}
		if container.Hidden == nil {
			p.report.Containers++
		}
		ops = append(ops, aof.Op{Key: record.ContainerKey(number), Rec: string(p.redating.container(*container).Append(nil))})
	}
	slices.SortFunc(ops, func(a, b aof.Op) int { return strings.Compare(a.Key, b.Key) })
	clock := string(record.Append(nil, record.ClockKey, record.Item{Kind: record.ClockKind, TS: p.redating.clock(p.names.clock)}))
	return p.fill(datadir.CatalogueName, append(ops, aof.Op{Key: record.ClockKey, Rec: clock}))
}

// fill writes the items of a store of the new folder.
func (p *run) fill(name string, ops []aof.Op) error {
	mark, end, err := store.Fill(p.fs, filepath.Join(p.into, name), ops)
	p.written.Stores[name] = []datadir.FileState{{Mark: mark, End: end}}
	return err
}
