package repair

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// Inspection is the result of [Inspect].
type Inspection struct {
	Dir        string       `json:"dir"`
	Partitions int          `json:"partitions"`
	State      FileState    `json:"state"` // the worst of the files'
	Files      []FileReport `json:"files"`
	Notes      []string     `json:"notes,omitempty"` // harmless, but worth knowing
}

// Inspect reads all files of a data folder and reports their state. It writes nothing, and refuses a folder
// that a server uses. It needs memory for one record and one commit at a time. A folder is damaged exactly if
// a server refuses to start with it.
//
// The error says why the folder could not be read; damage is not an error.
func Inspect(fsys vfs.FS, dir string, progress ...Progress) (*Inspection, error) {
	s, err := openFolder(fsys, dir, progress...)
	if err != nil {
		return nil, err
	}
	defer s.close()
	names := newNames()
	v := visitor{change: names.apply, problem: func(string, Problem) {}}
	stores, err := s.eachStore(v)
	if err != nil {
		return nil, err
	}
	journals, err := s.journals(v)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Dir: dir, Partitions: s.partitions, State: Sound}
	in.Files = slices.Concat([]FileReport{s.format}, stores, journals, []FileReport{s.listing})
	in.Notes = notes(fsys, dir, names, len(journals))
	for _, u := range names.misfits() {
		if i := slices.IndexFunc(in.Files, func(f FileReport) bool { return f.File == u.file }); i >= 0 {
			in.Files[i].State = Damaged
			in.Files[i].Problems = append(in.Files[i].Problems, u.Problem)
		}
	}
	for i := range in.Files {
		f := &in.Files[i]
		names.explain(f.Problems)
		if f.State == Damaged || f.State == Torn && in.State == Sound {
			in.State = f.State
		}
	}
	if problem := names.duplicate(); problem != "" {
		in.State = Damaged
		in.Files[1].State = Damaged
		in.Files[1].Problems = append(in.Files[1].Problems, Problem{Reason: problem})
	}
	return in, nil
}

// notes lists what is worth knowing about a folder but does no harm.
func notes(fsys vfs.FS, dir string, names *names, journals int) (list []string) {
	entries, _ := fsys.ReadDir(dir) // what can be read is worth a note
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.Contains(e.Name(), aof.TornSuffix) })
	if len(entries) > 0 {
		list = append(list, fmt.Sprintf("%d ends of files that earlier starts cut off are kept as *.torn-*", len(entries)))
	}
	if journals == 0 {
		list = append(list, "there is no journal: none is needed, as after a repair")
	}
	if orphans := names.orphans(); orphans > 0 {
		list = append(list, fmt.Sprintf("%d records are of containers that have been dropped; the next start deletes them", orphans))
	}
	return list
}

// names has the containers that exist according to the changes in files. The journals must come after the
// catalogue.
type names struct {
	byNumber map[uint32]*record.Container
	items    map[uint32]int // records, by container
	clock    int64          // ms; the latest time in a record
	unfit    map[string]unfit

	collections bool // an item has elements
}

// unfit is an item in a group that is not of one, by its key.
type unfit struct {
	file string
	Problem
}

func newNames() *names {
	return &names{byNumber: make(map[uint32]*record.Container), items: make(map[uint32]int)}
}

// apply applies a change.
func (n *names) apply(c change) error {
	var it record.Item
	if !c.del {
		var err error
		if it, _, err = record.Decode(c.key, c.rec); err != nil {
			return err
		}
		n.clock = max(n.clock, it.TS)
	}
	if k, err := record.SplitKey(c.key); err == nil {
		n.items[k.Container]++
		n.collections = n.collections || it.Kind.IsCollection() || it.Kind == record.Page
		n.checkGroupItem(k, c, it)
		return nil
	}
	number, err := record.ContainerNumber(c.key)
	if err != nil {
		return nil // the clock, the waste
	}
	if c.del {
		delete(n.byNumber, number)
		return nil
	}
	container, err := record.ReadContainer(c.key, it)
	if err != nil {
		return err
	}
	n.byNumber[number] = &container
	n.clock = max(n.clock, container.Policy.InheritDeadTo, container.Policy.OwnDeadTo)
	return nil
}

// checkGroupItem notes an item of a group that cannot be read: a start refuses it. Others are let go.
func (n *names) checkGroupItem(k record.Key, c change, it record.Item) {
	group := n.byNumber[k.Container]
	if group == nil || group.Hidden == nil || !group.Hidden.IsGroup() {
		return
	}
	delete(n.unfit, c.key)
	if c.del {
		return
	}
	if _, err := groups.Load(func(yield func(string, string) bool) { yield(k.ID, it.Body) }); err != nil {
		if n.unfit == nil {
			n.unfit = make(map[string]unfit)
		}
		key := strings.Clone(c.key)
		n.unfit[key] = unfit{c.file, Problem{Key: key, From: c.at.From, To: c.at.To, Reason: err.Error()}}
	}
}

// misfits returns the items that checkGroupItem has noted of groups that exist, in the order of their keys.
func (n *names) misfits() (list []unfit) {
	for _, key := range sortedKeys(n.unfit) {
		if k, err := record.SplitKey(key); err == nil && n.exists(k.Container) {
			list = append(list, n.unfit[key])
		}
	}
	return list
}

// explain fills in the containers and ids of the problems that have an item's key.
func (n *names) explain(problems []Problem) {
	for i := range problems {
		p := &problems[i]
		key, _ := record.TouchedKey(p.Key)
		k, err := record.SplitKey(key)
		if err != nil {
			continue
		}
		p.Container, p.ID = fmt.Sprintf("number %d", k.Container), k.ID
		if c := n.byNumber[k.Container]; c != nil {
			p.Container = c.Name
			if c.Hidden != nil {
				p.Container = n.hiddenName(c.Hidden)
			}
		}
	}
}

// orphans counts the records without a container.
func (n *names) orphans() (count int) {
	for number, items := range n.items {
		if !n.exists(number) {
			count += items
		}
	}
	return count
}

// undo reports whether a change of a container could be taken back when its record was written.
func (n *names) undo() bool {
	for _, c := range n.byNumber {
		if c.Aside != nil || slices.ContainsFunc(c.History, func(h expiry.HistoryEntry) bool { return h.Undo > 0 }) {
			return true
		}
	}
	return false
}

// logs reports whether there are logs of deaths.
func (n *names) logs() bool {
	for _, c := range n.byNumber {
		if c.Log != nil || c.Hidden != nil {
			return true
		}
	}
	return false
}

// deletes reports whether a log has what clients delete.
func (n *names) deletes() bool {
	for _, c := range n.byNumber {
		if c.Log != nil && c.Log.Deletes {
			return true
		}
	}
	return false
}

// duplicate says which two containers share a name; empty if none.
func (n *names) duplicate() string {
	first := make(map[string]uint32)
	for _, number := range slices.Sorted(maps.Keys(n.byNumber)) {
		name := n.byNumber[number].Name
		if n.byNumber[number].Aside != nil || n.byNumber[number].Hidden != nil {
			continue
		}
		if other, taken := first[name]; taken {
			return fmt.Sprintf("containers %d and %d are both named %q", other, number, name)
		}
		first[name] = number
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
